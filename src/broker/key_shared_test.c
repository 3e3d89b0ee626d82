// key_shared_test.c - Key_Shared subscriptions: the order of each key, one owner at a time, when consumers come, go and give back.
#include "broker/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/key_hash.h"
#include "broker/selector.h"
#include "wire/pulsar_frame.h"

#define KEYS 50
#define PER_KEY 4
#define CROWD 4

// A consumer that holds what it got, and checks the rules when it gets it.
struct one {
    struct world *world;
    struct ox_consumer *consumer;
    char name[16];
    struct ox_pos held[KEYS * PER_KEY];
    uint32_t numbers[KEYS * PER_KEY]; // of the messages held
    size_t held_count, got_count;
    uint32_t got[4 * KEYS * PER_KEY]; // numbers, as they came
    bool dead;
};

struct world {
    struct rig r;
    struct ox_topic *t;
    struct rig_producer p;
    struct one c[CROWD];
    uint32_t keys; // message n has key n % keys
    uint32_t sent;
    bool acked[KEYS * PER_KEY];
    bool out_of_order;
};

static bool holds(const struct one *c, uint32_t number)
{
    for (size_t i = 0; i < c->held_count; i++)
        if (c->numbers[i] == number)
            return true;
    return false;
}

// All older messages of the key are acknowledged or here, and nobody else has one of it.
static void check_key(struct one *c, uint32_t number)
{
    struct world *w = c->world;
    for (uint32_t n = number % w->keys; n < w->sent; n += w->keys) {
        assert_true(n >= number || w->acked[n] || holds(c, n));
        for (size_t i = 0; i < CROWD; i++)
            assert_true(&w->c[i] == c || !holds(&w->c[i], n));
    }
}

static void one_deliver(struct ox_consumer *consumer, const struct ox_dispatch *d)
{
    struct one *c = consumer->owner;
    struct ox_message_view view;
    assert_int_equal(ox_message_parse(d->entry, true, &view), OX_OK);
    uint32_t number = (uint32_t)rig_number(view.payload);
    assert_false(c->world->acked[number]);
    if (!c->world->out_of_order)
        check_key(c, number);
    c->held[c->held_count] = d->pos;
    c->numbers[c->held_count++] = number;
    assert_true(c->got_count < OX_COUNT(c->got));
    c->got[c->got_count++] = number;
}

static bool one_ready(struct ox_consumer *consumer)
{
    (void)consumer;
    return true;
}

static void one_closed(struct ox_consumer *consumer, enum ox_err err)
{
    struct one *c = consumer->owner;
    (void)err;
    c->consumer = NULL;
    c->held_count = 0;
}

static void one_probe(struct ox_consumer *consumer, struct ox_op *op)
{
    struct one *c = consumer->owner;
    ox_op_begin(op);
    if (c->dead) {
        ox_consumer_close(consumer);
        c->consumer = NULL;
        c->held_count = 0;
    }
    ox_op_finish(op, c->dead ? OX_E_DISCONNECTED : OX_OK);
}

static const struct ox_consumer_events one_events = {
    .deliver = one_deliver, .ready = one_ready, .closed = one_closed, .probe = one_probe};

static enum ox_err join_as(struct world *w, size_t i, struct ox_key_shared keys, const char **ret_why)
{
    struct one *c = &w->c[i];
    *c = (struct one){.world = w};
    snprintf(c->name, sizeof c->name, "c%zu", i);
    struct ox_subscribe o = {.subscription = "s",
                             .name = c->name,
                             .type = OX_SUB_KEY_SHARED,
                             .durable = true,
                             .from_earliest = true,
                             .keys = keys,
                             .connection = c,
                             .events = &one_events,
                             .owner = c};
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    enum ox_err err = rig_wait(&w->r, &o.op);
    c->consumer = o.consumer;
    if (ret_why)
        *ret_why = o.why;
    return err;
}

static void join(struct world *w, size_t i)
{
    assert_int_equal(join_as(w, i, (struct ox_key_shared){.out_of_order = w->out_of_order}, NULL), OX_OK);
}

static void leave(struct world *w, size_t i)
{
    ox_consumer_close(w->c[i].consumer);
    w->c[i].consumer = NULL;
    w->c[i].held_count = 0;
}

static void flow(struct world *w, size_t i, uint32_t permits)
{
    assert_int_equal(ox_consumer_flow(w->c[i].consumer, permits), OX_OK);
}

static void forget_held(struct one *c, size_t i)
{
    c->held_count--;
    memmove(&c->held[i], &c->held[i + 1], (c->held_count - i) * sizeof c->held[0]);
    memmove(&c->numbers[i], &c->numbers[i + 1], (c->held_count - i) * sizeof c->numbers[0]);
}

static void ack(struct world *w, size_t i, size_t which)
{
    struct one *c = &w->c[i];
    struct ox_ack_id id = {.pos = c->held[which]};
    w->acked[c->numbers[which]] = true;
    forget_held(c, which);
    ox_consumer_ack(c->consumer, NULL, false, &id, 1);
}

static void give_back(struct world *w, size_t i, size_t which)
{
    struct one *c = &w->c[i];
    struct ox_pos pos = c->held[which];
    forget_held(c, which);
    ox_consumer_redeliver(c->consumer, false, 0, &pos, 1);
}

static void world_init(struct world *w, uint32_t keys)
{
    *w = (struct world){.keys = keys};
    rig_init(&w->r);
    w->t = rig_topic(&w->r, "t");
    assert_int_equal(rig_produce(&w->r, &w->p, w->t, NULL, false), OX_OK);
}

static void world_fini(struct world *w)
{
    ox_topic_put(w->t);
    rig_fini(&w->r);
}

// Message n has key "k<n % keys>", or that one key.
static void send(struct world *w, uint32_t count, const char *key)
{
    char name[16], payload[16];
    for (uint32_t end = w->sent + count; w->sent < end; w->sent++) {
        snprintf(name, sizeof name, "k%u", w->sent % w->keys);
        snprintf(payload, sizeof payload, "m%u", w->sent);
        assert_true(rig_send_keyed(&w->p, w->sent, payload, key ? key : name, 0));
    }
    rig_settle(&w->r);
}

// A key whose owner is c0 alone, then c1 once it has joined, then c2.
static const char *wandering_key(void)
{
    static char key[16];
    struct ox_consumer c[3] = {{.name = "c0"}, {.name = "c1"}, {.name = "c2"}};
    struct ox_selector *two = ox_selector_new(OX_KEY_AUTO_SPLIT, 100), *three = ox_selector_new(OX_KEY_AUTO_SPLIT, 100);
    struct ox_key_shared any = {0};
    for (size_t i = 0; i < 3; i++) {
        if (i < 2)
            ox_selector_add(two, &c[i], &any);
        ox_selector_add(three, &c[i], &any);
    }
    for (int n = 0;; n++) {
        snprintf(key, sizeof key, "w%d", n);
        struct ox_message_meta meta = {.partition_key = {(const uint8_t *)key, strlen(key)}};
        uint32_t hash = ox_key_hash(&meta);
        if (ox_selector_find(two, hash) == &c[1] && ox_selector_find(three, hash) == &c[2])
            break;
    }
    ox_selector_free(two);
    ox_selector_free(three);
    return key;
}

static void expect_got(const struct one *c, uint32_t from, uint32_t count)
{
    assert_int_equal(c->got_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(c->got[i], from + i);
}

static void test_key_shared_every_key_has_one_consumer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, KEYS);
    for (size_t i = 0; i < 3; i++) {
        join(&w, i);
        flow(&w, i, 1000);
    }
    send(&w, KEYS * PER_KEY, NULL);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count + w.c[2].got_count, KEYS * PER_KEY);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(w.c[i].got_count, PER_KEY, KEYS * PER_KEY - 2 * PER_KEY);
    world_fini(&w);
}

// Reads of the place take 200 ms: what comes again is being read while things change.
static void slow_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ)
        fault->after_ns = 200 * OX_MS;
}

static void forget_cache(struct world *w)
{
    ox_topic_put(w->t);
    rig_restart(&w->r);
    w->t = rig_topic(&w->r, "t");
    assert_int_equal(rig_produce(&w->r, &w->p, w->t, NULL, false), OX_OK);
    w->r.on_place = slow_reads;
}

// fault: P10
static void test_key_shared_order_survives_a_close_in_a_replay_read(void **state)
{
    (void)state;
    struct world w;
    const char *key = wandering_key();
    world_init(&w, 1);
    send(&w, 20, key);
    forget_cache(&w);
    join(&w, 0);
    flow(&w, 0, 10);
    rig_settle(&w.r);
    expect_got(&w.c[0], 0, 10);
    join(&w, 1);
    flow(&w, 1, 1000);
    rig_settle(&w.r);
    assert_int_equal(w.c[1].got_count, 0); // m10 .. m19 wait for the former owner
    give_back(&w, 0, 9);
    give_back(&w, 0, 8); // no longer its own: a read of them could be on its way
    ox_sim_run_for(w.r.sim, 100 * OX_MS);
    leave(&w, 0);
    for (int i = 0; i < 10; i++)
        rig_settle(&w.r);
    expect_got(&w.c[1], 0, 20);
    world_fini(&w);
}

// fault: P10
static void test_key_shared_a_key_waits_over_two_joins(void **state)
{
    (void)state;
    struct world w;
    const char *key = wandering_key();
    world_init(&w, 1);
    join(&w, 0);
    flow(&w, 0, 1000);
    send(&w, 2, key);
    ack(&w, 0, 1);
    join(&w, 1);
    flow(&w, 1, 1000);
    send(&w, 2, key);
    assert_int_equal(w.c[1].got_count, 0);
    join(&w, 2);
    flow(&w, 2, 1000);
    send(&w, 1, key);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count + w.c[2].got_count, 2);
    ack(&w, 0, 0);
    rig_settle(&w.r);
    expect_got(&w.c[2], 2, 3);
    assert_int_equal(w.c[1].got_count, 0);
    world_fini(&w);
}

static void test_key_shared_other_keys_pass_the_one_that_waits(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, KEYS);
    join(&w, 0);
    flow(&w, 0, 1000);
    send(&w, KEYS, NULL);
    join(&w, 1);
    flow(&w, 1, 1000);
    for (size_t i = KEYS; i-- > 1;) // all but m0
        ack(&w, 0, i);
    send(&w, KEYS * 2, NULL);
    size_t waiting = w.c[0].got_count + w.c[1].got_count == KEYS * 3 ? 0 : 2;
    assert_int_equal(w.c[0].got_count + w.c[1].got_count, KEYS * 3 - waiting);
    ack(&w, 0, 0);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count, KEYS * 3);
    world_fini(&w);
}

static void test_key_shared_out_of_order_waits_for_nobody(void **state)
{
    (void)state;
    struct world w;
    const char *key = wandering_key();
    world_init(&w, 1);
    w.out_of_order = true;
    join(&w, 0);
    flow(&w, 0, 1000);
    send(&w, 3, key);
    join(&w, 1);
    flow(&w, 1, 1000);
    send(&w, 3, key);
    expect_got(&w.c[1], 3, 3);
    world_fini(&w);
}

static void test_key_shared_what_is_given_back_comes_before_what_is_new(void **state)
{
    (void)state;
    struct world w;
    const char *key = wandering_key();
    world_init(&w, 1);
    join(&w, 0);
    flow(&w, 0, 3);
    send(&w, 6, key);
    give_back(&w, 0, 1);
    flow(&w, 0, 1000);
    rig_settle(&w.r);
    static const uint32_t expected[] = {0, 1, 2, 1, 3, 4, 5};
    assert_int_equal(w.c[0].got_count, OX_COUNT(expected));
    assert_memory_equal(w.c[0].got, expected, sizeof expected);
    world_fini(&w);
}

// ---- ways of sharing

static void test_key_shared_sticky_ranges_and_their_holders(void **state)
{
    (void)state;
    struct world w;
    const char *why;
    static const int32_t low[] = {0, 32767}, high[] = {32768, 65536}, middle[] = {30000, 40000};
    struct ox_key_shared sticky = {.mode = OX_KEY_STICKY, .ranges = low, .range_count = 1};
    world_init(&w, KEYS);
    assert_int_equal(join_as(&w, 0, sticky, NULL), OX_OK);
    flow(&w, 0, 1000);
    send(&w, KEYS, NULL);
    size_t first = w.c[0].got_count;
    assert_in_range(first, 5, KEYS - 5);
    sticky.ranges = middle;
    assert_int_equal(join_as(&w, 1, sticky, &why), OX_E_CONSUMER_ASSIGN);
    assert_string_equal(why, "Range conflict with another consumer");
    sticky.ranges = high;
    assert_int_equal(join_as(&w, 1, sticky, NULL), OX_OK);
    flow(&w, 1, 1000);
    rig_settle(&w.r);
    assert_int_equal(first + w.c[1].got_count, KEYS);
    w.c[0].dead = true;
    sticky.ranges = low;
    assert_int_equal(join_as(&w, 2, sticky, NULL), OX_OK); // its holder gives no sign of life
    assert_null(w.c[0].consumer);
    flow(&w, 2, 1000);
    rig_settle(&w.r);
    assert_int_equal(w.c[2].got_count, first);
    world_fini(&w);
}

static void test_key_shared_one_way_of_sharing_at_a_time(void **state)
{
    (void)state;
    struct world w;
    const char *why;
    static const int32_t all[] = {0, 65535};
    struct ox_key_shared sticky = {.mode = OX_KEY_STICKY, .ranges = all, .range_count = 1},
                         loose = {.out_of_order = true}, none = {.mode = OX_KEY_STICKY};
    world_init(&w, KEYS);
    assert_int_equal(join_as(&w, 0, none, &why), OX_E_CONSUMER_ASSIGN);
    join(&w, 0);
    assert_int_equal(join_as(&w, 1, sticky, &why), OX_E_CONSUMER_BUSY);
    assert_non_null(strstr(why, "key_shared mode of 'AUTO_SPLIT' is different"));
    assert_int_equal(join_as(&w, 1, loose, &why), OX_E_CONSUMER_BUSY);
    assert_non_null(strstr(why, "does not allow out of order delivery"));
    leave(&w, 0);
    assert_int_equal(join_as(&w, 1, sticky, NULL), OX_OK); // nobody is there: the next one decides
    world_fini(&w);
}

// ---- random

static void random_turn(struct world *w, struct ox_random *r)
{
    size_t i = ox_random_below(r, CROWD);
    struct one *c = &w->c[i];
    uint64_t what = ox_random_below(r, 100);
    if (!c->consumer) {
        join(w, i);
        flow(w, i, 1);
    } else if (what < 12) {
        leave(w, i);
    } else if (what < 20 && c->held_count) {
        give_back(w, i, ox_random_below(r, c->held_count));
    } else if (what < 70 && c->held_count) {
        ack(w, i, ox_random_below(r, c->held_count));
        flow(w, i, 1);
    } else {
        flow(w, i, 1);
    }
    ox_sim_run_for(w->r.sim, ox_random_below(r, 3) * 100 * OX_MS);
}

static bool all_acked(const struct world *w)
{
    for (uint32_t n = 0; n < w->sent; n++)
        if (!w->acked[n])
            return false;
    return true;
}

// Everybody who is there acknowledges whatever it gets: nothing may be stuck.
static void drain(struct world *w)
{
    bool somebody = false;
    for (size_t i = 0; i < CROWD; i++)
        somebody |= w->c[i].consumer != NULL;
    if (!somebody)
        join(w, 0);
    for (size_t i = 0; i < CROWD; i++)
        if (w->c[i].consumer)
            flow(w, i, 1000);
    for (int turn = 0; turn < 400 && !all_acked(w); turn++) {
        for (size_t i = 0; i < CROWD; i++)
            while (w->c[i].held_count)
                ack(w, i, 0);
        rig_settle(&w->r);
    }
    assert_true(all_acked(w));
}

// fault: P10
static void test_key_shared_200_rounds_of_coming_and_going(void **state)
{
    (void)state;
    struct world w;
    struct ox_random r;
    world_init(&w, KEYS);
    w.r.on_place = slow_reads;
    ox_random_seed(&r, 10);
    for (int round = 0; round < 200; round++) {
        w.sent = 0;
        memset(w.acked, 0, sizeof w.acked);
        for (size_t i = 0; i < CROWD; i++)
            w.c[i].got_count = 0;
        send(&w, KEYS + (uint32_t)ox_random_below(&r, KEYS * (PER_KEY - 1)), NULL);
        for (int turn = 0; turn < 60; turn++)
            random_turn(&w, &r);
        drain(&w);
        for (size_t i = 0; i < CROWD; i++)
            if (w.c[i].consumer)
                leave(&w, i);
        w.p.receipt_count = 0;
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_shared_every_key_has_one_consumer),
        cmocka_unit_test(test_key_shared_order_survives_a_close_in_a_replay_read),
        cmocka_unit_test(test_key_shared_a_key_waits_over_two_joins),
        cmocka_unit_test(test_key_shared_other_keys_pass_the_one_that_waits),
        cmocka_unit_test(test_key_shared_out_of_order_waits_for_nobody),
        cmocka_unit_test(test_key_shared_what_is_given_back_comes_before_what_is_new),
        cmocka_unit_test(test_key_shared_sticky_ranges_and_their_holders),
        cmocka_unit_test(test_key_shared_one_way_of_sharing_at_a_time),
        cmocka_unit_test(test_key_shared_200_rounds_of_coming_and_going),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
