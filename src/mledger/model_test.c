// model_test.c - random histories with faults and crashes, by seed: what was acknowledged is read back byte for byte, in order, at its position; ids rise. Also while
// the active place changes: then no answered acknowledgement is taken back, and in the end nothing but sealed data is left in the other place.
#include "mledger/fixture.h"
#include "mledger/places.h"

#include <stdio.h>
#include <string.h>

#define NAME "public/default/persistent/model"
#define SEEDS 150
#define STEPS 60
#define ENTRIES_MAX 4096

struct model_append {
    struct ox_ml_append append;
    struct model *model;
    int number;
};

struct model {
    struct world w;
    struct ox_random random;
    struct ox_mledger *ml;
    struct ox_cursor *cursor;
    bool embedded; // ledgers are in the embedded store: crashes are power cuts
    bool trims;    // the cursor moves
    bool faulty;   // hooks may do more than delay
    int next;      // number of the next entry; its text begins with it
    size_t in_flight;
    struct ox_pos acked[ENTRIES_MAX]; // by number; ledger -1: not acknowledged
    struct ox_pos consumed;           // acknowledged by the cursor: may be gone
    struct ox_pos last_acked;
    int last_number; // the newest acknowledged
    int64_t id_max;  // largest ledger id ever seen
    struct ox_op roll;
    bool moves;             // there are two places
    uint32_t active;        // index of the active one
    struct ox_pos answered; // acknowledgements up to it were answered
};

struct model_ack {
    struct ox_cursor_ack ack;
    struct model *model;
    struct ox_pos pos;
};

static uint64_t below(struct model *m, uint64_t n)
{
    return ox_random_below(&m->random, n);
}

static bool chance(struct model *m, uint64_t percent)
{
    return below(m, 100) < percent;
}

static void model_place(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    struct model *m = CONTAINER_OF(w, struct model, w);
    (void)ledger;
    (void)entry;
    fault->before_ns = below(m, 3) * OX_MS;
    fault->after_ns = below(m, 3) * OX_MS;
    if (!m->faulty || call == OX_SIM_CALL_READ || call == OX_SIM_CALL_LIST || !chance(m, call == OX_SIM_CALL_APPEND ? 1 : 6))
        return;
    bool unknown = call == OX_SIM_CALL_CLOSE && chance(m, 60);
    fault->err = unknown ? OX_E_UNKNOWN_OUTCOME : OX_E_PLACE_FAILED;
    fault->effect = chance(m, 50);
}

static void model_meta(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct model *m = CONTAINER_OF(w, struct model, w);
    (void)path;
    fault->before_ns = below(m, 3) * OX_MS;
    fault->after_ns = below(m, 3) * OX_MS;
    if (m->faulty && chance(m, 8))
        fault->outcome = !write ? OX_META_FAIL_BEFORE : (enum ox_meta_outcome)(OX_META_FAIL_BEFORE + below(m, 3));
}

static void model_text(int number, char text[64])
{
    int n = snprintf(text, 64, "%d:", number);
    memset(text + n, 'a' + number % 26, (size_t)(number % 40));
    text[n + number % 40] = 0;
}

static void model_appended(struct ox_op *op)
{
    struct model_append *a = CONTAINER_OF(op, struct model_append, append.op);
    struct model *m = a->model;
    m->in_flight--;
    if (op->err == OX_OK) {
        assert_true(a->number > m->last_number); // completions come in order
        assert_true(ox_pos_cmp(a->append.pos, m->last_acked) > 0);
        m->last_number = a->number;
        m->last_acked = m->acked[a->number] = a->append.pos;
    }
    ox_free(a);
}

static void model_append(struct model *m)
{
    struct model_append *a = ox_malloc(sizeof *a);
    char text[64];
    OX_ASSERT(m->next < ENTRIES_MAX);
    a->model = m;
    a->number = m->next++;
    m->acked[a->number] = OX_POS_EARLIEST;
    model_text(a->number, text);
    ox_op_init(&a->append.op, m->w.loop, model_appended, "model");
    struct ox_buf body = ox_buf_copy(text, strlen(text));
    a->append.body = body;
    a->append.messages = 1;
    m->in_flight++;
    ox_mledger_append(m->ml, &a->append);
    ox_buf_unref(&body);
}

// ---- checks ----------------------------------------------------------------------------------------------------------

static void check_ids(struct model *m)
{
    for (size_t i = 1; i < m->ml->ledger_count; i++)
        assert_true(m->ml->ledgers[i]->where.id > m->ml->ledgers[i - 1]->where.id);
    for (size_t i = 0; i < m->ml->ledger_count; i++) // of one that no node ever named, nobody has seen an entry
        if (m->ml->ledgers[i]->recorded)
            m->id_max = OX_MAX(m->id_max, m->ml->ledgers[i]->where.id);
}

// What the log must still hold has the text of its number.
static size_t check_entry(struct model *m, const struct ox_entry *e, int *after)
{
    char text[64];
    uint64_t index = 0;
    size_t skip = ml_header_index(e->data, &index) ? 6 + (size_t)e->data.data[5] : 0;
    memcpy(text, e->data.data + skip, OX_MIN(e->data.len - skip, sizeof text));
    int number = atoi(text);
    assert_true(number > *after && number < m->next); // never twice, never back
    *after = number;
    char want[64];
    model_text(number, want);
    assert_int_equal(e->data.len - skip, strlen(want));
    assert_memory_equal(e->data.data + skip, want, strlen(want));
    if (m->acked[number].ledger < 0)
        return 0;
    assert_int_equal(ox_pos_cmp(m->acked[number], e->pos), 0);
    return ox_pos_cmp(e->pos, m->consumed) > 0;
}

static size_t model_must_hold(const struct model *m)
{
    size_t n = 0;
    for (int i = 0; i < m->next; i++)
        n += m->acked[i].ledger >= 0 && ox_pos_cmp(m->acked[i], m->consumed) > 0;
    return n;
}

static void model_check(struct model *m)
{
    size_t must = model_must_hold(m), found = 0; // before reading: more may be acknowledged meanwhile
    struct ox_pos from = OX_POS_EARLIEST;
    int after = -1;
    check_ids(m);
    for (;;) {
        struct ox_ml_read r = {.from = from, .entries_max = 1 + (uint32_t)below(m, 9), .bytes_max = 400};
        world_op(&m->w, &r.op);
        ox_mledger_read(m->ml, &r);
        enum ox_err err = world_wait(&m->w, &r.op);
        for (size_t i = 0; i < r.count; i++)
            found += check_entry(m, &r.entries[i], &after);
        from = r.next;
        ox_ml_read_fini(&r);
        if (err == OX_E_NO_ENTRY)
            break;
        if (err != OX_OK) { // fenced, or dead: nothing to be said
            if (!m->faulty && !m->w.loop->dead && m->ml->state != OX_ML_FENCED)
                print_error("read: %s at " OX_POS_FMT " log %s\n", ox_err_name(err), OX_POS_ARG(from),
                            ml_state_name(m->ml->state));
            assert_true(m->faulty || m->w.loop->dead || m->ml->state == OX_ML_FENCED);
            return;
        }
    }
    assert_true(found >= must);
}

// ---- steps -----------------------------------------------------------------------------------------------------------

static void model_end_process(struct model *m)
{
    if (m->ml)
        world_close(&m->w, m->ml);
    m->ml = NULL;
    m->cursor = NULL;
    assert_int_equal(m->in_flight, 0);
    assert_false(ox_op_pending(&m->roll));
}

// The disk fails now and then (a failed sync stops the store until its process is started again).
static void model_disk(struct model *m, bool faulty)
{
    struct ox_sim_faults *f = ox_sim_faults(m->w.sim);
    f->sync_fail = f->write_fail = m->embedded && faulty ? 1500 : 0;
    f->slow_disk = m->embedded && faulty ? 3000 : 0;
}

static void model_kill(struct model *m)
{
    if (m->embedded && chance(m, 70))
        world_power_cut(&m->w);
    else
        world_kill(&m->w);
}

// Stops the process, unless a crash point has, and starts a new one.
static void model_restart(struct model *m)
{
    model_disk(m, false);
    model_kill(m);
    model_end_process(m);
    world_settle(&m->w);
    world_stop(&m->w);
    ox_sim_arm(m->w.node, NULL, 0, OX_SIM_CRASH_PROCESS);
    ox_sim_node_restart(m->w.node);
    world_start(&m->w);
    m->w.factory.settings = m->w.settings;
    ox_router_activate(&m->w.router, m->active);
}

static bool model_open_cursor(struct model *m)
{
    m->cursor = ox_cursor_find(m->ml, "keep");
    if (m->cursor) {
        assert_true(ox_pos_cmp(m->cursor->mark_delete, m->answered) >= 0);
        return true;
    }
    assert_true(m->answered.ledger < 0);
    struct ox_cursor_open op = {0};
    world_op(&m->w, &op.op);
    ox_cursor_open(m->ml, &op, "keep", true, OX_POS_EARLIEST, NULL);
    if (world_wait(&m->w, &op.op) != OX_OK)
        return false;
    m->cursor = op.cursor;
    return true;
}

static void model_open(struct model *m)
{
    for (int tries = 0; !m->ml; tries++) {
        assert_true(tries < 200);
        m->faulty = m->faulty && tries < 20;
        struct ox_ml_open op = {0};
        world_op(&m->w, &op.op);
        ox_mledger_open(&m->w.factory, &op, NAME, true);
        enum ox_err err = world_wait(&m->w, &op.op);
        if (err == OX_OK) {
            m->ml = op.ml;
            assert_true(ml_list_max(m->ml) > m->id_max); // the fresh ledger's id is above all that there ever were
            if (!model_open_cursor(m))
                model_end_process(m);
        }
        if (m->w.loop->dead || (m->embedded && err == OX_E_PLACE_FAILED))
            model_restart(m);
    }
}

static void model_ack_answered(struct ox_op *op)
{
    struct model_ack *a = CONTAINER_OF(op, struct model_ack, ack.op);
    if (op->err == OX_OK && ox_pos_cmp(a->pos, a->model->answered) > 0)
        a->model->answered = a->pos;
    ox_free(a);
}

static void model_ack(struct model *m, struct ox_pos p)
{
    struct model_ack *a = ox_malloc(sizeof *a);
    a->model = m;
    a->pos = p;
    ox_op_init(&a->ack.op, m->w.loop, model_ack_answered, "model ack");
    ox_cursor_mark_delete(m->cursor, &a->ack, p);
}

static void model_consume(struct model *m)
{
    if (!m->trims || m->last_acked.ledger < 0)
        return;
    struct ox_pos p = {m->last_acked.ledger, OX_MAX(m->last_acked.entry - (int64_t)below(m, 3), 0)};
    if (ox_pos_cmp(p, m->consumed) > 0)
        m->consumed = p;
    if (m->moves)
        model_ack(m, p);
    else
        ox_cursor_mark_delete(m->cursor, NULL, p);
}

// Another place, or the same once more, becomes active.
static void model_switch(struct model *m, uint32_t active)
{
    m->active = active;
    if (m->w.loop->dead)
        return;
    ox_router_activate(&m->w.router, active);
    ox_ml_follow(&m->w.factory);
}

// Nobody has the log open: its cursor's position leaves the place that isn't active.
static enum ox_err model_move_cursor(struct model *m)
{
    struct ox_ml_cursor_move move = {.log = NAME, .cursor = "keep", .expected = -1};
    world_op(&m->w, &move.op);
    ox_ml_cursor_move(&m->w.factory, &move);
    return world_wait(&m->w, &move.op);
}

static void model_step_of_moves(struct model *m)
{
    switch (below(m, 3)) {
    case 0: model_switch(m, (uint32_t)below(m, 2)); break;
    case 1:
        if (m->w.loop->dead)
            return;
        model_end_process(m);
        (void)model_move_cursor(m);
        break;
    default: model_consume(m); break;
    }
}

static void model_roll(struct model *m)
{
    if (ox_op_pending(&m->roll))
        return;
    world_op(&m->w, &m->roll);
    ox_mledger_roll(m->ml, &m->roll);
}

static void model_step(struct model *m)
{
    if (m->moves && m->ml && chance(m, 25)) {
        model_step_of_moves(m);
        return;
    }
    switch (below(m, 12)) {
    case 0: model_roll(m); break;
    case 1: model_consume(m); break;
    case 2: model_check(m); break;
    case 3:
        ox_sim_arm(m->w.node, NULL, 1 + (uint32_t)below(m, 6), m->embedded ? OX_SIM_CRASH_MACHINE : OX_SIM_CRASH_PROCESS);
        break;
    case 4:
        if (chance(m, 40))
            model_kill(m);
        break;
    case 5:
        if (chance(m, 40))
            model_end_process(m);
        break;
    case 6: world_sleep(&m->w, below(m, 5000) * OX_MS); break;
    default:
        for (uint64_t n = below(m, 12); n > 0; n--)
            model_append(m);
        world_sleep(&m->w, below(m, 12) * OX_MS);
        break;
    }
}

// What isn't usable any more is closed and opened again, as a broker does.
static void model_recover(struct model *m)
{
    if (m->w.loop->dead)
        model_restart(m);
    else if (m->ml && (m->ml->state == OX_ML_FENCED || m->ml->state == OX_ML_FAILED))
        model_end_process(m);
    if (m->w.loop->dead)
        model_restart(m);
    if (!m->ml)
        model_open(m);
}

static void model_settings(struct model *m)
{
    struct ox_ml_settings *s = &m->w.settings;
    s->ledger_entries_max = 2 + below(m, 12);
    s->broker_entry_metadata = chance(m, 50);
    s->stamps = chance(m, 50) || m->moves;
    s->rollover_ns_max = (1 + below(m, 20)) * OX_SEC;
    m->trims = chance(m, 50) || m->moves;
    m->w.factory.settings = *s;
}

static void model_world(struct model *m, uint64_t seed)
{
    if (m->embedded)
        world_init_embedded(&m->w, seed);
    else
        world_init(&m->w, seed);
    if (!m->moves)
        return;
    world_stop(&m->w);
    m->w.other_store = ox_sim_store_new(2);
    world_start(&m->w);
}

// After a last change of the place all that is open has left the other one; what the node names there is data, and nothing else is left.
static void model_check_moved(struct model *m)
{
    struct ox_ml_left left;
    struct ox_op sweep;
    uint32_t away = 1 - m->active;
    model_switch(m, m->active);
    world_sleep(&m->w, 300 * OX_SEC); // deletes that failed are tried again after a minute
    ox_ml_follow_left(&m->w.factory, &left);
    assert_int_equal(left.logs + left.cursors, 0);
    world_op(&m->w, &sweep);
    ox_ml_orphans_sweep(&m->w.factory, &sweep);
    assert_int_equal(world_wait(&m->w, &sweep), OX_OK);
    world_settle(&m->w);
    size_t data = 0;
    for (size_t i = 0; i < m->ml->ledger_count; i++)
        data += m->ml->ledgers[i]->where.place == away;
    assert_int_equal(ox_sim_store_count(away ? m->w.other_store : m->w.store), data);
}

static void model_run(uint64_t seed, bool embedded, bool moves)
{
    struct model *m = ox_malloc(sizeof *m);
    m->embedded = embedded;
    m->moves = moves;
    model_world(m, seed);
    ox_random_seed(&m->random, seed);
    m->consumed = m->last_acked = m->answered = OX_POS_EARLIEST;
    m->id_max = m->last_number = -1;
    m->w.on_place = model_place;
    m->w.on_meta = model_meta;
    model_settings(m);
    m->faulty = chance(m, 70);
    bool faulty = m->faulty;
    for (int i = 0; i < STEPS; i++) {
        model_recover(m);
        m->faulty = faulty;
        model_disk(m, faulty);
        model_step(m);
    }
    m->faulty = false; // the world heals
    if (m->moves)
        ox_sim_arm(m->w.node, NULL, 0, OX_SIM_CRASH_PROCESS);
    model_disk(m, false);
    model_recover(m);
    world_settle(&m->w);
    model_recover(m);
    model_check(m);
    if (m->moves && !embedded)
        model_check_moved(m);
    model_end_process(m);
    if (m->moves)
        assert_int_equal(model_move_cursor(m), OX_OK);
    world_settle(&m->w);
    world_fini(&m->w);
    ox_free(m);
}

static void model_run_seeds(bool embedded, bool moves)
{
    const char *one = getenv("OX_SEED"), *many = getenv("OX_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one ? 1 : many ? strtoull(many, NULL, 10) : SEEDS;
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (getenv("OX_VERBOSE"))
            print_message("seed %llu\n", (unsigned long long)seed);
        model_run(seed, embedded, moves);
    }
}

static void test_model_acknowledged_entries_survive_faults_and_crashes(void **state)
{
    (void)state;
    model_run_seeds(false, false);
}

static void test_model_acknowledged_entries_survive_power_cuts_of_the_embedded_store(void **state)
{
    (void)state;
    model_run_seeds(true, false);
}

static void test_model_what_is_acknowledged_survives_changes_of_the_active_place(void **state)
{
    (void)state;
    model_run_seeds(false, true);
}

static void test_model_what_is_acknowledged_survives_moves_out_of_the_embedded_store(void **state)
{
    (void)state;
    model_run_seeds(true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_acknowledged_entries_survive_faults_and_crashes),
        cmocka_unit_test(test_model_acknowledged_entries_survive_power_cuts_of_the_embedded_store),
        cmocka_unit_test(test_model_what_is_acknowledged_survives_changes_of_the_active_place),
        cmocka_unit_test(test_model_what_is_acknowledged_survives_moves_out_of_the_embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
