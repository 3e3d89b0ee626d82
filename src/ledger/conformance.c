// conformance.c - the suite for places: every test starts with an empty place.
#include "ledger/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void conformance_done(struct ox_op *op)
{
    (void)op;
}

static void conformance_init(struct ox_conformance *c, struct ox_op *op)
{
    ox_op_init(op, c->place->loop, conformance_done, "conformance");
}

static struct ox_kv conformance_custom(const char *owner)
{
    struct ox_kv kv = {0};
    ox_kv_set(&kv, "application", "pulsar");
    ox_kv_set(&kv, "pulsar/managed-ledger", owner);
    return kv;
}

static enum ox_err conformance_create(struct ox_conformance *c, int64_t id, const char *owner, struct ox_ledger **ret)
{
    struct ox_ledger_create op = {0};
    struct ox_kv custom = conformance_custom(owner);
    conformance_init(c, &op.op);
    ox_ledger_create(c->place, &op, id, &custom);
    enum ox_err err = c->wait(c, &op.op);
    ox_kv_fini(&custom);
    *ret = op.ledger;
    return err;
}

static enum ox_err conformance_open(struct ox_conformance *c, int64_t id, enum ox_open_mode mode, const char *owner,
                                    struct ox_ledger **ret)
{
    struct ox_ledger_open op = {0};
    struct ox_kv custom = conformance_custom(owner);
    conformance_init(c, &op.op);
    ox_ledger_open(c->place, &op, id, mode, &custom);
    enum ox_err err = c->wait(c, &op.op);
    ox_kv_fini(&custom);
    *ret = op.ledger;
    return err;
}

static void conformance_start_append(struct ox_conformance *c, struct ox_ledger *l, struct ox_append *a, int64_t entry,
                                     const char *text)
{
    *a = (struct ox_append){.entry = entry, .part_count = 2};
    size_t half = strlen(text) / 2;
    a->parts[0] = ox_buf_static(text, half);
    a->parts[1] = ox_buf_static(text + half, strlen(text) - half);
    conformance_init(c, &a->op);
    ox_ledger_append(l, a);
}

static enum ox_err conformance_append(struct ox_conformance *c, struct ox_ledger *l, int64_t entry, const char *text)
{
    struct ox_append a;
    conformance_start_append(c, l, &a, entry, text);
    return c->wait(c, &a.op);
}

static enum ox_err conformance_read(struct ox_conformance *c, struct ox_ledger *l, struct ox_read *r, int64_t first,
                                    int64_t last, uint64_t bytes_max)
{
    *r = (struct ox_read){.first = first, .last = last, .bytes_max = bytes_max};
    conformance_init(c, &r->op);
    ox_ledger_read(l, r);
    return c->wait(c, &r->op);
}

static enum ox_err conformance_close(struct ox_conformance *c, struct ox_ledger *l, struct ox_ledger_close *op)
{
    *op = (struct ox_ledger_close){0};
    conformance_init(c, &op->op);
    ox_ledger_close(l, op);
    return c->wait(c, &op->op);
}

static enum ox_err conformance_delete(struct ox_conformance *c, int64_t id, const char *owner)
{
    struct ox_ledger_delete op = {0};
    struct ox_kv custom = conformance_custom(owner);
    conformance_init(c, &op.op);
    ox_ledger_delete(c->place, &op, id, &custom);
    enum ox_err err = c->wait(c, &op.op);
    ox_kv_fini(&custom);
    return err;
}

static void conformance_expect(struct ox_conformance *c, struct ox_ledger *l, int64_t entry, const char *text)
{
    struct ox_read r;
    assert_int_equal(conformance_read(c, l, &r, entry, entry, 1 << 20), OX_OK);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.entries[0].len, strlen(text));
    assert_true(r.entries[0].len == 0 || memcmp(r.entries[0].data, text, strlen(text)) == 0);
    ox_read_fini(&r);
}

static void test_create_append_read(struct ox_conformance *c)
{
    struct ox_ledger *l, *again;
    assert_int_equal(conformance_create(c, 7, "t", &l), OX_OK);
    assert_true(l->writer);
    assert_int_equal(l->info.last_entry, -1);
    assert_int_equal(conformance_create(c, 7, "t", &again), OX_E_LEDGER_EXISTS);
    assert_int_equal(conformance_append(c, l, 0, "hello"), OX_OK);
    assert_int_equal(conformance_append(c, l, 1, "world!"), OX_OK);
    assert_int_equal(l->info.last_entry, 1);
    assert_int_equal(l->info.length, 11);
    conformance_expect(c, l, 0, "hello");
    conformance_expect(c, l, 1, "world!");
    ox_ledger_release(l);
}

#define PIPELINE 200
struct pipeline {
    struct ox_append appends[PIPELINE];
    int64_t next;
};

static void pipeline_done(struct ox_op *op)
{
    struct ox_append *a = CONTAINER_OF(op, struct ox_append, op);
    struct pipeline *p = (struct pipeline *)(void *)(a - a->entry);
    assert_int_equal(op->err, OX_OK);
    assert_int_equal(a->entry, p->next);
    p->next++;
}

static void test_pipelined_appends_complete_in_order(struct ox_conformance *c)
{
    struct ox_ledger *l;
    char text[32];
    struct pipeline *p = ox_malloc(sizeof *p);
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    for (int64_t i = 0; i < PIPELINE; i++) {
        p->appends[i] = (struct ox_append){.entry = i, .part_count = 1};
        snprintf(text, sizeof text, "entry %d", (int)i);
        p->appends[i].parts[0] = ox_buf_copy(text, strlen(text));
        ox_op_init(&p->appends[i].op, c->place->loop, pipeline_done, "append");
        ox_ledger_append(l, &p->appends[i]);
        assert_int_equal(p->next, 0); // never inside the call
    }
    assert_int_equal(c->wait(c, &p->appends[PIPELINE - 1].op), OX_OK);
    assert_int_equal(p->next, PIPELINE);
    struct ox_read r;
    assert_int_equal(conformance_read(c, l, &r, 0, PIPELINE - 1, 1 << 20), OX_OK);
    for (int64_t i = 0; i < PIPELINE; i++) {
        assert_true(ox_buf_equal(r.entries[i], p->appends[i].parts[0]));
        ox_buf_unref(&p->appends[i].parts[0]);
    }
    assert_int_equal(r.count, PIPELINE);
    ox_read_fini(&r);
    ox_ledger_release(l);
    ox_free(p);
}

static void test_read_ranges_and_limits(struct ox_conformance *c)
{
    struct ox_ledger *l;
    struct ox_read r;
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    assert_int_equal(conformance_read(c, l, &r, 0, 0, 100), OX_E_NO_ENTRY);
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(conformance_append(c, l, i, "0123456789"), OX_OK);
    assert_int_equal(conformance_read(c, l, &r, 3, 5, 1000), OX_OK);
    assert_int_equal(r.count, 3);
    ox_read_fini(&r);
    assert_int_equal(conformance_read(c, l, &r, 8, 100, 1000), OX_OK); // capped by the last confirmed
    assert_int_equal(r.count, 2);
    ox_read_fini(&r);
    assert_int_equal(conformance_read(c, l, &r, 0, 9, 25), OX_OK); // stops after the one that passes the limit
    assert_int_equal(r.count, 3);
    ox_read_fini(&r);
    assert_int_equal(conformance_read(c, l, &r, 0, 9, 0), OX_OK); // at least one
    assert_int_equal(r.count, 1);
    ox_read_fini(&r);
    assert_int_equal(conformance_read(c, l, &r, 10, 12, 1000), OX_E_NO_ENTRY);
    ox_ledger_release(l);
}

static void test_close_is_final(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    struct ox_ledger_close close;
    struct ox_append pending;
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    assert_int_equal(conformance_append(c, l, 0, "a"), OX_OK);
    conformance_start_append(c, l, &pending, 1, "bb"); // completes before the close
    assert_int_equal(conformance_close(c, l, &close), OX_OK);
    assert_int_equal(pending.op.err, OX_OK);
    assert_int_equal(close.last_entry, 1);
    assert_int_equal(close.length, 3);
    assert_int_equal(conformance_append(c, l, 2, "c"), OX_E_CLOSED);
    conformance_expect(c, l, 1, "bb"); // the handle reads on
    ox_ledger_release(l);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_RECOVER, "t", &reader), OX_OK);
    assert_int_equal(reader->info.state, OX_LEDGER_CLOSED);
    assert_int_equal(reader->info.last_entry, 1);
    assert_int_equal(reader->info.length, 3);
    ox_ledger_release(reader);
}

static void test_recovery_fences_the_writer(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    struct ox_ledger_close close;
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    assert_int_equal(conformance_append(c, l, 0, "a"), OX_OK);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_RECOVER, "t", &reader), OX_OK);
    assert_int_equal(reader->info.state, OX_LEDGER_CLOSED);
    assert_int_equal(reader->info.last_entry, 0);
    assert_int_equal(conformance_append(c, l, 1, "b"), OX_E_FENCED);
    assert_int_equal(conformance_append(c, l, 1, "b"), OX_E_FENCED);
    assert_int_equal(conformance_close(c, l, &close), OX_E_FENCED);
    assert_int_equal(reader->info.last_entry, 0);
    ox_ledger_release(l);
    ox_ledger_release(reader);
}

static void test_fencing_keeps_what_was_acknowledged(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    struct ox_append appends[50];
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    for (int64_t i = 0; i < 50; i++)
        conformance_start_append(c, l, &appends[i], i, "x");
    assert_int_equal(conformance_open(c, 1, OX_OPEN_RECOVER, "t", &reader), OX_OK);
    int64_t acknowledged = -1;
    for (int64_t i = 0; i < 50; i++) {
        enum ox_err err = c->wait(c, &appends[i].op);
        assert_true(err == OX_OK || err == OX_E_FENCED);
        if (err == OX_OK)
            acknowledged = i;
    }
    assert_true(reader->info.last_entry >= acknowledged);
    for (int64_t i = 0; i <= acknowledged; i++)
        conformance_expect(c, reader, i, "x");
    ox_ledger_release(l);
    ox_ledger_release(reader);
}

static void test_read_only_open_follows_the_writer(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    struct ox_read r;
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK);
    assert_int_equal(conformance_append(c, l, 0, "a"), OX_OK);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_READ_ONLY, "t", &reader), OX_OK);
    assert_int_equal(reader->info.state, OX_LEDGER_OPEN);
    assert_int_equal(reader->info.last_entry, 0);
    conformance_expect(c, reader, 0, "a");
    assert_int_equal(conformance_read(c, reader, &r, 1, 1, 100), OX_E_NO_ENTRY);
    assert_int_equal(conformance_append(c, l, 1, "b"), OX_OK); // not fenced
    ox_ledger_release(reader);
    ox_ledger_release(l);
}

static void test_open_checks_identity(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    assert_int_equal(conformance_create(c, 1, "mine", &l), OX_OK);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_RECOVER, "other", &reader), OX_E_IDENTITY_MISMATCH);
    assert_int_equal(conformance_append(c, l, 0, "a"), OX_OK); // not fenced by a stranger
    assert_int_equal(conformance_open(c, 2, OX_OPEN_READ_ONLY, "mine", &reader), OX_E_NO_LEDGER);
    ox_ledger_release(l);
}

static void test_delete_checks_owner(struct ox_conformance *c)
{
    struct ox_ledger *l, *reader;
    struct ox_ledger_close close;
    assert_int_equal(conformance_create(c, 1, "mine", &l), OX_OK);
    assert_int_equal(conformance_append(c, l, 0, "a"), OX_OK);
    assert_int_equal(conformance_delete(c, 1, "mine"), OX_E_BUSY);
    assert_int_equal(conformance_close(c, l, &close), OX_OK);
    ox_ledger_release(l);
    assert_int_equal(conformance_delete(c, 1, "other"), OX_E_IDENTITY_MISMATCH);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_READ_ONLY, "mine", &reader), OX_OK);
    conformance_expect(c, reader, 0, "a");
    ox_ledger_release(reader);
    assert_int_equal(conformance_delete(c, 1, "mine"), OX_OK);
    assert_int_equal(conformance_delete(c, 1, "mine"), OX_E_NO_LEDGER);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_READ_ONLY, "mine", &reader), OX_E_NO_LEDGER);
    c->reopen(c);
    assert_int_equal(conformance_open(c, 1, OX_OPEN_READ_ONLY, "mine", &reader), OX_E_NO_LEDGER);
    assert_int_equal(conformance_delete(c, 77, "mine"), OX_E_NO_LEDGER);
}

static size_t conformance_count(struct ox_conformance *c, size_t page, int64_t *ret_last)
{
    size_t count = 0;
    int64_t after = -1;
    for (;;) {
        struct ox_ledger_list l = {.after = after, .max = page};
        conformance_init(c, &l.op);
        ox_ledger_list(c->place, &l);
        assert_int_equal(c->wait(c, &l.op), OX_OK);
        for (size_t i = 0; i < l.count; i++) {
            assert_true(l.items[i].id > after);
            assert_string_equal(ox_kv_find(&l.items[i].custom, "application"), "pulsar");
            after = l.items[i].id;
        }
        size_t got = l.count;
        count += got;
        ox_ledger_list_fini(&l);
        if (got < page)
            break;
    }
    *ret_last = after;
    return count;
}

static void test_many_ledgers_are_listed_in_pages(struct ox_conformance *c)
{
    struct ox_ledger *l;
    int64_t last;
    assert_int_equal(conformance_count(c, 10, &last), 0);
    for (int64_t id = 1; id <= 1000; id++) {
        assert_int_equal(conformance_create(c, id, "t", &l), OX_OK);
        assert_int_equal(conformance_append(c, l, 0, "x"), OX_OK);
        ox_ledger_release(l);
        if (id == 500)
            c->reopen(c);
    }
    assert_int_equal(conformance_count(c, 64, &last), 1000);
    assert_int_equal(last, 1000);
    for (int64_t id = 1; id <= 1000; id += 2)
        assert_int_equal(conformance_delete(c, id, "t"), OX_OK);
    assert_int_equal(conformance_count(c, 64, &last), 500);
    c->reopen(c);
    assert_int_equal(conformance_count(c, 500, &last), 500);
    for (int64_t id = 2; id <= 1000; id += 2) {
        assert_int_equal(conformance_open(c, id, OX_OPEN_RECOVER, "t", &l), OX_OK);
        conformance_expect(c, l, 0, "x");
        ox_ledger_release(l);
    }
}

static int64_t conformance_next_id(struct ox_conformance *c)
{
    struct ox_next_id op = {0};
    conformance_init(c, &op.op);
    ox_place_next_id(c->place, &op);
    assert_int_equal(c->wait(c, &op.op), OX_OK);
    return op.id;
}

static void test_ids_only_rise(struct ox_conformance *c)
{
    int64_t last = 0;
    for (int i = 0; i < 2500; i++) {
        int64_t id = conformance_next_id(c);
        assert_true(id > last);
        last = id;
        if (i % 1000 == 999)
            c->reopen(c);
    }
    struct ox_op push;
    conformance_init(c, &push);
    ox_place_push_id(c->place, &push, last + 1000000);
    assert_int_equal(c->wait(c, &push), OX_OK);
    c->reopen(c);
    assert_true(conformance_next_id(c) > last + 1000000);
    conformance_init(c, &push);
    ox_place_push_id(c->place, &push, 5); // pushing down does nothing
    assert_int_equal(c->wait(c, &push), OX_OK);
    assert_true(conformance_next_id(c) > last + 1000000);
}

static void test_identity_is_kept(struct ox_conformance *c)
{
    char before[OX_IDENTITY_BYTES];
    memcpy(before, c->place->identity, sizeof before);
    assert_int_equal(strlen(before), OX_IDENTITY_BYTES - 1);
    c->reopen(c);
    assert_string_equal(c->place->identity, before);
}

// Whoever wants to close the place sees that a call is under way, or the handle that it has ended with.
static void test_calls_count_until_their_handle_does(struct ox_conformance *c)
{
    struct ox_ledger_create create = {0};
    struct ox_ledger_open open = {0};
    struct ox_kv custom = conformance_custom("t");
    assert_int_equal(c->place->busy, 0);
    conformance_init(c, &create.op);
    ox_ledger_create(c->place, &create, 1, &custom);
    assert_int_equal(c->place->busy, 1);
    assert_int_equal(c->wait(c, &create.op), OX_OK);
    assert_int_equal(c->place->busy, 0);
    assert_int_equal(c->place->handles.count, 1);
    ox_ledger_release(create.ledger);
    c->reopen(c); // so that it has to be looked for
    conformance_init(c, &open.op);
    ox_ledger_open(c->place, &open, 1, OX_OPEN_RECOVER, &custom);
    assert_int_equal(c->place->busy, 1);
    assert_int_equal(c->wait(c, &open.op), OX_OK);
    assert_int_equal(c->place->busy, 0);
    assert_int_equal(c->place->handles.count, 1);
    ox_ledger_release(open.ledger);
    ox_kv_fini(&custom);
}

static void test_empty_ledgers_and_zero_bytes(struct ox_conformance *c)
{
    struct ox_ledger *l;
    struct ox_ledger_close close;
    assert_int_equal(conformance_create(c, 1, "t", &l), OX_OK); // closed with nothing in it
    assert_int_equal(conformance_close(c, l, &close), OX_OK);
    assert_int_equal(close.last_entry, -1);
    assert_int_equal(close.length, 0);
    ox_ledger_release(l);
    assert_int_equal(conformance_create(c, 2, "t", &l), OX_OK); // one entry of zero bytes
    assert_int_equal(conformance_append(c, l, 0, ""), OX_OK);
    assert_int_equal(conformance_close(c, l, &close), OX_OK);
    assert_int_equal(close.last_entry, 0);
    ox_ledger_release(l);
    assert_int_equal(conformance_create(c, 3, "t", &l), OX_OK); // never closed
    ox_ledger_release(l);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(conformance_open(c, 1, OX_OPEN_RECOVER, "t", &l), OX_OK);
        assert_int_equal(l->info.last_entry, -1);
        assert_int_equal(l->info.length, 0);
        ox_ledger_release(l);
        assert_int_equal(conformance_open(c, 2, OX_OPEN_RECOVER, "t", &l), OX_OK);
        assert_int_equal(l->info.last_entry, 0);
        assert_int_equal(l->info.length, 0);
        conformance_expect(c, l, 0, "");
        ox_ledger_release(l);
        assert_int_equal(conformance_open(c, 3, OX_OPEN_RECOVER, "t", &l), OX_OK);
        assert_int_equal(l->info.state, OX_LEDGER_CLOSED);
        assert_int_equal(l->info.last_entry, -1);
        ox_ledger_release(l);
        c->reopen(c);
    }
}

static void test_everything_is_there_after_a_reopen(struct ox_conformance *c)
{
    struct ox_ledger *l;
    char text[64];
    assert_int_equal(conformance_create(c, 5, "t", &l), OX_OK);
    for (int64_t i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "entry number %d", (int)i);
        assert_int_equal(conformance_append(c, l, i, text), OX_OK);
    }
    ox_ledger_release(l); // not closed: the next opener recovers it
    c->reopen(c);
    assert_int_equal(conformance_open(c, 5, OX_OPEN_READ_ONLY, "t", &l), OX_OK);
    assert_int_equal(l->info.state, OX_LEDGER_OPEN);
    assert_int_equal(l->info.last_entry, 99);
    ox_ledger_release(l);
    assert_int_equal(conformance_open(c, 5, OX_OPEN_RECOVER, "t", &l), OX_OK);
    assert_int_equal(l->info.state, OX_LEDGER_CLOSED);
    assert_int_equal(l->info.last_entry, 99);
    assert_string_equal(ox_kv_find(&l->info.custom, "pulsar/managed-ledger"), "t");
    for (int64_t i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "entry number %d", (int)i);
        conformance_expect(c, l, i, text);
    }
    ox_ledger_release(l);
}

const struct ox_conformance_test ox_conformance_tests[] = {
    {"create_append_read", test_create_append_read},
    {"pipelined_appends_complete_in_order", test_pipelined_appends_complete_in_order},
    {"read_ranges_and_limits", test_read_ranges_and_limits},
    {"close_is_final", test_close_is_final},
    {"recovery_fences_the_writer", test_recovery_fences_the_writer},
    {"fencing_keeps_what_was_acknowledged", test_fencing_keeps_what_was_acknowledged},
    {"read_only_open_follows_the_writer", test_read_only_open_follows_the_writer},
    {"open_checks_identity", test_open_checks_identity},
    {"delete_checks_owner", test_delete_checks_owner},
    {"many_ledgers_are_listed_in_pages", test_many_ledgers_are_listed_in_pages},
    {"ids_only_rise", test_ids_only_rise},
    {"identity_is_kept", test_identity_is_kept},
    {"calls_count_until_their_handle_does", test_calls_count_until_their_handle_does},
    {"empty_ledgers_and_zero_bytes", test_empty_ledgers_and_zero_bytes},
    {"everything_is_there_after_a_reopen", test_everything_is_there_after_a_reopen},
    {NULL, NULL},
};
