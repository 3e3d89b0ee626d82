// operator.c - orders at random while there is chaos, and in the healed world one after another to their end.
#include "operator.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"

#define OPERATOR_LIMIT_NS (300 * OX_SEC) // virtual time in which a healed world must have ended each order
#define OPERATOR_PAUSE_NS (2 * OX_SEC)   // between two looks

enum order {
    ORDER_REGISTER,
    ORDER_UNREGISTER,
    ORDER_SWITCH,
    ORDER_ROLLBACK,
    ORDER_MOVE_DATA,
    ORDER_THROTTLE,
    ORDER_PAUSE,
    ORDER_RESUME,
    ORDER_ABORT,
    ORDER_CLEANUP,
    ORDER_CLOSE,
    ORDER_READ_MODE,
    ORDER_STATUS,
    ORDER_INVENTORY,
    ORDER_PLAN,
    ORDER_FAILURES,
    ORDER_VERIFY,
    ORDER_RELEASE,
    ORDER_TARGETS,
    ORDER_LIST,
    ORDER_GET,
    ORDER_PRECHECK,
    ORDER_COUNT
};

// How often each is given, in relation.
static const uint8_t order_weights[ORDER_COUNT] = {
    [ORDER_REGISTER] = 14, [ORDER_UNREGISTER] = 3, [ORDER_SWITCH] = 18, [ORDER_ROLLBACK] = 4,  [ORDER_MOVE_DATA] = 14,
    [ORDER_THROTTLE] = 4,  [ORDER_PAUSE] = 3,      [ORDER_RESUME] = 4,  [ORDER_ABORT] = 2,     [ORDER_CLEANUP] = 8,
    [ORDER_CLOSE] = 2,     [ORDER_READ_MODE] = 1,  [ORDER_STATUS] = 3,  [ORDER_INVENTORY] = 2, [ORDER_PLAN] = 2,
    [ORDER_FAILURES] = 1,  [ORDER_VERIFY] = 2,     [ORDER_RELEASE] = 2, [ORDER_TARGETS] = 2,   [ORDER_LIST] = 1,
    [ORDER_GET] = 1,       [ORDER_PRECHECK] = 2};

static const char *const order_names[ORDER_COUNT] = {
    "register", "unregister",      "switch",          "rollback",  "move-data", "throttle",  "pause", "resume",
    "abort",    "cleanup",         "close-client",    "read-mode", "status",    "inventory", "plan",  "failures",
    "verify",   "safe-to-release", "cleanup-targets", "list",      "get",       "precheck"};

static const char *const place_names[] = {"default", "two", "three"};

struct order_call {
    struct ox_storage_call call;
    struct world_operator *oper;
    enum order order;
    const char *place;
    bool keep, done; // keep: somebody waits for it and frees it
};

struct world_operator *operator_new(struct world *w)
{
    struct world_operator *o = ox_malloc(sizeof *o);
    o->world = w;
    ox_random_seed(&o->random, w->seed * UINT64_C(0x2545f4914f6cdd1d) + 7);
    snprintf(o->target, sizeof o->target, "default");
    return o;
}

void operator_free(struct world_operator *o)
{
    ox_free(o);
}

static uint64_t operator_below(struct world_operator *o, uint64_t n)
{
    return ox_random_below(&o->random, n);
}

// ---- what an answer promises

static const char *text_of(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

// Of two that were asked for at once, the later one's answer may come first.
static void judge_switch(struct world_operator *o, const json_t *answer)
{
    int64_t epoch = json_integer_value(json_object_get(answer, "epoch"));
    const char *target = text_of(answer, "target");
    if (epoch == o->epoch && strcmp(target, o->target) != 0)
        world_violation(o->world, "epoch %lld is a switch to %s and to %s", (long long)epoch, o->target, target);
    o->switches++;
    if (epoch < o->epoch)
        return;
    o->epoch = epoch;
    snprintf(o->target, sizeof o->target, "%s", target);
    o->uncertain = false;
}

// Errors after which nothing has happened.
static bool judge_is_refusal(enum ox_err err)
{
    return err == OX_E_CONFLICT || err == OX_E_NOT_FOUND || err == OX_E_NO_PLACE || err == OX_E_INVALID || err == OX_E_BUSY;
}

static void judge_failure(struct order_call *c)
{
    struct world_operator *o = c->oper;
    enum ox_err err = c->call.op.err;
    bool switches = c->order == ORDER_SWITCH || c->order == ORDER_ROLLBACK;
    if (switches && !judge_is_refusal(err))
        o->uncertain = true;
    if (err == OX_E_IDENTITY_MISMATCH || (err == OX_E_CORRUPT && !o->world->plan.disk_faults) || err == OX_E_INVALID)
        world_violation(o->world, "%s %s fails: %s: %s", order_names[c->order], c->place, ox_err_name(err),
                        ox_str_get(&c->call.why));
    if (c->call.why.len == 0 && err != OX_E_SHUTDOWN && err != OX_E_CANCELED)
        world_violation(o->world, "%s %s fails without a word: %s", order_names[c->order], c->place, ox_err_name(err));
}

// A place that is not open says nothing of what is in it.
static void judge_verify(struct world_operator *o, const char *place, const json_t *bad)
{
    json_t *item;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)bad, i, item)
    {
        const char *reason = text_of(item, "reason");
        if (strcmp(reason, ox_err_text(OX_E_PLACE_CLOSED)) != 0)
            world_violation(o->world, "verify %s: %s of ledger %lld", place, reason,
                            (long long)json_integer_value(json_object_get(item, "ledger")));
    }
}

static void judge_success(struct order_call *c)
{
    struct world_operator *o = c->oper;
    if (c->order == ORDER_SWITCH || c->order == ORDER_ROLLBACK)
        judge_switch(o, c->call.answer);
    o->moves += c->order == ORDER_MOVE_DATA;
    o->cleanups += c->order == ORDER_CLEANUP;
    if (c->order == ORDER_VERIFY && !o->world->plan.disk_faults)
        judge_verify(o, c->place, json_object_get(c->call.answer, "bad"));
}

static void order_over(struct ox_op *op)
{
    struct order_call *c = CONTAINER_OF(op, struct order_call, call.op);
    struct world_operator *o = c->oper;
    o->pending--;
    ox_sim_note(o->world->sim, order_names[c->order], (uint64_t)op->err);
    if (op->err == OX_OK)
        judge_success(c);
    else
        judge_failure(c);
    c->done = true;
    if (c->keep)
        return;
    ox_storage_call_fini(&c->call);
    ox_free(c);
}

// ---- orders

static struct ox_storage *operator_storage(const struct world_operator *o)
{
    return o->world->now->broker.storage;
}

static void order_register(struct world_operator *o, struct order_call *c)
{
    char uri[80];
    snprintf(uri, sizeof uri, "embedded:/%s", c->place);
    ox_storage_register(operator_storage(o), &c->call, c->place,
                        strcmp(c->place, "default") ? uri : "embedded:/data/store", "STANDBY");
}

static void order_throttle(struct world_operator *o, struct order_call *c)
{
    static const int64_t rates[] = {0, 3000, 20000, 200000};
    static const int64_t counts[] = {0, 20, 200, -1};
    ox_storage_throttle(operator_storage(o), &c->call, rates[operator_below(o, OX_COUNT(rates))],
                        counts[operator_below(o, OX_COUNT(counts))]);
}

static void order_change(struct world_operator *o, struct order_call *c)
{
    struct ox_storage *st = operator_storage(o);
    const char *any = operator_below(o, 2) ? c->place : NULL;
    switch ((int)c->order) {
    case ORDER_REGISTER: order_register(o, c); return;
    case ORDER_UNREGISTER: ox_storage_unregister(st, &c->call, c->place); return;
    case ORDER_SWITCH: ox_storage_switch(st, &c->call, c->place, operator_below(o, 10) < 4); return;
    case ORDER_ROLLBACK: ox_storage_rollback(st, &c->call); return;
    case ORDER_MOVE_DATA: ox_storage_move_data(st, &c->call, c->place); return;
    case ORDER_THROTTLE: order_throttle(o, c); return;
    case ORDER_PAUSE: ox_storage_pause(st, &c->call); return;
    case ORDER_RESUME: ox_storage_resume(st, &c->call); return;
    case ORDER_ABORT: ox_storage_abort(st, &c->call); return;
    case ORDER_CLEANUP:
        ox_storage_cleanup(st, &c->call, any, operator_below(o, 5) == 0, operator_below(o, 4) > 0,
                           (int64_t)operator_below(o, 3) * 2);
        return;
    case ORDER_CLOSE: ox_storage_close_client(st, &c->call, c->place); return;
    default: ox_storage_read_mode(st, &c->call, operator_below(o, 3) ? "DUAL_READ" : "NEW_CLUSTER_ONLY"); return;
    }
}

static void order_question(struct world_operator *o, struct order_call *c)
{
    struct ox_storage *st = operator_storage(o);
    switch ((int)c->order) {
    case ORDER_STATUS: ox_storage_status(st, &c->call); return;
    case ORDER_INVENTORY: ox_storage_inventory(st, &c->call); return;
    case ORDER_PLAN: ox_storage_plan(st, &c->call, c->place, (int64_t)operator_below(o, 2) * 10000); return;
    case ORDER_FAILURES: ox_storage_failures(st, &c->call); return;
    case ORDER_VERIFY: ox_storage_verify(st, &c->call, c->place); return;
    case ORDER_RELEASE: ox_storage_safe_to_release(st, &c->call, c->place); return;
    case ORDER_TARGETS: ox_storage_cleanup_targets(st, &c->call, operator_below(o, 2) ? c->place : NULL); return;
    case ORDER_LIST: ox_storage_list(st, &c->call); return;
    case ORDER_GET: ox_storage_get(st, &c->call, c->place); return;
    default: ox_storage_precheck(st, &c->call, c->place); return;
    }
}

static struct order_call *order_new(struct world_operator *o, enum order order, const char *place)
{
    struct order_call *c = ox_malloc(sizeof *c);
    c->oper = o;
    c->order = order;
    c->place = place;
    o->pending++;
    ox_op_init(&c->call.op, o->world->now->broker.loop, order_over, "operator");
    return c;
}

static enum order operator_choose(struct world_operator *o)
{
    uint64_t sum = 0, at;
    for (size_t i = 0; i < ORDER_COUNT; i++)
        sum += order_weights[i];
    at = operator_below(o, sum);
    size_t i = 0;
    while (at >= order_weights[i])
        at -= order_weights[i++];
    return (enum order)i;
}

// Mostly what exists: moving data into the place that the operator believes to be active.
static const char *operator_place(struct world_operator *o, enum order order)
{
    const char *any = place_names[operator_below(o, o->world->plan.places)];
    if (order == ORDER_REGISTER)
        return place_names[1 + operator_below(o, o->world->plan.places - 1)];
    if (order == ORDER_MOVE_DATA && operator_below(o, 10) < 9)
        for (size_t i = 0; i < OX_COUNT(place_names); i++)
            if (strcmp(place_names[i], o->target) == 0)
                return place_names[i];
    return any;
}

// fault: F6 F13
void operator_tick(struct world_operator *o)
{
    if (o->pending >= 2 || operator_below(o, 100) >= 25)
        return;
    enum order order = operator_choose(o);
    struct order_call *c = order_new(o, order, operator_place(o, order));
    if (order < ORDER_STATUS)
        order_change(o, c);
    else
        order_question(o, c);
}

// ---- the healed world: one thing after another ------------------------------------------------------------------------

static uint64_t operator_now(const struct world_operator *o)
{
    return ox_sim_now(o->world->sim);
}

static void operator_wait(struct world_operator *o, uint64_t ns)
{
    uint64_t end = operator_now(o) + ns;
    while (operator_now(o) < end && !o->world->violation[0]) {
        ox_sim_run_for(o->world->sim, WORLD_TICK_NS);
        world_tick(o->world);
    }
}

// True when a broker serves.
static bool operator_has_broker(struct world_operator *o)
{
    uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS;
    while (!(o->world->now && o->world->now->broker.running && !o->world->now->stopping)) {
        operator_wait(o, WORLD_TICK_NS);
        if (o->world->violation[0] || operator_now(o) > end)
            break;
    }
    if (operator_now(o) > end)
        world_violation(o->world, "no broker serves");
    return !o->world->violation[0];
}

// Gives an order and waits for its answer, the caller's to free with order_end; NULL after a violation.
static struct order_call *operator_ask(struct world_operator *o, enum order order, const char *place,
                                       void (*give)(struct world_operator *o, struct order_call *c))
{
    if (!operator_has_broker(o))
        return NULL;
    struct order_call *c = order_new(o, order, place);
    c->keep = true;
    give(o, c);
    uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS;
    while (!c->done && operator_now(o) < end)
        operator_wait(o, WORLD_TICK_NS);
    if (!c->done)
        world_violation(o->world, "%s %s: no answer", order_names[order], place);
    return o->world->violation[0] ? NULL : c;
}

static void order_end(struct order_call *c)
{
    ox_storage_call_fini(&c->call);
    ox_free(c);
}

static void give_status(struct world_operator *o, struct order_call *c)
{
    ox_storage_status(operator_storage(o), &c->call);
}

static void give_dual(struct world_operator *o, struct order_call *c)
{
    ox_storage_read_mode(operator_storage(o), &c->call, "DUAL_READ");
}

static void give_resume(struct world_operator *o, struct order_call *c)
{
    ox_storage_resume(operator_storage(o), &c->call);
}

static void give_fast(struct world_operator *o, struct order_call *c)
{
    ox_storage_throttle(operator_storage(o), &c->call, 0, 0);
}

static void give_switch(struct world_operator *o, struct order_call *c)
{
    ox_storage_switch(operator_storage(o), &c->call, c->place, true);
}

static void give_move(struct world_operator *o, struct order_call *c)
{
    ox_storage_move_data(operator_storage(o), &c->call, c->place);
}

static void give_cleanup(struct world_operator *o, struct order_call *c)
{
    ox_storage_cleanup(operator_storage(o), &c->call, NULL, false, true, 0);
}

static void give_unregister(struct world_operator *o, struct order_call *c)
{
    ox_storage_unregister(operator_storage(o), &c->call, c->place);
}

static void give_release(struct world_operator *o, struct order_call *c)
{
    ox_storage_safe_to_release(operator_storage(o), &c->call, c->place);
}

// Gives an order until it is taken. False after a violation.
static bool operator_order(struct world_operator *o, enum order order, const char *place,
                           void (*give)(struct world_operator *o, struct order_call *c))
{
    for (uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS;; operator_wait(o, OPERATOR_PAUSE_NS)) {
        struct order_call *c = operator_ask(o, order, place, give);
        if (!c)
            return false;
        enum ox_err err = c->call.op.err;
        if (err != OX_OK && operator_now(o) > end)
            world_violation(o->world, "%s %s without faults: %s: %s", order_names[order], place, ox_err_name(err),
                            ox_str_get(&c->call.why));
        order_end(c);
        if (err == OX_OK || o->world->violation[0])
            return err == OX_OK;
    }
}

// One look at the status: what is active, and the state of the present switch ("" if there is none). False after a violation.
struct look {
    char active[65], state[32], *text;
    bool moves;
};

static bool operator_look(struct world_operator *o, struct look *ret)
{
    struct order_call *c = operator_ask(o, ORDER_STATUS, "", give_status);
    if (!c)
        return false;
    const json_t *present = json_object_get(c->call.answer, "switch");
    snprintf(ret->active, sizeof ret->active, "%s", text_of(c->call.answer, "active"));
    snprintf(ret->state, sizeof ret->state, "%s", c->call.op.err == OX_OK ? text_of(present, "state") : "RUNNING");
    ret->moves = json_is_true(json_object_get(present, "moveData"));
    ret->text = c->call.answer ? json_dumps(c->call.answer, JSON_COMPACT) : NULL;
    order_end(c);
    return true;
}

// Waits until no stage runs any more.
static bool operator_stages(struct world_operator *o, struct look *ret)
{
    for (uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS;; operator_wait(o, OPERATOR_PAUSE_NS)) {
        if (!operator_look(o, ret))
            return false;
        bool over = strcmp(ret->state, "RUNNING") != 0 && strcmp(ret->state, "PAUSED") != 0;
        if (!over && operator_now(o) > end)
            world_violation(o->world, "the switch does not end: %.400s", ret->text);
        free(ret->text);
        if (over || o->world->violation[0])
            return over;
    }
}

// Looks again and again until check() is content; a violation with what it says at the end.
static bool operator_audit(struct world_operator *o,
                           bool (*check)(struct world_operator *o, struct audit *a, struct ox_str *problem))
{
    struct ox_str problem = {0};
    bool good = false;
    for (uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS; !good && !o->world->violation[0];) {
        struct audit a;
        good = operator_has_broker(o) && audit_read(o->world, &a) && check(o, &a, &problem);
        audit_fini(&a);
        if (!good && operator_now(o) > end)
            world_violation(o->world, "%s", problem.len ? ox_str_get(&problem) : "metadata or places cannot be read");
        if (!good)
            operator_wait(o, OPERATOR_PAUSE_NS);
    }
    ox_str_fini(&problem);
    return good;
}

static void problem_ref(struct ox_str *problem, const struct audit_ref *ref, size_t count, const char *what, const char *target)
{
    ox_str_truncate(problem, 0);
    ox_str_addf(problem, "%zu %s: %s %s ledger %lld (physical %lld%s) is in %s, the target is %s", count, what, ref->log,
                ref->cursor, (long long)ref->id, (long long)ref->physical, ref->copy ? ", a copy" : "", ref->place, target);
}

static bool check_settled_places(struct world_operator *o, struct audit *a, struct ox_str *problem)
{
    const struct audit_ref *ref = NULL;
    if (!audit_resolve(a, problem))
        return false;
    size_t astray = audit_astray(a, o->target, &ref);
    if (astray > 0)
        problem_ref(problem, ref, astray, "open ledgers are not in the target", o->target);
    return astray == 0;
}

static bool check_moved(struct world_operator *o, struct audit *a, struct ox_str *problem)
{
    const struct audit_ref *ref = NULL;
    if (!check_settled_places(o, a, problem))
        return false;
    size_t left = audit_count(a, NULL, o->target, false, &ref);
    if (left > 0)
        problem_ref(problem, ref, left, "ledgers are still elsewhere after move-data", o->target);
    return left == 0;
}

static bool check_clean(struct world_operator *o, struct audit *a, struct ox_str *problem)
{
    const struct audit_ref *ref = NULL;
    if (!check_moved(o, a, problem))
        return false;
    size_t left = audit_count(a, NULL, o->target, true, &ref);
    if (left > 0)
        problem_ref(problem, ref, left, "ledgers are still named elsewhere after cleanup", o->target);
    for (size_t i = 0; i < a->ledger_count && left == 0; i++)
        if (strcmp(a->ledgers[i].place, o->target) != 0) {
            ox_str_truncate(problem, 0);
            ox_str_addf(problem, "after cleanup ledger %lld of %s %s (last entry %lld%s%s%s) is still in %s",
                        (long long)a->ledgers[i].id, a->ledgers[i].log, a->ledgers[i].cursor,
                        (long long)a->ledgers[i].last_entry, a->ledgers[i].open ? ", open" : "",
                        *a->ledgers[i].copy_of ? ", copy of " : "", a->ledgers[i].copy_of, a->ledgers[i].place);
            left++;
        }
    return left == 0;
}

void operator_restore(struct world_operator *o)
{
    while (o->pending > 0 && !o->world->violation[0])
        operator_wait(o, OPERATOR_PAUSE_NS);
    if (operator_order(o, ORDER_READ_MODE, "", give_dual))
        (void)operator_order(o, ORDER_THROTTLE, "", give_fast);
}

void operator_settle(struct world_operator *o)
{
    struct look look = {0};
    if (!operator_look(o, &look))
        return;
    free(look.text);
    if (strcmp(look.state, "PAUSED") == 0 && !operator_order(o, ORDER_RESUME, "", give_resume))
        return;
    if (!operator_stages(o, &look))
        return;
    if (!o->uncertain && strcmp(look.active, o->target) != 0)
        world_violation(o->world, "%s is active, the last switch that was answered went to %s", look.active, o->target);
    snprintf(o->target, sizeof o->target, "%s", look.active);
    o->uncertain = false;
    if (strcmp(look.state, "ABORTED") != 0)
        (void)operator_audit(o, check_settled_places);
}

static void give_get(struct world_operator *o, struct order_call *c)
{
    ox_storage_get(operator_storage(o), &c->call, c->place);
}

static bool finale_knows(struct world_operator *o, const char *place)
{
    struct order_call *c = operator_ask(o, ORDER_GET, place, give_get);
    bool known = c && c->call.op.err == OX_OK;
    if (c)
        order_end(c);
    return known;
}

// A switch after which all that failed or was aborted is tried again.
static bool finale_switch(struct world_operator *o)
{
    struct look look;
    const char *to = place_names[operator_below(o, o->world->plan.places)];
    bool again = strcmp(to, "default") != 0 || !finale_knows(o, to); // a registration that was cut off wants another
    if (again && !operator_order(o, ORDER_REGISTER, to, order_register))
        return false;
    return operator_order(o, ORDER_SWITCH, to, give_switch) && operator_stages(o, &look) &&
           operator_audit(o, check_settled_places);
}

static bool finale_move(struct world_operator *o)
{
    struct look look;
    for (int tries = 0; tries < 5; tries++) {
        if (!operator_order(o, ORDER_MOVE_DATA, o->target, give_move) || !operator_stages(o, &look))
            return false;
        if (strcmp(look.state, "DONE") == 0 || !*look.state) // no switch ever: there is but one place
            return operator_audit(o, check_moved);
    }
    world_violation(o->world, "without faults move-data ends as %s", look.state);
    return false;
}

// After a fresh start: what a full disk or a cut-off delete has left behind goes with its sweep.
static bool finale_clean(struct world_operator *o)
{
    world_stop(o->world);
    return operator_order(o, ORDER_CLEANUP, "", give_cleanup) && operator_audit(o, check_clean);
}

static bool finale_release(struct world_operator *o, const char *place)
{
    for (uint64_t end = operator_now(o) + OPERATOR_LIMIT_NS;; operator_wait(o, OPERATOR_PAUSE_NS)) {
        struct order_call *c = operator_ask(o, ORDER_RELEASE, place, give_release);
        if (!c)
            return false;
        bool known = c->call.op.err != OX_E_NOT_FOUND && c->call.op.err != OX_E_NO_PLACE;
        bool safe = !known || json_is_true(json_object_get(c->call.answer, "safe"));
        if (!safe && operator_now(o) > end) {
            char *text = json_dumps(c->call.answer, JSON_COMPACT);
            world_violation(o->world, "%s is empty and not safe to release: %.300s", place,
                            text ? text : ox_str_get(&c->call.why));
            free(text);
        }
        order_end(c);
        if (o->world->violation[0])
            return false;
        if (safe)
            return !known || operator_order(o, ORDER_UNREGISTER, place, give_unregister);
    }
}

void operator_finale(struct world_operator *o)
{
    uint64_t how_far = operator_below(o, 4);
    if (!finale_switch(o) || how_far < 1 || !finale_move(o) || how_far < 2 || !finale_clean(o) || how_far < 3)
        return;
    for (uint32_t i = 1; i < o->world->plan.places; i++)
        if (strcmp(place_names[i], o->target) != 0 && !finale_release(o, place_names[i]))
            return;
}
