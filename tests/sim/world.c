// world.c - making, breaking and mending a simulated broker.
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "broker/topic.h"
#include "crash_names.h"
#include "operator.h"
#include "sim/sim_disk.h"
#include "sim/sim_net.h"

#define WORLD_SEGMENT_BYTES (256u * 1024)

void world_violation(struct world *w, const char *format, ...)
{
    va_list args;
    if (w->violation[0])
        return;
    va_start(args, format);
    vsnprintf(w->violation, sizeof w->violation, format, args);
    va_end(args);
}

bool world_chance(struct world *w, uint32_t per_mille)
{
    return ox_random_below(&w->random, 1000) < per_mille;
}

static uint32_t world_between(struct world *w, uint32_t low, uint32_t high)
{
    return low + (uint32_t)ox_random_below(&w->random, high - low + 1);
}

static void world_choose(struct world *w)
{
    struct world_plan *p = &w->plan;
    p->crashes = world_chance(w, 600);
    p->machine_crashes = world_chance(w, 400);
    p->crash_points = world_chance(w, 400);
    p->disk_faults = world_chance(w, 300);
    p->net_faults = world_chance(w, 500);
    p->meta_faults = world_chance(w, 400);
    p->meta_fault_rate = world_chance(w, 400) ? 200 : 30;
    p->full_disk = world_chance(w, 150);
    p->unloads = world_chance(w, 400);
    p->clean_restarts = world_chance(w, 300);
    p->seeks = world_chance(w, 250);
    p->rebirths = world_chance(w, 350);
    p->unsubscribes = world_chance(w, 200);
    p->readers = world_chance(w, 250);
    p->deletions = world_chance(w, 120);
    p->breaks = world_chance(w, 200);
    p->storms = world_chance(w, 80);
    p->full_restarts = world_chance(w, 500);
    p->clock_steps = world_chance(w, 150);
    p->small_windows = world_chance(w, 200);
    p->slow = world_chance(w, 150);
    p->meta_outages = world_chance(w, 150);
    p->retention = world_chance(w, 400);
    p->broker_metadata = world_chance(w, 300);
    p->early_trim = p->retention && (world_chance(w, 600) || p->full_disk); // on a full disk what is consumed goes at once
    p->topics = world_between(w, 1, 2);
    p->subscriptions = world_between(w, 1, 2);
    p->producers = world_between(w, 1, 2);
    p->messages = world_between(w, 20, world_chance(w, 100) ? 600 : 120);
    p->chaos_ns = world_between(w, 2, 12) * OX_SEC;
}

// Drawn from a generator of its own: seeds without moves run as they would without them.
static void world_choose_moves(struct world *w)
{
    struct world_plan *p = &w->plan;
    ox_random_seed(&w->move_random, w->seed * UINT64_C(0xd1342543de82ef95) + 3);
    p->moves = ox_random_below(&w->move_random, 1000) < 340;
    p->places = 2 + (uint32_t)ox_random_below(&w->move_random, 2);
    p->absences = p->moves && ox_random_below(&w->move_random, 1000) < 300;
    p->move_points = p->moves && ox_random_below(&w->move_random, 1000) < 500;
    p->slow_moves = p->moves && ox_random_below(&w->move_random, 1000) < 300;
    if (p->moves)
        w->oper = operator_new(w);
}

// Likewise. A deleted topic would take a group's promises with it.
static void world_choose_groups(struct world *w)
{
    struct world_plan *p = &w->plan;
    struct ox_random r;
    ox_random_seed(&r, w->seed * UINT64_C(0xa0761d6478bd642f) + 5);
    bool groups = ox_random_below(&r, 1000) < 500 && !p->deletions;
    p->groups = groups ? 1 + (uint32_t)ox_random_below(&r, 2) : 0;
    p->liars = ox_random_below(&r, 1000) < 300;
    p->delays = ox_random_below(&r, 1000) < 300 && !p->clock_steps;
    p->few_unacked = ox_random_below(&r, 1000) < 300;
}

// A call to the metadata service: delays, and sometimes an outcome that nobody knows.
static void world_meta_fault(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct world *w = CONTAINER_OF(f, struct world, meta_faults);
    (void)path;
    fault->before_ns = ox_random_below(&w->random, 2 * OX_MS);
    fault->after_ns = ox_random_below(&w->random, OX_MS);
    if (w->healed || !w->plan.meta_faults || !w->now || !w->now->broker.running || !world_chance(w, w->plan.meta_fault_rate))
        return;
    static const enum ox_meta_outcome outcomes[] = {OX_META_FAIL_BEFORE, OX_META_FAIL_AFTER, OX_META_FAIL_UNKNOWN};
    fault->outcome = outcomes[ox_random_below(&w->random, write ? OX_COUNT(outcomes) : 1)];
    fault->after_ns += ox_random_below(&w->random, 200 * OX_MS);
}

static void world_set(struct ox_config *c, const char *key, const char *value)
{
    struct ox_str error = {0};
    OX_ASSERT(ox_config_set(c, key, value, &error) == OX_OK);
}

static void world_configure(struct world *w)
{
    struct ox_config *c = &w->config;
    ox_config_init(c);
    world_set(c, "bindAddress", "0.0.0.0");
    world_set(c, "advertisedAddress", "broker");
    world_set(c, "managedLedgerMinLedgerRolloverTimeMinutes", "0");
    world_set(c, "managedLedgerMaxEntriesPerLedger", world_chance(w, 500) ? "17" : "60");
    world_set(c, "managedLedgerCursorMaxEntriesPerLedger", world_chance(w, 500) ? "5" : "50");
    world_set(c, "managedLedgerMaxUnackedRangesToPersistInMetadataStore", world_chance(w, 300) ? "2" : "1000");
    world_set(c, "storeReserveMB", "0");
    world_set(c, "brokerDeleteInactiveTopicsEnabled", "false"); // the oracle wants back what was stored, whoever is away
    world_set(c, "managedLedgerTrimDelaySeconds", w->plan.early_trim ? "0" : "30");
    world_set(c, "statsUpdateFrequencyInSecs", w->plan.early_trim ? "1" : "60");
    world_set(c, "keepAliveIntervalSeconds", world_chance(w, 300) ? "1" : "30");
    world_set(c, "connectionLivenessCheckTimeoutMillis", world_chance(w, 300) ? "300" : "5000");
    world_set(c, "maxUnackedMessagesPerConsumer", w->plan.few_unacked ? "7" : "50000");
    world_set(c, "brokerEntryMetadataInterceptors", w->plan.broker_metadata ? "AppendIndexMetadataInterceptor" : "");
    if (!w->plan.retention) {
        world_set(c, "defaultRetentionTimeInMinutes", "-1");
        world_set(c, "defaultRetentionSizeInMB", "-1");
    }
}

// ---- the directories of bookie clusters

static struct world_store *world_store_of(struct world *w, const char *dir)
{
    for (uint32_t i = 0; i < w->store_count; i++)
        if (strcmp(w->stores[i].dir, dir) == 0)
            return &w->stores[i];
    OX_ASSERT(w->store_count < WORLD_PLACES_MAX);
    struct world_store *s = &w->stores[w->store_count++];
    s->dir = ox_strdup(dir);
    s->table = ox_memory_table_new();
    return s;
}

static enum ox_err world_table_open(void *ctx, const char *dir, struct ox_table_kv **ret)
{
    struct world *w = ctx;
    struct world_store *s = world_store_of(w, dir);
    if (!w->healed && ox_sim_now(w->sim) < s->back_ns)
        return OX_E_ACCESS;
    struct ox_table_source source = ox_memory_table_source(s->table);
    return source.open(source.ctx, dir, ret);
}

// A directory cannot be read for a while; who has it open does not notice.
static void world_lose_store(struct world *w)
{
    if (w->store_count > 0)
        w->stores[ox_random_below(&w->move_random, w->store_count)].back_ns =
            ox_sim_now(w->sim) + ox_random_below(&w->move_random, 4 * OX_SEC);
}

static void world_broker_ended(struct oxbowd *b, enum ox_err err)
{
    struct incarnation *life = (struct incarnation *)b->owner;
    (void)err;
    ox_str_fini(&b->trouble);
    life->ended = true;
}

static void world_start(struct world *w)
{
    struct incarnation *life = ox_malloc(sizeof *life);
    struct oxbowd *b = &life->broker;
    life->world = w;
    b->loop = ox_sim_loop(w->broker_node);
    b->fs = ox_sim_fs(w->broker_node);
    b->net = ox_sim_net(w->broker_node);
    life->meta = ox_meta_memory_new(b->loop, w->tree, &w->meta_faults);
    life->session = life->meta->session_id;
    b->take_meta = life->meta;
    b->table = (struct ox_table_source){world_table_open, w};
    b->segment_bytes = WORLD_SEGMENT_BYTES;
    b->log = &w->watch;
    b->config = &w->config;
    b->data_dir = "/data";
    b->cwd = "/";
    b->ended = world_broker_ended;
    b->owner = life;
    w->now = life;
    w->lives++;
    oxbowd_start(b);
}

// Lines that no fault of this world explains: nothing here damages what was synced.
static const char *const world_forbidden[] = {
    "cursor.ledger.missing",       "cursor.ledger.empty", "cursor.entry.corrupt",   "mledger.open.last_lost",
    "mledger.open.record_corrupt", "mledger.read.lost",   "mledger.place.stranger", "oxbowd.stop.late"};

static bool world_says(const char *line, unsigned len, const char *event)
{
    return memmem(line, len, event, strlen(event)) != NULL;
}

static void world_log_line(void *ctx, const char *line, unsigned len)
{
    struct world *w = ctx;
    if (w->log)
        w->log->write(w->log->ctx, line, len);
    for (size_t i = 0; i < OX_COUNT(world_forbidden); i++)
        if (memmem(line, len, world_forbidden[i], strlen(world_forbidden[i])))
            world_violation(w, "the broker says: %.*s", (int)len - 1, line);
    w->unswept |= world_says(line, len, "oxbowd.sweep.failed") || world_says(line, len, "mledger.sweep.place_away");
    if (world_says(line, len, "mledger.sweep.kept") && !(w->plan.deletions && w->unswept))
        world_violation(w, "the broker says: %.*s", (int)len - 1, line);
    if (!w->plan.early_trim && memmem(line, len, "topic.resend.damaged", 20)) // else entries go while the log's end is read
        world_violation(w, "the broker says: %.*s", (int)len - 1, line);
    bool moved = memmem(line, len, "cursor.clamped", 14) &&
                 !memmem(line, len, ":-1 taken=", 10); // from a ledger that was empty: nothing is passed over
    if (moved && !w->plan.retention && !w->plan.deletions)
        world_violation(w, "the broker says: %.*s", (int)len - 1, line);
}

static uint64_t world_log_ms(void *ctx)
{
    const struct world *w = ctx;
    return w->sim ? ox_sim_now(w->sim) / OX_MS : 0;
}

struct world *world_new(uint64_t seed, struct ox_log *log)
{
    struct world *w = ox_malloc(sizeof *w);
    w->seed = seed;
    w->log = log;
    w->watch = (struct ox_log){
        .level = log ? log->level : OX_LOG_WARN, .write = world_log_line, .wall_ms = world_log_ms, .ctx = w};
    ox_random_seed(&w->random, seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    w->sim = ox_sim_new(seed, log);
    w->broker_node = ox_sim_node_new(w->sim, "broker");
    w->client_node = ox_sim_node_new(w->sim, "client");
    w->tree = ox_meta_memory_tree_new();
    w->meta_faults.choose = world_meta_fault;
    ox_list_init(&w->graves);
    world_choose(w);
    world_choose_moves(w);
    world_choose_groups(w);
    world_configure(w);
    if (w->plan.slow_moves) // what is made before a switch is recorded after it
        *ox_sim_faults(w->sim) = (struct ox_sim_faults){.slow_disk = 30000, .slow_job = 5000};
    if (w->plan.slow)
        *ox_sim_faults(w->sim) = (struct ox_sim_faults){
            .slow_disk = 5000, .slow_job = 2000, .net_chop = 200000, .net_slow = 2000, .net_refuse = 50000};
    world_start(w);
    return w;
}

static void world_bury(struct world *w)
{
    OX_LIST_EACH(&w->graves, link) {
        struct incarnation *life = CONTAINER_OF(link, struct incarnation, link);
        if (!life->ended)
            continue;
        ox_list_remove(&w->graves, link);
        ox_free(life);
    }
}

void world_free(struct world *w)
{
    world_bury(w);
    OX_ASSERT(ox_list_empty(&w->graves) && !w->now);
    ox_meta_memory_tree_free(w->tree);
    for (uint32_t i = 0; i < w->store_count; i++) {
        ox_memory_table_free(w->stores[i].table);
        ox_free(w->stores[i].dir);
    }
    if (w->oper)
        operator_free(w->oper);
    ox_config_fini(&w->config);
    ox_sim_free(w->sim);
    ox_free(w);
}

// Whether a process that ends has looked at all ledgers that it has found at its start.
static void world_note_sweep(struct world *w, const struct oxbowd *b)
{
    w->unswept |= b->running && (ox_op_pending(&b->sweep) || b->sweep.err != OX_OK);
}

// The process is dead: what it had in memory is taken down through the ordinary paths, without any effect outside.
static void world_take_down(struct world *w)
{
    struct incarnation *life = w->now;
    w->now = NULL;
    world_note_sweep(w, &life->broker);
    ox_meta_memory_expire(w->tree, life->session); // also of one that died in its clean end, before it said goodbye
    if (!life->ended)
        ox_meta_memory_crash(life->meta);
    if (!life->stopping && !life->ended)
        oxbowd_stop(&life->broker);
    ox_list_push_back(&w->graves, &life->link);
    w->restart_ns = ox_sim_now(w->sim) + ox_random_below(&w->random, 2 * OX_SEC);
}

static void world_crash(struct world *w, enum ox_sim_crash how)
{
    if (w->plan.absences && ox_random_below(&w->move_random, 2))
        world_lose_store(w);
    if (!w->plan.full_restarts)
        ox_sim_disk_set_capacity(w->broker_node, UINT64_C(1) << 40);
    ox_sim_node_crash(w->broker_node, how);
}

static enum ox_sim_crash world_crash_kind(struct world *w)
{
    return w->plan.machine_crashes && world_chance(w, 500) ? OX_SIM_CRASH_MACHINE : OX_SIM_CRASH_PROCESS;
}

static void world_break_disk(struct world *w)
{
    static const enum ox_sim_disk_op kinds[] = {OX_SIM_DISK_WRITE, OX_SIM_DISK_SYNC, OX_SIM_DISK_READ};
    ox_sim_disk_fail(w->broker_node, kinds[ox_random_below(&w->random, OX_COUNT(kinds))], world_between(w, 1, 20));
}

static void world_unload_done(struct ox_op *op)
{
    ox_free(op);
}

static void world_unload(struct world *w)
{
    struct ox_shard *sh = &w->now->broker.shard;
    struct ox_map_node *node = ox_map_first(&sh->topics);
    if (!node)
        return;
    struct ox_op *op = ox_malloc(sizeof *op);
    ox_op_init(op, sh->loop, world_unload_done, "world.unload");
    ox_topic_unload(sh, op, CONTAINER_OF(node, struct ox_topic, by_name)->name.full);
}

// The metadata service is away for a while; the session outlives it.
static void world_lose_meta(struct world *w)
{
    ox_meta_memory_disconnect(w->now->meta);
    w->meta_back_ns = ox_sim_now(w->sim) + ox_random_below(&w->random, 2 * OX_SEC);
}

// At a point of a move, whichever the operator comes to.
static void world_arm_move(struct world *w)
{
    const char *name = world_move_points[ox_random_below(&w->move_random, OX_COUNT(world_move_points))];
    ox_sim_arm(w->broker_node, name, 1 + (uint32_t)ox_random_below(&w->move_random, 3),
               ox_random_below(&w->move_random, 3) ? OX_SIM_CRASH_PROCESS : OX_SIM_CRASH_MACHINE);
}

static void world_chaos_of_moves(struct world *w)
{
    if (w->plan.move_points && !ox_sim_armed(w->broker_node) && ox_random_below(&w->move_random, 1000) < 50)
        world_arm_move(w);
    operator_tick(w->oper);
}

// One fault, perhaps, while the broker serves.
static void world_chaos(struct world *w)
{
    const struct world_plan *p = &w->plan;
    if (p->crashes && world_chance(w, 12))
        world_crash(w, world_crash_kind(w));
    else if (p->crash_points && world_chance(w, 15))
        ox_sim_arm(w->broker_node, NULL, world_between(w, 1, 40), world_crash_kind(w));
    else if (p->disk_faults && world_chance(w, 8))
        world_break_disk(w);
    else if (p->net_faults && world_chance(w, 20))
        ox_sim_net_reset(w->broker_node, w->client_node);
    else if (p->net_faults && world_chance(w, 10))
        ox_sim_net_partition(w->broker_node, w->client_node, world_chance(w, 500));
    else if (p->full_disk && world_chance(w, 20))
        ox_sim_disk_set_capacity(w->broker_node, world_chance(w, 500) ? ox_sim_disk_used(w->broker_node) : UINT64_C(1) << 40);
    else if (p->storms && world_chance(w, 300))
        world_unload(w);
    else if (p->unloads && world_chance(w, 15))
        world_unload(w);
    else if (p->clean_restarts && world_chance(w, 6))
        world_stop(w);
    else if (p->clock_steps && world_chance(w, 20))
        ox_sim_step_clock(w->sim, (int64_t)world_between(w, 0, 14400000) - 7200000);
    else if (p->meta_outages && world_chance(w, 10))
        world_lose_meta(w);
}

// An operator restarts a broker whose store has failed, or is not open and could be.
static bool world_needs_operator(const struct world *w)
{
    const struct oxbowd *b = &w->now->broker;
    struct ox_capacity capacity;
    if (!b->running)
        return false;
    for (uint32_t i = 0, at; i < b->router.count; i++) {
        struct ox_place *place = ox_router_place(&b->router, i);
        bool known = ox_router_find(&b->router, ox_router_name(&b->router, i), &at) == OX_OK && at == i;
        if (!place && known && w->healed)
            return true; // it could not be opened when the broker started, or was closed
        if (!place)
            continue;
        ox_place_capacity(place, &capacity);
        if (!capacity.writable && capacity.available > 0)
            return true;
    }
    return false;
}

// Settings that no key allows so small.
static void world_adjust(struct world *w)
{
    if (!w->now || !(w->now->broker.running || w->now->stopping) || w->now->ended)
        return;
    struct ox_broker_config *c = &w->now->broker.shard.config;
    if (w->plan.early_trim)
        c->resend_ns = 500 * OX_MS;
    if (w->plan.small_windows) {
        c->topic_inflight_bytes = 4000;
        c->total_inflight_bytes = 6000;
    }
    if (ox_sim_now(w->sim) >= w->meta_back_ns && ox_sim_node_alive(w->broker_node))
        ox_meta_memory_reconnect(w->now->meta);
}

void world_tick(struct world *w)
{
    world_bury(w);
    world_adjust(w);
    if (w->now && !ox_sim_node_alive(w->broker_node)) {
        world_take_down(w);
    } else if (w->now && w->now->ended) {
        ox_free(w->now);
        w->now = NULL;
        w->restart_ns = ox_sim_now(w->sim) + ox_random_below(&w->random, OX_SEC);
    } else if (!w->now && ox_sim_now(w->sim) >= w->restart_ns) {
        ox_sim_node_restart(w->broker_node);
        world_start(w);
    } else if (w->now && !w->now->stopping && world_needs_operator(w)) {
        world_stop(w);
    } else if (w->now && w->now->broker.running && !w->healed) {
        world_chaos(w);
        if (w->oper && w->now->broker.running && !w->now->stopping && ox_sim_node_alive(w->broker_node))
            world_chaos_of_moves(w);
    }
}

void world_heal(struct world *w)
{
    w->healed = true;
    ox_sim_arm(w->broker_node, NULL, 0, OX_SIM_CRASH_PROCESS);
    memset(ox_sim_faults(w->sim), 0, sizeof *ox_sim_faults(w->sim));
    ox_sim_disk_set_capacity(w->broker_node, UINT64_C(1) << 40);
    ox_sim_net_heal(w->sim);
}

void world_stop(struct world *w)
{
    if (!w->now || w->now->stopping)
        return;
    w->now->stopping = true;
    world_note_sweep(w, &w->now->broker);
    oxbowd_stop(&w->now->broker);
}

bool world_stopped(const struct world *w)
{
    return w->now && w->now->ended;
}
