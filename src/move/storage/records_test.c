// records_test.c - names, and the JSON of each node: what is read, what is kept, what is refused.
#include "move/storage/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct ox_buf text_buf(const char *text)
{
    return ox_buf_static(text, strlen(text));
}

static void assert_text(struct ox_buf take_value, const char *want)
{
    char *text = ox_strndup((const char *)take_value.data, take_value.len);
    assert_string_equal(text, want);
    ox_free(text);
    ox_buf_unref(&take_value);
}

static void test_names_allow_and_refuse(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a", "default", "bk-2.eu_west", "0", "A.B", "statuses", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      "a b",
                                      "a/b",
                                      "a%2F",
                                      "\xc3\xa4",
                                      "switch-target",
                                      "bootstrap",
                                      "orchestrator",
                                      "acks",
                                      "switch",
                                      "status",
                                      "read-mode",
                                      "precheck",
                                      "cleanup",
                                      "cleanup-targets",
                                      "internal",
                                      "close-client",
                                      "plan",
                                      "inventory",
                                      "failures",
                                      "move-data",
                                      "throttle",
                                      "pause",
                                      "resume",
                                      "abort",
                                      "rollback",
                                      "verify",
                                      "safe-to-release",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < OX_COUNT(good); i++) {
        const char *why = NULL;
        assert_true(storage_name_valid(good[i], &why));
        assert_null(why);
    }
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        const char *why = NULL;
        assert_false(storage_name_valid(bad[i], &why));
        assert_non_null(why);
    }
}

// fault: G5
static void test_entry_keeps_unknown_fields(void **state)
{
    (void)state;
    struct storage_entry e;
    assert_int_equal(
        storage_entry_read(
            text_buf("{\"zone\":{\"x\":1},\"name\":\"b\",\"metadataServiceUri\":\"sim:b\",\"status\":\"STANDBY\"}"), &e),
        OX_OK);
    assert_string_equal(e.uri, "sim:b");
    assert_null(e.identity);
    struct storage_place p = {.name = e.name, .uri = e.uri, .status = e.status, .raw = e.raw, .identity = "id-1"};
    p.status = (char *)(uintptr_t) "ACTIVE";
    assert_text(storage_entry_text(&p), "{\"zone\":{\"x\":1},\"name\":\"b\",\"metadataServiceUri\":\"sim:b\","
                                        "\"status\":\"ACTIVE\",\"identity\":\"id-1\"}");
    storage_entry_fini(&e);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"metadataServiceUri\":1}",
        "{\"metadataServiceUri\":\"a\",\"status\":2}",
        "x",
        "{\"metadataServiceUri\":\"a\",\"identity\":\"0123456789012345678901234567890123456789\"}"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(storage_entry_read(text_buf(bad[i]), &e), OX_E_CORRUPT);
}

// fault: A9
static void test_directive_in_both_forms(void **state)
{
    (void)state;
    struct storage_directive d;
    assert_int_equal(storage_directive_read(text_buf("b\norigin=http://one:8080"), 4, &d), OX_OK);
    assert_string_equal(d.target, "b");
    assert_string_equal(d.origin, "http://one:8080");
    assert_int_equal(d.epoch, 5);
    assert_true(d.partial);
    assert_string_equal(d.switch_id, "epoch-5");
    storage_directive_fini(&d);
    assert_int_equal(storage_directive_read(text_buf(" b \r\n"), 0, &d), OX_OK);
    assert_string_equal(d.target, "b");
    assert_null(d.origin);
    storage_directive_fini(&d);
    assert_int_equal(
        storage_directive_read(
            text_buf("{\"target\":\"c\",\"extra\":[1],\"epoch\":9,\"ts\":5,\"switchId\":\"ab-1\",\"previous\":\"b\"}"), 2, &d),
        OX_OK);
    assert_false(d.partial);
    assert_int_equal(d.epoch, 9);
    assert_string_equal(d.previous, "b");
    assert_text(storage_directive_text(&d),
                "{\"target\":\"c\",\"extra\":[1],\"epoch\":9,\"ts\":5,\"switchId\":\"ab-1\",\"previous\":\"b\"}");
    storage_directive_fini(&d);
    assert_int_equal(storage_directive_read(
                         text_buf("{\"target\":\"c\",\"origin\":\"x\",\"epoch\":3,\"ts\":1,\"switchId\":\"../x\"}"), 2, &d),
                     OX_OK);
    assert_true(d.partial); // an id that cannot be part of a path is not one
    assert_string_equal(d.switch_id, "epoch-3");
    storage_directive_fini(&d);
}

static void test_directive_refuses(void **state)
{
    (void)state;
    struct storage_directive d;
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"epoch\":1}",
                                      "{\"target\":\"a b\"}",
                                      "{\"target\":\"a\",\"epoch\":-1}",
                                      "{\"target\":\"a\",\"epoch\":\"1\"}",
                                      "switch-target",
                                      "\n\n",
                                      "a/b",
                                      "{\"target\":\"a\",\"previous\":\"..\"}",
                                      "\xff\xfe"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(storage_directive_read(text_buf(bad[i]), 0, &d), OX_E_CORRUPT);
}

static void test_header_round_trip(void **state)
{
    (void)state;
    struct storage_header h = {.switch_id = (char *)(uintptr_t) "s-1",
                               .to = (char *)(uintptr_t) "b",
                               .from = (char *)(uintptr_t) "a",
                               .epoch = 3,
                               .state = STORAGE_PAUSED,
                               .move_data = true,
                               .started_ms = 7,
                               .bytes_per_s = 1000,
                               .ops_per_s = 0,
                               .failures = 2};
    json_t *raw = json_pack("{s:i}", "future", 1);
    struct ox_buf text = storage_header_text(&h, raw);
    json_decref(raw);
    struct storage_header r;
    assert_int_equal(storage_header_read(text, &r), OX_OK);
    assert_non_null(memmem(text.data, text.len, "\"future\":1", 10));
    ox_buf_unref(&text);
    assert_int_equal(r.state, STORAGE_PAUSED);
    assert_true(r.move_data);
    assert_int_equal(r.epoch, 3);
    assert_int_equal(r.bytes_per_s, 1000);
    assert_int_equal(r.failures, 2);
    assert_string_equal(r.from, "a");
    storage_header_fini(&r);
    static const char *const bad[] = {"", "{}", "{\"switchId\":\"s\",\"to\":\"b\"}",
                                      "{\"switchId\":\"s\",\"to\":\"b\",\"state\":\"WHAT\"}",
                                      "{\"switchId\":\"a/b\",\"to\":\"b\",\"state\":\"DONE\"}"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(storage_header_read(text_buf(bad[i]), &r), OX_E_CORRUPT);
}

static void test_bootstrap_and_failures(void **state)
{
    (void)state;
    struct storage_bootstrap b;
    assert_int_equal(storage_bootstrap_read(text_buf("{\"bootstrapClusterName\":\"default\",\"recordedAt\":5}"), &b), OX_OK);
    assert_int_equal(b.max_ledger, -1);
    assert_text(storage_bootstrap_text(&b), "{\"bootstrapClusterName\":\"default\",\"recordedAt\":5}");
    storage_bootstrap_fini(&b);
    assert_int_equal(storage_bootstrap_read(text_buf("{\"recordedAt\":5}"), &b), OX_E_CORRUPT);
    struct ox_list list;
    ox_list_init(&list);
    assert_int_equal(storage_failures_read(text_buf("[{\"topic\":\"t\",\"cursor\":null,\"place\":\"a\",\"ledger\":4,"
                                                    "\"entry\":-1,\"reason\":\"r\",\"tries\":2,\"at\":1}]"),
                                           &list),
                     OX_OK);
    assert_int_equal(list.count, 1);
    struct storage_failure *f = CONTAINER_OF(ox_list_pop_front(&list), struct storage_failure, link);
    assert_int_equal(f->ledger, 4);
    assert_int_equal(f->entry, -1);
    json_t *json = storage_failure_json(f);
    assert_true(json_is_null(json_object_get(json, "cursor")));
    json_decref(json);
    storage_failure_free(f);
    assert_int_equal(storage_failures_read(text_buf("[{}]"), &list), OX_E_CORRUPT);
    assert_int_equal(list.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_allow_and_refuse),  cmocka_unit_test(test_entry_keeps_unknown_fields),
        cmocka_unit_test(test_directive_in_both_forms), cmocka_unit_test(test_directive_refuses),
        cmocka_unit_test(test_header_round_trip),       cmocka_unit_test(test_bootstrap_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
