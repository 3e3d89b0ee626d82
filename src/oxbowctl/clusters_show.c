// clusters_show.c - the answers about bookie clusters as tables for people.
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

static void cell_size(struct ctl_table *t, const json_t *o, const char *name)
{
    struct ox_str text = {0};
    if (json_is_number(json_object_get(o, name)))
        ctl_add_size(&text, ctl_number_of(o, name));
    else
        ox_str_adds(&text, "-");
    ctl_table_take(t, &text);
}

static void cell_integer(struct ctl_table *t, const json_t *o, const char *name)
{
    const json_t *value = json_object_get(o, name);
    if (json_is_integer(value))
        ctl_table_add(t, "%lld", (long long)json_integer_value(value));
    else
        ctl_table_add(t, "%s", ctl_text_of(o, name));
}

static void cell_text(struct ctl_table *t, const json_t *o, const char *name)
{
    ctl_table_add(t, "%s", ctl_text_of(o, name));
}

static void cell_date(struct ctl_table *t, const json_t *o, const char *name)
{
    struct ox_str text = {0};
    if (json_is_string(json_object_get(o, name)))
        ox_str_adds(&text, ctl_text_of(o, name));
    else
        ctl_add_date(&text, ctl_integer_of(o, name));
    ctl_table_take(t, &text);
}

// Adds the heading of as many columns as there are names.
static void table_head(struct ctl_table *t, const char *const *names)
{
    for (; *names; names++) {
        ctl_table_add(t, "%s", *names);
        t->columns++;
    }
}
#define TABLE_HEAD(t, ...) table_head((t), (const char *const[]){__VA_ARGS__, NULL})

// One thing as lines "name  value".
static void line_begin(struct ctl_table *t, const char *label)
{
    t->columns = 2;
    ctl_table_add(t, "%s", label);
}

static void line_text(struct ctl_table *t, const char *label, const json_t *o, const char *name)
{
    line_begin(t, label);
    cell_integer(t, o, name);
}

static void line_size(struct ctl_table *t, const char *label, const json_t *o, const char *name)
{
    line_begin(t, label);
    cell_size(t, o, name);
}

// What an error's name, as the broker says it, means; NULL if it is none.
static const char *error_text(const char *name)
{
    for (int i = 0; i < OX_ERR_COUNT; i++)
        if (strcmp(ox_err_name((enum ox_err)i), name) == 0)
            return ox_err_text((enum ox_err)i);
    return NULL;
}

// ---- registry -------------------------------------------------------------------------------------------------------

void ctl_show_clusters(const json_t *list)
{
    struct ctl_table t = {.right = 1u << 3 | 1u << 4};
    TABLE_HEAD(&t, "NAME", "STATUS", "STATE", "USED", "FREE", "METADATA SERVICE URI");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *cluster = json_array_get(list, i);
        cell_text(&t, cluster, "name");
        cell_text(&t, cluster, "status");
        cell_text(&t, cluster, "state");
        cell_size(&t, cluster, "bytesUsed");
        cell_size(&t, cluster, "bytesAvailable");
        cell_text(&t, cluster, "metadataServiceUri");
    }
    ctl_table_print(&t, stdout);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *cluster = json_array_get(list, i);
        const char *why = error_text(ctl_text_of(cluster, "state"));
        if (why)
            printf("%s: %s\n", ctl_text_of(cluster, "name"), why);
    }
}

void ctl_show_cluster(const json_t *cluster)
{
    struct ctl_table t = {0};
    line_text(&t, "name", cluster, "name");
    line_text(&t, "uri", cluster, "metadataServiceUri");
    line_text(&t, "status", cluster, "status");
    const char *why = error_text(ctl_text_of(cluster, "state"));
    line_begin(&t, "state");
    ctl_table_add(&t, "%s%s%s", ctl_text_of(cluster, "state"), why ? ": " : "", why ? why : "");
    line_text(&t, "identity", cluster, "identity");
    line_size(&t, "used", cluster, "bytesUsed");
    line_size(&t, "free", cluster, "bytesAvailable");
    line_size(&t, "size", cluster, "bytesTotal");
    ctl_table_print(&t, stdout);
}

// ---- switching ------------------------------------------------------------------------------------------------------

void ctl_show_precheck(const json_t *precheck)
{
    const json_t *checks = json_object_get(precheck, "checks");
    struct ctl_table t = {0};
    TABLE_HEAD(&t, "CHECK", "RESULT", "DETAIL");
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *check = json_array_get(checks, i);
        cell_text(&t, check, "name");
        cell_text(&t, check, "result");
        cell_text(&t, check, "detail");
    }
    ctl_table_print(&t, stdout);
    bool ready = json_is_true(json_object_get(precheck, "ready"));
    printf("%s -> %s: %s\n", ctl_text_of(precheck, "sourceClusterName"), ctl_text_of(precheck, "targetClusterName"),
           ready ? "ready to switch" : "not ready: put right what has failed");
}

static void print_time(const char *label, const json_t *o, const char *name)
{
    struct ox_str text = {0};
    if (!json_is_number(json_object_get(o, name)))
        return;
    ctl_add_time(&text, ctl_number_of(o, name));
    printf("%s%s\n", label, ox_str_get(&text));
    ox_str_fini(&text);
}

// What stands in an array: texts, or objects as their JSON.
static void print_items(const char *label, const json_t *items)
{
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        char *text = json_is_string(item) ? NULL : json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
        printf("%s%s\n", label, text ? text : json_string_value(item));
        free(text);
    }
}

void ctl_show_plan(const json_t *plan)
{
    struct ctl_table t = {0};
    line_text(&t, "topics", plan, "topics");
    line_text(&t, "ledgers", plan, "ledgers");
    line_text(&t, "cursors", plan, "cursors");
    line_size(&t, "bytes", plan, "bytes");
    line_size(&t, "free there", plan, "bytesAvailable");
    line_text(&t, "fits", plan, "fits");
    ctl_table_print(&t, stdout);
    print_time("takes       about ", plan, "seconds");
    print_items("conflict    ", json_object_get(plan, "conflicts"));
}

void ctl_show_order(const json_t *answer)
{
    struct ctl_table t = {0};
    line_text(&t, "switch", answer, "switchId");
    if (json_object_get(answer, "target")) {
        line_text(&t, "to", answer, "target");
        line_text(&t, "from", answer, "previous");
        line_text(&t, "epoch", answer, "epoch");
    }
    if (json_object_get(answer, "ledgers"))
        line_text(&t, "ledgers", answer, "ledgers");
    if (json_object_get(answer, "bytes"))
        line_size(&t, "bytes", answer, "bytes");
    ctl_table_print(&t, stdout);
    if (json_is_true(json_object_get(answer, "noop")))
        printf("it is the active bookie cluster already; what had failed is tried again\n");
}

void ctl_show_target(const json_t *target)
{
    const char *source = ctl_text_of(target, "source");
    printf("%s: %s (%s)\n", ctl_text_of(target, "name"), ctl_text_of(target, "target"),
           !strcmp(source, "topic")       ? "its own target"
           : !strcmp(source, "namespace") ? "its namespace's target"
                                          : "the active one");
}

void ctl_show_throttle(const json_t *throttle)
{
    struct ox_str text = {0};
    ctl_add_size(&text, ctl_number_of(throttle, "bytesPerSecond"));
    printf("bytes    %s%s\n", ctl_integer_of(throttle, "bytesPerSecond") ? ox_str_get(&text) : "no limit",
           ctl_integer_of(throttle, "bytesPerSecond") ? "/s" : "");
    if (ctl_integer_of(throttle, "opsPerSecond"))
        printf("entries  %" PRId64 "/s\n", ctl_integer_of(throttle, "opsPerSecond"));
    else
        printf("entries  no limit\n");
    ox_str_fini(&text);
}

static void show_stages(const json_t *status, const json_t *stages)
{
    for (size_t i = 0; i < json_array_size(stages); i++) {
        struct ox_str line = {0};
        struct ctl_stage stage = ctl_stage_read(status, ctl_text_of(json_array_get(stages, i), "name"));
        ctl_stage_draw(&line, &stage, 110);
        printf("%s\n", ox_str_get(&line));
        ox_str_fini(&line);
    }
}

static void show_switch(const json_t *status, const json_t *sw)
{
    struct ctl_table t = {0};
    line_text(&t, "switch", sw, "switchId");
    line_text(&t, "state", sw, "state");
    line_text(&t, "move data", sw, "moveData");
    ctl_table_print(&t, stdout);
    print_items("broker     ", json_object_get(sw, "acks"));
    print_items("waits for  ", json_object_get(sw, "missing"));
    printf("\n");
    show_stages(status, json_object_get(sw, "stages"));
}

void ctl_show_status(const json_t *status)
{
    const json_t *sw = json_object_get(status, "switch");
    struct ctl_table t = {0};
    line_text(&t, "active", status, "active");
    line_text(&t, "previous", status, "previous");
    line_text(&t, "bootstrap", status, "bootstrap");
    line_text(&t, "epoch", status, "epoch");
    line_text(&t, "read mode", status, "readMode");
    line_text(&t, "guarded", status, "guarded");
    ctl_table_print(&t, stdout);
    if (json_is_object(sw))
        show_switch(status, sw);
    const json_t *elsewhere = json_object_get(status, "openElsewhere"),
                 *last = json_object_get(elsewhere, "lastFailure");
    if (last)
        printf("%" PRId64 " topics cannot go on in %s yet and are tried again; the last one: %s: %s\n",
               ctl_integer_of(elsewhere, "failing"), ctl_text_of(status, "active"), ctl_text_of(last, "log"),
               ctl_text_of(last, "reason"));
}

// ---- data -----------------------------------------------------------------------------------------------------------

void ctl_show_inventory(const json_t *inventory)
{
    const json_t *places = json_object_get(inventory, "places");
    struct ctl_table t = {.right = 0xfe};
    TABLE_HEAD(&t, "NAME", "TOPICS", "DATA LEDGERS", "CURSOR LEDGERS", "BYTES", "COPIES", "COPIES' BYTES", "WAITING DELETES");
    for (size_t i = 0; i < json_array_size(places); i++) {
        const json_t *place = json_array_get(places, i);
        cell_text(&t, place, "name");
        cell_integer(&t, place, "topics");
        cell_integer(&t, place, "dataLedgers");
        cell_integer(&t, place, "cursorLedgers");
        cell_size(&t, place, "bytes");
        cell_integer(&t, place, "copies");
        cell_size(&t, place, "copyBytes");
        cell_integer(&t, place, "pendingDeletes");
    }
    ctl_table_print(&t, stdout);
    if (ctl_integer_of(inventory, "unknown"))
        printf("%" PRId64 " ledgers are in a bookie cluster that is not registered: register it again\n",
               ctl_integer_of(inventory, "unknown"));
}

void ctl_show_failures(const json_t *failures)
{
    struct ctl_table t = {.right = 1u << 2 | 1u << 3 | 1u << 5};
    if (json_array_size(failures) == 0) {
        printf("nothing has failed\n");
        return;
    }
    TABLE_HEAD(&t, "TOPIC", "CURSOR", "LEDGER", "ENTRY", "CLUSTER", "TRIES", "AT", "REASON");
    for (size_t i = 0; i < json_array_size(failures); i++) {
        const json_t *failure = json_array_get(failures, i);
        cell_text(&t, failure, "topic");
        cell_text(&t, failure, "cursor");
        cell_integer(&t, failure, "ledger");
        cell_integer(&t, failure, "entry");
        cell_text(&t, failure, "place");
        cell_integer(&t, failure, "tries");
        cell_date(&t, failure, "at");
        cell_text(&t, failure, "reason");
    }
    ctl_table_print(&t, stdout);
}

void ctl_show_verify(const json_t *verify)
{
    const json_t *bad = json_object_get(verify, "bad");
    struct ctl_table t = {0};
    line_text(&t, "ledgers", verify, "ledgers");
    line_text(&t, "entries", verify, "entries");
    line_size(&t, "bytes", verify, "bytes");
    ctl_table_print(&t, stdout);
    print_items("bad      ", bad);
    if (json_array_size(bad) == 0)
        printf("each is what was moved\n");
    else
        printf("%zu differ from what was moved: do not clean up; see the guide (docs/switching-storage.md)\n",
               json_array_size(bad));
}

void ctl_show_safe_to_release(const json_t *answer)
{
    if (json_is_true(json_object_get(answer, "safe")))
        printf("safe: nothing needs it any more; 'oxbowctl bookie-clusters unregister' takes it out\n");
    else
        printf("not safe:\n");
    print_items("  ", json_object_get(answer, "reasons"));
}

static void show_items(const json_t *items)
{
    struct ctl_table t = {.right = 1u << 1 | 1u << 2 | 1u << 3};
    TABLE_HEAD(&t, "CLUSTER", "LEDGER", "PHYSICAL", "BYTES", "SINCE", "DUE", "TOPIC");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        cell_text(&t, item, "place");
        cell_integer(&t, item, "ledger");
        cell_integer(&t, item, "physical");
        cell_size(&t, item, "bytes");
        cell_date(&t, item, "since");
        cell_date(&t, item, "due");
        cell_text(&t, item, "topic");
    }
    ctl_table_print(&t, stdout);
}

void ctl_show_cleanup_targets(const json_t *items)
{
    if (json_array_size(items) == 0)
        printf("nothing is to be cleaned up\n");
    else
        show_items(items);
}

void ctl_show_cleanup(const json_t *answer)
{
    const json_t *items = json_object_get(answer, "items");
    bool dry_run = json_is_true(json_object_get(answer, "dryRun"));
    if (json_array_size(items) > 0)
        show_items(items);
    if (dry_run)
        printf("%zu would be deleted; nothing was\n", json_array_size(items));
    else
        printf("deleted %" PRId64 ", left %" PRId64 "\n", ctl_integer_of(answer, "deleted"), ctl_integer_of(answer, "left"));
}
