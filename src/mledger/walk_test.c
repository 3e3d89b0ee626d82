// walk_test.c - the walk sees every ledger of every log and cursor, in bounded steps, whatever the nodes look like.
#include "mledger/fixture.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#include <string.h>

#define NAME "public/default/persistent/w"

// Everything a walk finds, a line a step: "log*: kind id@place/physical entries digest copies..., cursor", "*" if it is loaded.
struct walk_rig {
    struct world w;
    struct ox_ml_walk walk;
    size_t steps, items, most;
    struct ox_str text;
};

static void rig_init(struct walk_rig *r)
{
    *r = (struct walk_rig){0};
    world_init_two(&r->w, 1);
}

static void rig_fini(struct walk_rig *r)
{
    ox_str_fini(&r->text);
    world_fini(&r->w);
}

static void rig_note(struct walk_rig *r, const struct ox_ml_found *f)
{
    ox_str_addf(&r->text, " %s%s@%s%s%s", f->kind == OX_ML_KIND_DATA ? "data" : "cursor:", f->cursor ? f->cursor : "",
                f->place, f->known ? "" : "?", f->where.physical == f->where.id ? "" : "/other");
    if (f->kind == OX_ML_KIND_DATA)
        ox_str_addf(&r->text, f->open ? " open" : " %lld %llu", (long long)f->entries, (unsigned long long)f->bytes);
    if (f->digest)
        ox_str_addf(&r->text, " %s", f->digest);
    for (size_t i = 0; i < f->copy_count; i++)
        ox_str_addf(&r->text, " +%s:%lld", f->copies[i].place, (long long)f->copies[i].physical);
    ox_str_adds(&r->text, ",");
}

static enum ox_err rig_step(struct walk_rig *r)
{
    world_op(&r->w, &r->walk.op);
    ox_ml_walk_next(&r->walk);
    enum ox_err err = world_wait(&r->w, &r->walk.op);
    if (err != OX_OK || !r->walk.log)
        return err;
    r->steps++;
    r->items += r->walk.count;
    r->most = OX_MAX(r->most, r->walk.count);
    ox_str_addf(&r->text, "%s%s", r->walk.log, r->walk.loaded ? "*" : "");
    if (r->walk.log_err != OX_OK)
        ox_str_addf(&r->text, " <%s %s>", ox_err_name(r->walk.log_err), r->walk.cursor ? r->walk.cursor : "-");
    for (size_t i = 0; i < r->walk.count; i++)
        rig_note(r, &r->walk.found[i]);
    ox_str_adds(&r->text, "\n");
    return OX_OK;
}

static const char *rig_walk(struct walk_rig *r, bool cursors)
{
    r->steps = r->items = r->most = 0;
    ox_str_truncate(&r->text, 0);
    ox_ml_walk_begin(&r->w.factory, &r->walk, cursors);
    do
        assert_int_equal(rig_step(r), OX_OK);
    while (r->walk.log);
    assert_int_equal(rig_step(r), OX_OK); // and it stays at its end
    assert_null(r->walk.log);
    ox_ml_walk_end(&r->walk);
    return ox_str_get(&r->text);
}

static void make_log(struct walk_rig *r, const char *name)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s", name);
    world_node_put(&r->w, path, "\x0a\x06\x08\x07\x10\x05\x18\x0a", 8); // ledger 7: 5 entries, 10 bytes
}

// A cursor whose ledger is `ledger` (0: none).
static void make_cursor(struct walk_rig *r, const char *log, const char *node, uint8_t ledger)
{
    const uint8_t with[] = {0x08, ledger},
                  without[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s/%s", log, node);
    world_node_put(&r->w, path, ledger ? with : without, ledger ? sizeof with : sizeof without);
}

static void test_walk_of_nothing(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    assert_string_equal(rig_walk(&r, true), "");
    world_node_put(&r.w, "/managed-ledgers/public/default/persistent", "", 0); // a namespace without topics
    assert_string_equal(rig_walk(&r, true), "");
    rig_fini(&r);
}

static void test_walk_tells_where_ledgers_are(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, NAME);
    struct ox_cursor *c = world_cursor(&r.w, ml, "a/b", OX_POS_EARLIEST);
    world_cursor(&r.w, ml, "unused", OX_POS_EARLIEST);
    world_fill(&r.w, ml, 0, 5);
    assert_int_equal(world_roll(&r.w, ml), OX_OK);
    assert_int_equal(world_ack_upto(&r.w, c, (struct ox_pos){ml->ledgers[0]->where.id, 1}), OX_OK);
    assert_string_equal(rig_walk(&r, true), NAME "* data@default 5 5, data@default open, cursor:a/b@default,\n");
    assert_string_equal(rig_walk(&r, false), NAME "* data@default 5 5, data@default open,\n");
    struct ox_location from = ml->ledgers[0]->where;
    struct ox_ml_relocate op = {.log = NAME, .ledger = from.id, .from = from, .digest = "sum"};
    op.to = world_copy(&r.w, NAME, from, 1);
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *want = ox_asprintf(NAME "* data@other 5 5 sum +default:%lld, data@default open,\n", (long long)from.id);
    assert_string_equal(rig_walk(&r, false), want);
    assert_int_equal(world_close(&r.w, ml), OX_OK);
    assert_string_not_equal(rig_walk(&r, false), want); // not loaded any more
    rig_fini(&r);
}

static void test_walk_goes_through_odd_names(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    make_log(&r, "a b/ns/persistent/t%2F1");
    make_log(&r, "a b/ns/persistent/%C3%A4+*");
    make_log(&r, "public/default/persistent/__change_events");
    make_log(&r, "public/x/non-persistent/t");
    world_node_put(&r.w, "/managed-ledgers/public/default/persistent/empty", "", 0);
    make_cursor(&r, "a b/ns/persistent/t%2F1", "%24+1", 9);
    make_cursor(&r, "a b/ns/persistent/t%2F1", "none", 0);
    assert_string_equal(rig_walk(&r, true), "a b/ns/persistent/%C3%A4+* data@default 5 10,\n"
                                            "a b/ns/persistent/t%2F1 data@default 5 10, cursor:$ 1@default,\n"
                                            "public/default/persistent/__change_events data@default 5 10,\n"
                                            "public/default/persistent/empty\n"
                                            "public/x/non-persistent/t data@default 5 10,\n");
    rig_fini(&r);
}

static void test_walk_takes_many_cursors_in_several_steps(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    make_log(&r, NAME);
    make_log(&r, NAME "2");
    for (int i = 0; i < 700; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("c%d", i);
        make_cursor(&r, NAME, name, 9);
    }
    rig_walk(&r, true);
    assert_int_equal(r.items, 702);
    assert_int_equal(r.most, OX_ML_WALK_ITEMS);
    assert_int_equal(r.steps, 4);
    rig_walk(&r, false);
    assert_int_equal(r.items, 2);
    rig_fini(&r);
}

static void test_walk_takes_many_ledgers_in_several_steps(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    struct ox_record *record = ox_record_new();
    for (int64_t id = 1; id <= 600; id++) {
        ox_record_append_open(record, id);
        ox_record_seal(record, id, id, 1, 1);
        ox_record_set_ledger_property(record, id, OX_STAMP_COPIES, "other:5:1,third:6:2");
    }
    struct ox_buf node = ox_record_encode(record, true, "default");
    world_node_put(&r.w, "/managed-ledgers/" NAME, node.data, node.len);
    ox_buf_unref(&node);
    ox_record_free(record);
    make_cursor(&r, NAME, "c", 9);
    rig_walk(&r, true);
    assert_int_equal(r.items, 601);
    assert_int_equal(r.steps, 3);
    assert_non_null(strstr(ox_str_get(&r.text), "data@default 600 1 +other:5 +third:6, cursor:c@default,"));
    rig_fini(&r);
}

// What can't be understood is told, by name, and the walk goes on.
static void test_walk_passes_what_it_does_not_understand(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    world_node_put(&r.w, "/managed-ledgers/public/default/persistent/bad", "\x0a\x04\x08", 3);
    make_cursor(&r, "public/default/persistent/bad", "c", 9);
    make_log(&r, NAME);
    make_cursor(&r, NAME, "a", 9);
    world_node_put(&r.w, "/managed-ledgers/" NAME "/b", "\x08", 1);
    make_cursor(&r, NAME, "b%zz", 9);
    make_cursor(&r, NAME, "c", 9);
    assert_string_equal(rig_walk(&r, true), "public/default/persistent/bad <CORRUPT ->\n"
                                            "public/default/persistent/bad cursor:c@default,\n" //
                        NAME " data@default 5 10, cursor:a@default,\n"                          //
                        NAME " <CORRUPT b>\n"                                                   //
                        NAME " <CORRUPT b%zz>\n"                                                //
                        NAME " cursor:c@default,\n");
    assert_string_equal(rig_walk(&r, false),
                        "public/default/persistent/bad <CORRUPT ->\n" NAME " data@default 5 10,\n");
    rig_fini(&r);
}

static void put_property(struct walk_rig *r, const char *key, const char *value)
{
    struct ox_record *record = ox_record_new();
    ox_record_append_open(record, 7);
    ox_record_seal(record, 7, 5, 10, 1);
    ox_record_set_ledger_property(record, 7, key, value);
    struct ox_buf node = ox_record_encode(record, true, "default");
    world_node_put(&r->w, "/managed-ledgers/" NAME, node.data, node.len);
    ox_buf_unref(&node);
    ox_record_free(record);
}

static void test_walk_tells_places_that_are_not_registered(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    put_property(&r, OX_STAMP_PLACE, "elsewhere");
    assert_string_equal(rig_walk(&r, true), NAME " data@elsewhere? 5 10,\n");
    put_property(&r, OX_STAMP_PHYSICAL, "8");
    assert_string_equal(rig_walk(&r, true), NAME " data@default/other 5 10,\n");
    put_property(&r, OX_STAMP_PHYSICAL, "-8");
    assert_string_equal(rig_walk(&r, true), NAME " <CORRUPT ->\n" NAME "\n");
    put_property(&r, OX_STAMP_COPIES, "other:8");
    assert_string_equal(rig_walk(&r, false), NAME " <CORRUPT ->\n");
    world_other_close(&r.w);
    put_property(&r, OX_STAMP_PLACE, "other"); // known, if not open
    assert_string_equal(rig_walk(&r, true), NAME " data@other 5 10,\n");
    rig_fini(&r);
}

struct away {
    int in; // so many calls until one fails
    int failed;
};

static void meta_fails_sometimes(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct away *a = w->ctx;
    (void)write;
    (void)path;
    if (--a->in > 0)
        return;
    a->in = 3;
    a->failed++;
    fault->outcome = OX_META_FAIL_BEFORE;
}

// After an error of the store the next step goes on where the walk was: nothing is left out, nothing comes twice.
static void test_walk_goes_on_after_errors_of_the_store(void **state)
{
    (void)state;
    struct walk_rig r;
    struct away away = {.in = 1};
    rig_init(&r);
    make_log(&r, "a/b/persistent/x");
    make_log(&r, "a/b/persistent/y");
    for (int i = 0; i < 9; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("c%d", i);
        make_cursor(&r, "a/b/persistent/x", name, 9);
        make_cursor(&r, "a/b/persistent/y", name, 0);
    }
    r.w.ctx = &away;
    r.w.on_meta = meta_fails_sometimes;
    ox_ml_walk_begin(&r.w.factory, &r.walk, true);
    size_t errors = 0;
    enum ox_err err;
    do {
        err = rig_step(&r);
        assert_true(err == OX_OK || err == OX_E_DISCONNECTED);
        errors += err != OX_OK;
    } while (err != OX_OK || r.walk.log);
    ox_ml_walk_end(&r.walk);
    r.w.on_meta = NULL;
    assert_true(errors > 1 && away.failed >= (int)errors);
    assert_int_equal(r.items, 11);
    rig_fini(&r);
}

static void remove_node(struct walk_rig *r, const char *path)
{
    struct ox_meta_del del;
    world_op(&r->w, &del.op);
    ox_meta_del(r->w.meta, &del, path, OX_META_ANY);
    assert_int_equal(world_wait(&r->w, &del.op), OX_OK);
}

// Logs and cursors go while the walk is under way.
static void test_walk_minds_what_is_removed_meanwhile(void **state)
{
    (void)state;
    struct walk_rig r;
    rig_init(&r);
    make_log(&r, "a/b/persistent/x");
    make_log(&r, "a/b/persistent/y");
    make_log(&r, "a/b/persistent/z");
    make_log(&r, "a/c/persistent/v");
    ox_ml_walk_begin(&r.w.factory, &r.walk, true);
    assert_int_equal(rig_step(&r), OX_OK);
    remove_node(&r, "/managed-ledgers/a/b/persistent/y");
    remove_node(&r, "/managed-ledgers/a/c/persistent/v");
    remove_node(&r, "/managed-ledgers/a/c/persistent");
    remove_node(&r, "/managed-ledgers/a/c");
    do
        assert_int_equal(rig_step(&r), OX_OK);
    while (r.walk.log);
    ox_ml_walk_end(&r.walk);
    assert_string_equal(ox_str_get(&r.text),
                        "a/b/persistent/x data@default 5 10,\na/b/persistent/z data@default 5 10,\n");
    rig_fini(&r);
}

// What a ledger carries is what is expected of it when it is opened, copied or deleted.
static void test_walk_owner_is_what_ledgers_carry(void **state)
{
    (void)state;
    struct walk_rig r;
    struct ox_kv data = {0}, cursor = {0};
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, NAME);
    struct ox_cursor *c = world_cursor(&r.w, ml, "a/b", OX_POS_EARLIEST);
    world_fill(&r.w, ml, 0, 5);
    assert_int_equal(world_ack_upto(&r.w, c, (struct ox_pos){ml->ledgers[0]->where.id, 1}), OX_OK);
    ox_ml_owner(&r.w.factory, NAME, NULL, &data);
    ox_ml_owner(&r.w.factory, NAME, "a/b", &cursor);
    assert_true(ox_kv_contains(&ox_sim_store_find(r.w.store, ml->ledgers[0]->where.id)->custom, &data));
    assert_true(ox_kv_contains(&ox_sim_store_find(r.w.store, c->cursor_ledger)->custom, &cursor));
    assert_false(ox_kv_contains(&data, &cursor));
    ox_kv_fini(&data);
    ox_kv_fini(&cursor);
    assert_int_equal(world_close(&r.w, ml), OX_OK);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_of_nothing),
        cmocka_unit_test(test_walk_tells_where_ledgers_are),
        cmocka_unit_test(test_walk_goes_through_odd_names),
        cmocka_unit_test(test_walk_takes_many_cursors_in_several_steps),
        cmocka_unit_test(test_walk_takes_many_ledgers_in_several_steps),
        cmocka_unit_test(test_walk_passes_what_it_does_not_understand),
        cmocka_unit_test(test_walk_tells_places_that_are_not_registered),
        cmocka_unit_test(test_walk_goes_on_after_errors_of_the_store),
        cmocka_unit_test(test_walk_minds_what_is_removed_meanwhile),
        cmocka_unit_test(test_walk_owner_is_what_ledgers_carry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
