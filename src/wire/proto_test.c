// proto_test.c - the arena's limit and guarded unpacking.
#include "wire/proto.h"

#include <stdalign.h>

#include "base/str.h"
#include "wire/test_hex.h"

static void test_arena_refuses_beyond_its_limit_and_starts_again(void **state)
{
    (void)state;
    struct ox_arena arena;
    ox_arena_init(&arena, 10000);
    for (int round = 0; round < 3; round++) {
        char *a = ox_arena_alloc(&arena, 1), *b = ox_arena_alloc(&arena, 9000);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal((uintptr_t)b % alignof(max_align_t), 0);
        memset(b, 1, 9000);
        assert_false(arena.over);
        assert_null(ox_arena_alloc(&arena, 1000));
        assert_true(arena.over);
        assert_null(ox_arena_alloc(&arena, SIZE_MAX));
        assert_null(ox_arena_calloc(&arena, SIZE_MAX / 2, 3));
        ox_arena_reset(&arena);
        assert_false(arena.over);
    }
    assert_string_equal(ox_arena_strndup(&arena, "abc", 2), "ab");
    ox_arena_fini(&arena);
}

static void test_unpack_reads_a_message(void **state)
{
    (void)state;
    struct ox_arena arena;
    ox_arena_init(&arena, 4096);
    struct ox_buf bytes = hex("0a01 \"t\" 1005 1807 2203 \"abc\"");
    Oxpb__CommandProducer *p;
    assert_int_equal(ox_proto_unpack(&oxpb__command_producer__descriptor, &arena, bytes.data, bytes.len, &p), OX_OK);
    assert_string_equal(p->topic, "t");
    assert_string_equal(p->producer_name, "abc");
    assert_true(p->producer_id == 5 && p->request_id == 7 && !p->has_epoch && p->user_provided_producer_name);
    ox_buf_unref(&bytes);
    ox_arena_fini(&arena);
}

static void test_unpack_refuses_missing_fields_and_bad_strings(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0a01 \"t\" 1005",
        "0a01 00 1005 1807",
        "0a01 ff 1005 1807",
        "0a05 \"t\" 1005 1807",
        "0801 1005 1807",
        "0a01 \"t\" 1005 18",
    };
    struct ox_arena arena;
    ox_arena_init(&arena, 4096);
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        struct ox_buf bytes = hex(bad[i]);
        Oxpb__CommandProducer *p;
        assert_int_equal(ox_proto_unpack(&oxpb__command_producer__descriptor, &arena, bytes.data, bytes.len, &p),
                         OX_E_MALFORMED);
        ox_buf_unref(&bytes);
    }
    ox_arena_fini(&arena);
}

static void test_unpack_is_stopped_by_the_arenas_limit(void **state)
{
    (void)state;
    struct ox_arena arena;
    ox_arena_init(&arena, 20000);
    struct ox_str bytes = {0};
    ox_str_add(&bytes, "\x08\x01", 2);
    for (int i = 0; i < 1000; i++)
        ox_str_add(&bytes, "\x12\x04\x08\x01\x10\x01", 6);
    Oxpb__CommandRedeliverUnacknowledgedMessages *m;
    const ProtobufCMessageDescriptor *type = &oxpb__command_redeliver_unacknowledged_messages__descriptor;
    assert_int_equal(ox_proto_unpack(type, &arena, bytes.data, bytes.len, &m), OX_E_TOO_BIG);
    arena.limit = 1000000;
    ox_arena_reset(&arena);
    assert_int_equal(ox_proto_unpack(type, &arena, bytes.data, bytes.len, &m), OX_OK);
    assert_int_equal(m->n_message_ids, 1000);
    ox_str_fini(&bytes);
    ox_arena_fini(&arena);
}

// A MessageIdData in a MessageIdData in ..., `depth` deep.
static struct ox_buf nested_ids(int depth)
{
    struct ox_buf inner = hex("0801 1001");
    for (int i = 1; i < depth; i++) {
        Oxpb__MessageIdData id = OXPB__MESSAGE_ID_DATA__INIT;
        id.base.n_unknown_fields = 1;
        ProtobufCMessageUnknownField field = {7, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 0, NULL};
        uint8_t bytes[600];
        assert_true(inner.len < 128);
        bytes[0] = (uint8_t)inner.len;
        memcpy(bytes + 1, inner.data, inner.len);
        field.len = inner.len + 1;
        field.data = bytes;
        id.base.unknown_fields = &field;
        struct ox_buf outer = ox_proto_pack(&id.base);
        ox_buf_unref(&inner);
        inner = outer;
    }
    return inner;
}

static void test_unpack_refuses_deep_nesting(void **state)
{
    (void)state;
    struct ox_arena arena;
    ox_arena_init(&arena, 100000);
    Oxpb__MessageIdData *id;
    struct ox_buf good = nested_ids(OX_PROTO_DEPTH_MAX), bad = nested_ids(OX_PROTO_DEPTH_MAX + 1);
    assert_int_equal(ox_proto_unpack(&oxpb__message_id_data__descriptor, &arena, good.data, good.len, &id), OX_OK);
    assert_int_equal(ox_proto_unpack(&oxpb__message_id_data__descriptor, &arena, bad.data, bad.len, &id), OX_E_MALFORMED);
    ox_buf_unref(&good);
    ox_buf_unref(&bad);
    ox_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_refuses_beyond_its_limit_and_starts_again),
        cmocka_unit_test(test_unpack_reads_a_message),
        cmocka_unit_test(test_unpack_refuses_missing_fields_and_bad_strings),
        cmocka_unit_test(test_unpack_is_stopped_by_the_arenas_limit),
        cmocka_unit_test(test_unpack_refuses_deep_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
