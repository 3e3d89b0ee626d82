// bookie_clusters_test.c - each route of /admin/v2/bookie-clusters with the real verbs behind it, on places in memory: paths, bodies, codes.
#include "admin/rig_test.h"
#include "move/storage/storage.h"
#include "sim/place/sim_place.h"

#define BASE "/admin/v2/bookie-clusters"
#define STORES 4

// The rig with a storage to move: what a broker has below its topics.
struct world {
    struct rig rig;
    struct ox_log log;
    struct ox_metrics metrics;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_place_opener opener;
    struct ox_sim_store *stores[STORES]; // embedded:/0 and so on
    struct ox_ml_factory factory;
    struct ox_storage *storage;
    struct ox_str trouble;
    long status; // of the last answer
    const char *body;
};

static void world_done(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void world_op(struct world *w, struct ox_op *op)
{
    ox_op_init(op, w->rig.loop, world_done, "test");
}

static void world_wait(struct world *w, struct ox_op *op)
{
    rig_run(&w->rig);
    assert_string_equal(ox_err_name(op->err), "OK");
}

static char *world_canonical(struct ox_place_opener *o, const char *uri, const char **why)
{
    (void)o;
    if (strncmp(uri, "embedded:/", 10) == 0 && uri[10] >= '0' && uri[10] < '0' + STORES)
        return ox_strdup(uri);
    *why = "only embedded:/0 to embedded:/3 are understood here";
    return NULL;
}

static void world_open(struct ox_place_opener *o, struct ox_op *op, const char *name, const char *uri, bool existing,
                       struct ox_place **ret)
{
    (void)existing;
    struct world *w = CONTAINER_OF(o, struct world, opener);
    ox_op_begin(op);
    *ret = ox_sim_place_new(w->rig.loop, w->stores[uri[10] - '0'], name, NULL);
    ox_op_finish(op, OX_OK);
}

static void world_resolve(struct world *w)
{
    struct ox_op op;
    struct ox_storage_ports ports = {
        .loop = w->rig.loop, .log = &w->log, .meta = w->meta, .router = &w->router, .metrics = &w->metrics, .opener = &w->opener};
    ox_storage_config_init(&ports.config);
    ports.config.default_uri = "embedded:/0";
    world_op(w, &op);
    ox_storage_resolve(&ports, &op, &w->trouble, &w->storage);
    world_wait(w, &op);
}

static void world_start(struct world *w)
{
    struct ox_op op;
    *w = (struct world){.opener = {.open = world_open, .canonical = world_canonical}};
    w->rig.loop = ox_posix_loop_new(NULL);
    ox_posix_log_init(&w->log, OX_LOG_ERROR);
    ox_metrics_init(&w->metrics);
    for (uint32_t i = 0; i < STORES; i++)
        w->stores[i] = ox_sim_store_new(i + 1);
    world_op(w, &op);
    ox_meta_open(w->rig.loop, &op, "memory:", &w->meta);
    world_wait(w, &op);
    ox_router_init(&w->router, w->rig.loop);
    world_resolve(w);
    w->factory = (struct ox_ml_factory){
        .loop = w->rig.loop, .log = &w->log, .meta = w->meta, .router = &w->router, .metrics = &w->metrics, .instance = "i-1"};
    ox_ml_settings_init(&w->factory.settings);
    ox_ml_factory_init(&w->factory, 1 << 20);
    ox_storage_start(w->storage, &w->factory);
    w->rig.shard.loop = w->rig.loop;
    rig_serve(&w->rig, w->storage);
}

static void world_end(struct world *w)
{
    struct ox_op op;
    ox_admin_close(w->rig.admin);
    world_op(w, &op);
    ox_storage_stop(w->storage, &op);
    world_wait(w, &op);
    world_op(w, &op);
    ox_ml_factory_drain(&w->factory, &op);
    world_wait(w, &op);
    ox_storage_free(w->storage);
    ox_ml_factory_fini(&w->factory);
    world_op(w, &op);
    ox_router_close(&w->router, &op);
    world_wait(w, &op);
    world_op(w, &op);
    ox_meta_close(w->meta, &op);
    world_wait(w, &op);
    for (uint32_t i = 0; i < STORES; i++)
        ox_sim_store_free(w->stores[i]);
    ox_posix_loop_free(w->rig.loop);
    ox_str_fini(&w->rig.got);
    ox_str_fini(&w->trouble);
}

// One request on a connection of its own; its answer is in w->status and w->body then.
static void ask(struct world *w, const char *method, const char *path, const char *body)
{
    rig_connect(&w->rig);
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_asprintf("%s " BASE "%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                             method, path, strlen(body), body);
    struct ox_buf buf = ox_buf_copy(text, strlen(text));
    ox_str_truncate(&w->rig.got, 0);
    ox_stream_write(w->rig.client, &buf, 1);
    ox_buf_unref(&buf);
    rig_run(&w->rig); // until the server closes
    const char *got = ox_str_get(&w->rig.got);
    assert_true(strncmp(got, "HTTP/1.1 ", 9) == 0);
    w->status = strtol(got + 9, NULL, 10);
    w->body = strstr(got, "\r\n\r\n") + 4;
}

// A request whose answer has this status and this text in it.
static void expect(struct world *w, const char *method, const char *path, const char *body, long status, const char *says)
{
    ask(w, method, path, body);
    if (w->status != status || !strstr(w->body, says))
        fail_msg("%s %s %s: %ld %s\nwanted: %ld %s", method, path, body, w->status, w->body, status, says);
    if (status >= 400)
        assert_non_null(strstr(w->body, "{\"reason\":\""));
    if (status == 204)
        assert_string_equal(w->body, "");
}

static void test_registry_routes(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "GET", "", "", 200, "\"name\":\"default\"");
    expect(&w, "GET", "/", "", 200, "\"name\":\"default\"");
    expect(&w, "GET", "/default", "", 200, "\"status\":\"ACTIVE\"");
    expect(&w, "GET", "/big", "", 404, "big");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\"}", 204, "");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\",\"status\":\"STANDBY\"}", 204, "");
    expect(&w, "GET", "/big", "", 200, "\"metadataServiceUri\":\"embedded:/1\"");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/2\"}", 409, "big");
    expect(&w, "POST", "/other", "{\"metadataServiceUri\":\"embedded:/1\"}", 400, "big");
    expect(&w, "POST", "/other", "{\"metadataServiceUri\":\"nfs:/1\"}", 400, "nfs:/1");
    expect(&w, "POST", "/other", "{\"metadataServiceUri\":\"embedded:/2\",\"status\":\"BEST\"}", 400, "BEST");
    expect(&w, "POST", "/bad%20name", "{\"metadataServiceUri\":\"embedded:/2\"}", 400, "bad name");
    expect(&w, "POST", "/%ff", "{\"metadataServiceUri\":\"embedded:/2\"}", 400, "name");
    expect(&w, "POST", "/status", "{\"metadataServiceUri\":\"embedded:/2\"}", 400, "status");
    expect(&w, "DELETE", "/default", "", 409, "default");
    expect(&w, "DELETE", "/big", "", 204, "");
    expect(&w, "DELETE", "/big", "", 404, "big");
    expect(&w, "PUT", "/big", "", 405, "PUT");
    world_end(&w);
}

static void test_switching_routes(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "GET", "/status", "", 200, "\"active\":\"default\"");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\"}", 204, "");
    expect(&w, "GET", "/precheck/big", "", 200, "\"ready\":true");
    expect(&w, "GET", "/precheck/none", "", 404, "none");
    expect(&w, "GET", "/plan?target=big&bytesPerSecond=1000", "", 200, "\"ledgers\":");
    expect(&w, "POST", "/switch", "{\"target\":\"none\"}", 404, "none");
    expect(&w, "POST", "/switch", "{\"target\":\"big\"}", 202, "\"switchId\":");
    assert_non_null(strstr(w.body, "\"previous\":\"default\""));
    expect(&w, "GET", "/status", "", 200, "\"active\":\"big\"");
    expect(&w, "POST", "/switch", "{\"target\":\"big\",\"supersede\":false}", 202, "\"noop\":true");
    expect(&w, "POST", "/read-mode", "{\"mode\":\"NEW_CLUSTER_ONLY\"}", 204, "");
    expect(&w, "GET", "/status", "", 200, "NEW_CLUSTER_ONLY");
    expect(&w, "POST", "/read-mode", "{\"mode\":\"NONE\"}", 400, "NONE");
    expect(&w, "POST", "/read-mode", "{\"mode\":\"DUAL_READ\"}", 204, "");
    expect(&w, "POST",
           "/internal/promote-cursor", "{\"topic\":\"persistent://public/default/t\",\"cursorName\":\"s\",\"targetClusterName\":\"big\",\"expectedCursorsLedgerId\":-1}",
           404, "t");
    expect(&w, "DELETE", "/big", "", 409, "active");
    expect(&w, "POST", "/close-client/big", "", 409, "big");
    expect(&w, "POST", "/close-client/none", "", 404, "none");
    world_end(&w);
}

// Asks for the status until it says so: stages go on in turns of their own.
static void expect_in_time(struct world *w, const char *path, const char *says)
{
    for (int i = 0; i < 2000; i++) {
        ask(w, "GET", path, "");
        if (w->status == 200 && strstr(w->body, says))
            return;
    }
    fail_msg("%s never said %s: %s", path, says, w->body);
}

static void test_data_routes(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\"}", 204, "");
    expect(&w, "POST", "/move-data", "{\"target\":\"big\"}", 409, "big");
    expect(&w, "POST", "/switch", "{\"target\":\"big\"}", 202, "");
    expect_in_time(&w, "/status", "\"state\":\"DONE\"");
    expect(&w, "PUT", "/throttle", "{\"bytesPerSecond\":1048576}", 200, "\"bytesPerSecond\":1048576");
    expect(&w, "PUT", "/throttle", "{\"opsPerSecond\":7}", 200, "\"opsPerSecond\":7");
    assert_non_null(strstr(w.body, "\"bytesPerSecond\":1048576")); // what is not sent stays
    expect(&w, "POST", "/move-data", "{\"target\":\"none\"}", 404, "none");
    expect(&w, "POST", "/move-data", "{\"target\":\"big\"}", 202, "\"switchId\":");
    expect_in_time(&w, "/status", "\"state\":\"DONE\"");
    expect(&w, "GET", "/inventory", "", 200, "\"places\":[");
    expect(&w, "GET", "/failures", "", 200, "[]");
    expect(&w, "GET", "/verify/big", "", 200, "\"bad\":[]");
    expect(&w, "GET", "/verify/none", "", 404, "none");
    expect(&w, "GET", "/safe-to-release/big", "", 200, "\"safe\":false");
    expect(&w, "GET", "/safe-to-release/none", "", 404, "none");
    expect_in_time(&w, "/safe-to-release/default", "\"safe\":true");
    expect(&w, "GET", "/cleanup-targets", "", 200, "[]");
    expect(&w, "GET", "/cleanup-targets?srcClusterFilter=default", "", 200, "[]");
    expect(&w, "POST", "/cleanup", "", 200, "\"dryRun\":true");
    expect(&w, "POST", "/cleanup",
           "{\"dryRun\":false,\"force\":true,\"maxDeletions\":5,\"srcClusterFilter\":\"default\"}", 200, "\"deleted\":0");
    expect(&w, "POST", "/close-client/default", "", 204, "");
    expect(&w, "DELETE", "/default", "", 204, "");
    expect(&w, "POST", "/rollback", "", 409, "default was unregistered");
    world_end(&w);
}

static void test_target_routes(void **state)
{
    (void)state;
    static const char ns[] = "/namespaces/public/default/target", topic[] = "/topics/public/default/a%2Fb/target";
    struct world w;
    world_start(&w);
    expect(&w, "PUT", ns, "{\"target\":\"default\"}", 409, "register a second one first");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\"}", 204, "");
    expect(&w, "GET", ns, "", 200, "{\"name\":\"public/default\",\"target\":\"default\",\"source\":\"cluster\"}");
    expect(&w, "DELETE", ns, "", 404, "public/default");
    expect(&w, "PUT", ns, "{\"target\":\"none\"}", 404, "none");
    expect(&w, "PUT", ns, "{\"cluster\":\"big\"}", 400, "cluster");
    expect(&w, "PUT", ns, "", 400, "target");
    expect(&w, "PUT", "/namespaces/pub%20lic/default/target", "{\"target\":\"big\"}", 400, "pub lic/default");
    expect(&w, "PUT", "/namespaces/a%2Fb/default/target", "{\"target\":\"big\"}", 400, "segment");
    expect(&w, "PUT", ns, "{\"target\":\"big\"}", 204, "");
    expect(&w, "GET", ns, "", 200, "\"target\":\"big\",\"source\":\"namespace\"");
    expect(&w, "GET", topic, "", 200,
           "{\"name\":\"persistent://public/default/a/b\",\"target\":\"big\",\"source\":\"namespace\"}");
    expect(&w, "PUT", topic, "{\"target\":\"default\"}", 204, "");
    expect(&w, "GET", topic, "", 200, "\"target\":\"default\",\"source\":\"topic\"");
    expect(&w, "DELETE", topic, "", 204, "");
    expect(&w, "DELETE", "/big", "", 409, "big is the target of public/default");
    expect(&w, "POST", "/close-client/big", "", 409, "big is the target of public/default");
    expect(&w, "GET", "/safe-to-release/big", "", 200, "big is the target of public/default");
    expect(&w, "DELETE", ns, "", 204, "");
    expect(&w, "POST", ns, "", 405, "POST");
    for (const char *const *word = (const char *const[]){"/targets", "/namespaces", "/topics", NULL}; *word; word++)
        expect(&w, "POST", *word, "{\"metadataServiceUri\":\"embedded:/2\"}", 400, "reserved");
    expect(&w, "DELETE", "/big", "", 204, "");
    world_end(&w);
}

static void test_orders_about_a_switch(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "POST", "/rollback", "", 409, "");
    expect(&w, "POST", "/pause", "", 409, "");
    expect(&w, "POST", "/resume", "", 409, "");
    expect(&w, "POST", "/abort", "", 409, "");
    expect(&w, "POST", "/big", "{\"metadataServiceUri\":\"embedded:/1\"}", 204, "");
    expect(&w, "POST", "/switch", "{\"target\":\"big\"}", 202, "");
    expect_in_time(&w, "/status", "\"state\":\"DONE\"");
    expect(&w, "POST", "/rollback", "{}", 202, "\"target\":\"default\"");
    expect_in_time(&w, "/status", "\"state\":\"DONE\"");
    world_end(&w);
}

static void test_bodies_and_queries_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body, *says;
    } bad[] = {
        {"POST", "/x", "", "\\\"metadataServiceUri\\\" is missing"},
        {"POST", "/x", "{\"metadataServiceUri\":", "no JSON: line 1"},
        {"POST", "/x", "[1]", "must be a JSON object"},
        {"POST", "/x", "\"text\"", "no JSON"},
        {"POST", "/x", "{\"metadataServiceUri\":1}", "\\\"metadataServiceUri\\\" must be a text"},
        {"POST", "/x", "{\"metadataServiceUri\":\"a\",\"metadataServiceUri\":\"b\"}", "no JSON"},
        {"POST", "/x", "{\"metadataServiceUri\":\"a\\u0000b\"}", "no JSON"},
        {"POST", "/x", "{\"metadataServiceUri\":\"\xff\"}", "no JSON"},
        {"POST", "/x", "{\"metadataServiceUri\":\"embedded:/1\",\"stat\":1}",
         "unknown field \\\"stat\\\" (known: metadataServiceUri, status)"},
        {"POST", "/switch", "{\"metadataServiceUri\":\"embedded:/1\"}", "no bookie cluster can be named switch"},
        {"POST", "/switch", "{\"target\":null}", "\\\"target\\\" must be a text"},
        {"POST", "/switch", "{\"target\":\"default\",\"supersede\":1}", "\\\"supersede\\\" must be true or false"},
        {"POST", "/abort", "{\"metadataServiceUri\":\"embedded:/1\"}", "no bookie cluster can be named abort"},
        {"POST", "/pause", "nonsense", "no JSON"},
        {"POST", "/cleanup", "{\"dryrun\":false}", "unknown field \\\"dryrun\\\""},
        {"POST", "/cleanup", "{\"maxDeletions\":-1}", "\\\"maxDeletions\\\" must be a whole number, 0 or more"},
        {"POST", "/cleanup", "{\"maxDeletions\":1.5}", "\\\"maxDeletions\\\" must be a whole number"},
        {"POST", "/cleanup", "{\"maxDeletions\":9223372036854775808}", "no JSON"},
        {"PUT", "/throttle", "{}", "bytesPerSecond"},
        {"PUT", "/throttle", "{\"bytesPerSecond\":-1}", "0 or more"},
        {"POST", "/internal/promote-cursor", "{\"topic\":\"t\",\"cursorName\":\"s\",\"targetClusterName\":\"default\"}",
         "\\\"expectedCursorsLedgerId\\\" is missing"},
        {"POST", "/internal/promote-cursor",
         "{\"topic\":\"t\",\"cursorName\":\"s\",\"targetClusterName\":\"default\",\"expectedCursorsLedgerId\":-2}",
         "-1 or more"},
        {"GET", "/plan", "", "plan?target=NAME"},
        {"GET", "/plan?target=default&bytesPerSecond=fast", "", "\\\"bytesPerSecond\\\" must be a whole number"},
        {"GET", "/plan?target=%zz", "", "\\\"target\\\" is not properly percent-encoded"},
        {"GET", "/cleanup-targets?srcClusterFilter=%zz", "", "percent-encoded"},
    };
    struct world w;
    world_start(&w);
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        expect(&w, bad[i].method, bad[i].path, bad[i].body, 400, bad[i].says);
    expect(&w, "GET", "", "", 200, "default"); // and nothing was registered, or switched off
    assert_null(strstr(w.body, "\"x\""));
    world_end(&w);
}

static void test_a_client_that_goes_away_leaves_the_order(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    rig_connect(&w.rig);
    static const char text[] =
        "POST " BASE "/big HTTP/1.1\r\nHost: a\r\nContent-Length: 36\r\n\r\n{\"metadataServiceUri\":\"embedded:/1\"}";
    struct ox_buf buf = ox_buf_static(text, strlen(text));
    ox_stream_write(w.rig.client, &buf, 1);
    ox_stream_close(w.rig.client);
    rig_run(&w.rig);
    for (int i = 0; i < 2000 && w.status != 200; i++)
        ask(&w, "GET", "/big", "");
    assert_int_equal(w.status, 200);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry_routes),
        cmocka_unit_test(test_switching_routes),
        cmocka_unit_test(test_data_routes),
        cmocka_unit_test(test_target_routes),
        cmocka_unit_test(test_orders_about_a_switch),
        cmocka_unit_test(test_bodies_and_queries_are_checked),
        cmocka_unit_test(test_a_client_that_goes_away_leaves_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
