// resolve.c - start-up: which places there are, and which of them is active. Nothing is written here.
//
// The active one, in this order: the directive's target; if there is no directive, the target of the orchestrator's newest header (somebody removed the
// directive); bookieClusterSwitch.currentClusterName; the bootstrap place. Statuses are never asked, save for finding the bootstrap place of a registration
// that was cut off before its record.
#include <string.h>

#include "move/storage/control_int.h"

struct resolve {
    struct ox_seq seq;
    struct ox_op *op;
    struct ox_str *trouble;
    struct ox_storage **ret;
    struct ox_storage *st;
    struct ox_meta_get get;
    struct ox_meta_children children;
    char **names, **switches;
    size_t name_count, name_at, switch_count, switch_at;
    bool bootstrap_found;
    struct storage_header newest; // of the orchestrator's headers; switch_id NULL: none
    char *active;
    uint32_t slot_at;
    bool second_uri; // the bootstrap place is tried at the configured address first
    struct storage_opening opening;
    struct storage_targets_load targets;
};

static ox_step resolve_directive_read(struct ox_seq *s);
static ox_step resolve_bootstrap_read(struct ox_seq *s);
static ox_step resolve_names_read(struct ox_seq *s);
static ox_step resolve_entry(struct ox_seq *s);
static ox_step resolve_entry_read(struct ox_seq *s);
static ox_step resolve_switches(struct ox_seq *s);
static ox_step resolve_switches_read(struct ox_seq *s);
static ox_step resolve_header(struct ox_seq *s);
static ox_step resolve_header_read(struct ox_seq *s);
static ox_step resolve_decide(struct ox_seq *s);
static ox_step resolve_open(struct ox_seq *s);
static ox_step resolve_opened(struct ox_seq *s);
static ox_step resolve_targets(struct ox_seq *s);
static ox_step resolve_failures(struct ox_seq *s);
static ox_step resolve_failures_read(struct ox_seq *s);

static struct resolve *resolve_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct resolve, seq);
}

static void resolve_done(struct ox_seq *s, enum ox_err err)
{
    struct resolve *r = resolve_of(s);
    struct ox_op *op = r->op;
    if (err == OX_OK)
        *r->ret = r->st;
    else
        ox_storage_free(r->st);
    ox_meta_names_free(r->names, r->name_count);
    ox_meta_names_free(r->switches, r->switch_count);
    storage_header_fini(&r->newest);
    ox_free(r->active);
    ox_str_fini(&r->opening.why);
    ox_str_fini(&r->targets.why);
    ox_free(r);
    ox_op_finish(op, err);
}

static ox_step resolve_fail(struct ox_seq *s, enum ox_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static ox_step resolve_fail(struct ox_seq *s, enum ox_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ox_str_addv(resolve_of(s)->trouble, format, args);
    va_end(args);
    return OX_FINISH(s, err);
}

static ox_step resolve_read(struct ox_seq *s, char *take_path, ox_step_fn then)
{
    struct resolve *r = resolve_of(s);
    ox_seq_bind(s, &r->get.op, "storage.resolve.read");
    ox_meta_get(r->st->p.meta, &r->get, take_path);
    ox_free(take_path);
    return ox_seq_goto(s, then, "storage.resolve.read", OX_STEP_WAIT);
}

static ox_step resolve_children(struct ox_seq *s, const char *path, ox_step_fn then)
{
    struct resolve *r = resolve_of(s);
    ox_seq_bind(s, &r->children.op, "storage.resolve.children");
    ox_meta_children(r->st->p.meta, &r->children, path);
    return ox_seq_goto(s, then, "storage.resolve.children", OX_STEP_WAIT);
}

// ---- beginning -------------------------------------------------------------------------------------------------------

static void resolve_counter(struct ox_storage *st, struct ox_metric *m, enum ox_metric_kind kind, const char *name,
                            const char *help, const char *labels)
{
    ox_metric_init(m, st->p.metrics, kind, name, help, labels);
}

static void resolve_stage_metrics(struct ox_storage *st)
{
    static const char *const stages[] = {"writes", "metadata", "data"}, *const states[] = {"done", "left", "failed"};
    for (size_t i = 0; i < 9; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *labels = ox_asprintf("stage=\"%s\",state=\"%s\"", stages[i / 3], states[i % 3]);
        resolve_counter(st, &st->control->items[i / 3][i % 3], OX_METRIC_GAUGE, "bookie_cluster_stage_items",
                        "Logs, cursors and ledgers in the stages of the present switch", labels);
    }
}

static void resolve_metrics(struct ox_storage *st)
{
    struct storage_control *c = st->control;
    static const char switches[] = "bookie_cluster_switch_total",
                      help[] = "Switches asked for at this broker, by result";
    resolve_counter(st, &c->epoch, OX_METRIC_GAUGE, "bookie_cluster_epoch",
                    "Epoch of the directive that this broker follows", NULL);
    resolve_counter(st, &c->lag, OX_METRIC_GAUGE, "bookie_cluster_broker_epoch_lag",
                    "Live brokers that have not acknowledged the epoch", NULL);
    resolve_counter(st, &c->duration, OX_METRIC_GAUGE, "bookie_cluster_switch_duration_seconds",
                    "From the directive to the end of its stages, of the last switch that ended", NULL);
    resolve_counter(st, &c->alarms, OX_METRIC_COUNTER, "bookie_cluster_alarms_total",
                    "Records of the switch that were found missing, broken or gone back", NULL);
    resolve_counter(st, &c->switch_ok, OX_METRIC_COUNTER, switches, help, "result=\"accepted\"");
    resolve_counter(st, &c->switch_refused, OX_METRIC_COUNTER, switches, help, "result=\"refused\"");
    resolve_counter(st, &c->switch_lost, OX_METRIC_COUNTER, switches, help, "result=\"lost\"");
    resolve_counter(st, &st->conflicts, OX_METRIC_COUNTER, "migration_ledger_id_conflict_total",
                    "Ledger ids that were taken in the target: the copy got another physical id", NULL);
    resolve_stage_metrics(st);
}

static struct ox_storage *resolve_new(const struct ox_storage_ports *ports)
{
    struct ox_storage *st = ox_malloc(sizeof *st);
    st->p = *ports;
    st->control = ox_malloc(sizeof *st->control);
    st->control->guarded = st->control->elsewhere = -1;
    st->control->bootstrap.max_ledger = -1;
    st->control->watch.acked = -1;
    ox_list_init(&st->control->saver.waiting);
    st->directive.version = -1;
    st->header_version = -1;
    st->read_mode = "DUAL_READ";
    st->bytes_per_s = ports->config.bytes_per_s;
    st->ops_per_s = ports->config.ops_per_s;
    ox_list_init(&st->failures);
    resolve_metrics(st);
    return st;
}

static ox_step resolve_directive(struct ox_seq *s)
{
    return resolve_read(s, storage_path(resolve_of(s)->st, "switch-target"), resolve_directive_read);
}

void ox_storage_resolve(const struct ox_storage_ports *ports, struct ox_op *op, struct ox_str *trouble,
                        struct ox_storage **ret)
{
    struct resolve *r = ox_malloc(sizeof *r);
    ox_op_begin(op);
    r->op = op;
    r->trouble = trouble;
    r->ret = ret;
    r->st = resolve_new(ports);
    ox_seq_start(&r->seq, ports->loop, "storage.resolve", resolve_directive, resolve_done);
}

// ---- the records -----------------------------------------------------------------------------------------------------

static ox_step resolve_unreadable(struct ox_seq *s, enum ox_err err, const char *what)
{
    const char *root = resolve_of(s)->st->p.config.root;
    if (err == OX_E_CORRUPT)
        return resolve_fail(
            s, OX_E_CONFLICT,
            "%s/%s cannot be understood: it decides where new ledgers are made, so it is not guessed at; put its "
            "former content back (or remove it, if no switch was ever made), then start again",
            root, what);
    return resolve_fail(s, err, "%s/%s cannot be read from the metadata store: %s", root, what, ox_err_text(err));
}

static ox_step resolve_directive_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    enum ox_err err = s->err;
    if (err == OX_OK) {
        err = storage_directive_read(r->get.value, r->get.stat.version, &r->st->directive);
        ox_buf_unref(&r->get.value);
    }
    if (err != OX_OK && err != OX_E_NOT_FOUND)
        return resolve_unreadable(s, err, "switch-target");
    return resolve_read(s, storage_path(r->st, "bootstrap"), resolve_bootstrap_read);
}

static ox_step resolve_bootstrap_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    enum ox_err err = s->err;
    if (err == OX_OK) {
        err = storage_bootstrap_read(r->get.value, &r->st->control->bootstrap);
        ox_buf_unref(&r->get.value);
    }
    if (err != OX_OK && err != OX_E_NOT_FOUND)
        return resolve_unreadable(s, err, "bootstrap");
    r->bootstrap_found = r->st->activated = err == OX_OK;
    return resolve_children(s, r->st->p.config.root, resolve_names_read);
}

static ox_step resolve_names_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return resolve_fail(s, s->err, "%s cannot be listed: %s", r->st->p.config.root, ox_err_text(s->err));
    if (s->err == OX_OK) {
        r->names = r->children.names;
        r->name_count = r->children.count;
    }
    return OX_GOTO(s, resolve_entry);
}

static ox_step resolve_entry(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    const char *why;
    while (r->name_at < r->name_count && !storage_name_valid(r->names[r->name_at], &why))
        r->name_at++;
    if (r->name_at == r->name_count)
        return OX_GOTO(s, resolve_switches);
    return resolve_read(s, storage_path(r->st, "%s", r->names[r->name_at]), resolve_entry_read);
}

// An entry that cannot be understood is a place that cannot be opened: its name stays known.
static ox_step resolve_entry_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    const char *name = r->names[r->name_at++];
    struct storage_entry entry = {0};
    if (s->err == OX_E_NOT_FOUND)
        return OX_GOTO(s, resolve_entry);
    if (s->err != OX_OK)
        return resolve_unreadable(s, s->err, name);
    struct storage_place *p = storage_place_new(r->st, name, NULL, "");
    if (storage_entry_read(r->get.value, &entry) == OX_OK)
        storage_place_take(p, &entry, r->get.stat.version);
    else
        ox_error(r->st->p.log, "storage.entry.corrupt", "path=%s/%s version=%lld", r->st->p.config.root, name,
                 (long long)r->get.stat.version);
    p->version = r->get.stat.version;
    ox_buf_unref(&r->get.value);
    return OX_GOTO(s, resolve_entry);
}

// ---- headers: which switches there were ------------------------------------------------------------------------------

static ox_step resolve_switches(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(r->st, "orchestrator");
    return resolve_children(s, path, resolve_switches_read);
}

static ox_step resolve_switches_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return resolve_unreadable(s, s->err, "orchestrator");
    if (s->err == OX_OK) {
        r->switches = r->children.names;
        r->switch_count = r->children.count;
    }
    return OX_GOTO(s, resolve_header);
}

static ox_step resolve_header(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    if (r->switch_at == r->switch_count)
        return OX_GOTO(s, resolve_decide);
    return resolve_read(s, storage_path(r->st, "orchestrator/%s/header", r->switches[r->switch_at]), resolve_header_read);
}

// The header of the directive's switch says what it was doing; without a directive the newest one says what the directive was.
static ox_step resolve_header_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    const char *id = r->switches[r->switch_at++];
    struct storage_header h = {0};
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return resolve_unreadable(s, s->err, "orchestrator");
    if (s->err == OX_E_NOT_FOUND)
        return OX_GOTO(s, resolve_header);
    enum ox_err err = storage_header_read(r->get.value, &h);
    if (err != OX_OK) {
        ox_warn(st->p.log, "storage.header.corrupt", "switch=%s hint=" OX_LOG_Q, id, "its stages are counted anew");
    } else if (st->directive.switch_id && !strcmp(st->directive.switch_id, id)) {
        storage_header_take(st, &h);
        st->header_version = r->get.stat.version;
        st->control->saver.raw = json_loadb((const char *)r->get.value.data, r->get.value.len, 0, NULL);
    }
    ox_buf_unref(&r->get.value);
    if (err == OX_OK && (!r->newest.switch_id || h.epoch > r->newest.epoch)) {
        storage_header_fini(&r->newest);
        r->newest = h;
        return OX_GOTO(s, resolve_header);
    }
    storage_header_fini(&h);
    return OX_GOTO(s, resolve_header);
}

// ---- deciding --------------------------------------------------------------------------------------------------------

// The directive was removed by hand: what the newest header says stands.
static void resolve_restore(struct resolve *r)
{
    struct ox_storage *st = r->st;
    struct storage_directive *d = &st->directive;
    d->version = -1;
    d->epoch = r->newest.epoch;
    d->target = ox_strdup(r->newest.to);
    d->previous = r->newest.from ? ox_strdup(r->newest.from) : NULL;
    d->origin = ox_strdup(st->p.config.broker);
    d->switch_id = ox_strdup(r->newest.switch_id);
    d->ts_ms = r->newest.started_ms;
    storage_header_take(st, &r->newest);
    st->control->restore = true;
    st->control->alarms.value++;
    ox_error(st->p.log, "storage.directive.restored", "target=%s epoch=%lld switch=%s hint=" OX_LOG_Q, d->target,
             (long long)d->epoch, d->switch_id,
             "switch-target was removed; it is written again from the orchestrator's header");
}

// Entries without a bootstrap record and without any trace of a switch: a registration was cut off. The bootstrap place is the one that it recorded as active,
// else the configured one; the others have no ledgers yet.
static const char *resolve_cut_off(struct resolve *r)
{
    struct ox_storage *st = r->st;
    const char *active = NULL, *configured = NULL;
    uint32_t count = 0;
    OX_MAP_EACH(&st->places, node) {
        const struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (p->uri && !strcmp(p->uri, st->p.config.default_uri))
            configured = p->name;
        if (p->status && !strcmp(p->status, "ACTIVE")) {
            active = p->name;
            count++;
        }
    }
    return count == 1 ? active : configured ? configured : "default";
}

static const char *resolve_bootstrap_name(struct resolve *r)
{
    struct ox_storage *st = r->st;
    if (r->bootstrap_found)
        return st->control->bootstrap.name;
    if (ox_map_count(&st->places) == 0)
        return "default";
    st->control->interrupted = true;
    return resolve_cut_off(r);
}

static ox_step resolve_names(struct ox_seq *s);

// Records that contradict each other are not chosen between.
static ox_step resolve_decide(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    const char *root = st->p.config.root;
    if (!r->bootstrap_found && (st->directive.target || r->newest.switch_id))
        return resolve_fail(
            s, OX_E_CONFLICT,
            "%s/bootstrap is missing, but a switch to %s was made: without it nobody knows where unstamped ledgers "
            "are; "
            "write it again: {\"bootstrapClusterName\":\"NAME\",\"recordedAt\":0}, with the name of the bookie cluster "
            "that was the first one",
            root, st->directive.target ? st->directive.target : r->newest.to);
    if (!st->directive.target && r->newest.switch_id)
        resolve_restore(r);
    st->bootstrap = ox_strdup(resolve_bootstrap_name(r));
    return OX_GOTO(s, resolve_names);
}

// The bootstrap place is the one that the configuration names, unless that says nothing.
static bool resolve_contradicts(const struct ox_storage *st, const struct storage_place *bootstrap)
{
    return bootstrap && bootstrap->uri && st->p.config.default_uri_explicit &&
           strcmp(bootstrap->uri, st->p.config.default_uri) != 0;
}

static const char *resolve_active_name(const struct resolve *r)
{
    const struct ox_storage *st = r->st;
    if (st->directive.target)
        return st->directive.target;
    return *st->p.config.current ? st->p.config.current : st->bootstrap;
}

static ox_step resolve_names(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    const char *root = st->p.config.root;
    struct storage_place *bootstrap = storage_place_find(st, st->bootstrap);
    const char *known = st->control->bootstrap.identity;
    if (resolve_contradicts(st, bootstrap))
        return resolve_fail(s, OX_E_CONFLICT,
                            "bookkeeperMetadataServiceUri is %s, but the bootstrap bookie cluster %s is registered at "
                            "%s (%s/%s): set it to "
                            "that, or leave it empty; a running broker moves to another storage by register and switch",
                            st->p.config.default_uri, st->bootstrap, bootstrap->uri, root, st->bootstrap);
    if (bootstrap && known && *bootstrap->identity && strcmp(known, bootstrap->identity) != 0)
        return resolve_fail(s, OX_E_CONFLICT,
                            "%s/bootstrap says that %s has identity %s, %s/%s says %s: put the right one back", root,
                            st->bootstrap, known, root, st->bootstrap, bootstrap->identity);
    if (!bootstrap && !st->activated)
        bootstrap = storage_place_new(st, st->bootstrap, st->p.config.default_uri, "");
    r->active = ox_strdup(resolve_active_name(r));
    if (!storage_place_find(st, r->active))
        return resolve_fail(
            s, OX_E_CONFLICT, "bookie cluster %s is to be active (%s), but it is not registered: %s", r->active,
            st->directive.target    ? "by switch-target"
            : *st->p.config.current ? "by bookieClusterSwitch.currentClusterName"
                                    : "as the bootstrap one",
            *st->p.config.current && !st->directive.target ? "name a registered one, or leave the key empty"
                                                           : "put its entry below the root back");
    return OX_GOTO(s, resolve_open);
}

// ---- opening ---------------------------------------------------------------------------------------------------------

// Slot 0 is the bootstrap place, whatever became of it; then the others in the order of their names.
static struct storage_place *resolve_next(struct resolve *r)
{
    struct ox_storage *st = r->st;
    if (st->p.router->count == 0)
        return storage_place_find(st, st->bootstrap);
    OX_MAP_EACH(&st->places, node) {
        struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (p->index == STORAGE_NO_INDEX)
            return p;
    }
    return NULL;
}

static ox_step resolve_open(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    struct storage_place *p = resolve_next(r);
    if (!p && st->p.router->count == 0) { // it was unregistered and is gone
        ox_router_forget(st->p.router, ox_router_reserve(st->p.router, st->bootstrap, OX_E_PLACE_CLOSED));
        return OX_GOTO(s, resolve_open);
    }
    if (!p)
        return OX_GOTO(s, resolve_targets);
    // The data folder may have been moved: what counts is the identity.
    bool moved = st->p.router->count == 0 && !st->p.config.default_uri_explicit && *p->identity && p->uri &&
                 *st->p.config.default_uri && strcmp(p->uri, st->p.config.default_uri) != 0;
    bool configured = moved && !r->second_uri;
    ox_seq_bind(s, &r->opening.op, "storage.resolve.open");
    storage_opening_start(&st->p, &r->opening, p->name, configured ? st->p.config.default_uri : p->uri, p->identity);
    r->second_uri = configured;
    return OX_WAIT(s, resolve_opened);
}

static const char *resolve_advice(enum ox_err err)
{
    if (err == OX_E_LOCKED)
        return "another process uses it: stop that one";
    if (err == OX_E_PLACE_CHANGED)
        return "mount or put back the one that was registered";
    if (err == OX_E_CORRUPT)
        return "the log names the file: put that back from a backup";
    if (err == OX_E_NO_SPACE)
        return "make room on its file system";
    return "make it reachable";
}

static ox_step resolve_not_open(struct ox_seq *s, struct storage_place *p)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    enum ox_err err = s->err;
    if (r->opening.meta_failed)
        return resolve_fail(s, err, "%s", ox_str_get(&r->opening.why));
    if (!strcmp(p->name, r->active))
        return resolve_fail(s, err, "%s; new ledgers are made there, so the broker does not start without it: %s, then start again",
                            ox_str_get(&r->opening.why), resolve_advice(err));
    bool changed = err == OX_E_PLACE_CHANGED;
    p->index = ox_router_reserve(st->p.router, p->name, changed ? OX_E_PLACE_CHANGED : OX_E_PLACE_CLOSED);
    if (changed)
        ox_error(st->p.log, "storage.place.changed", "place=%s reason=" OX_LOG_Q, p->name, ox_str_get(&r->opening.why));
    else
        ox_warn(st->p.log, "storage.place.closed", "place=%s error=%s reason=" OX_LOG_Q, p->name, ox_err_name(err),
                ox_str_get(&r->opening.why));
    return OX_GOTO(s, resolve_open);
}

static ox_step resolve_opened(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    struct storage_place *p = resolve_next(r);
    OX_ASSERT(p);
    if (s->err != OX_OK && r->second_uri && !r->opening.meta_failed)
        return OX_GOTO(s, resolve_open); // not there: where it is registered
    if (s->err != OX_OK)
        return resolve_not_open(s, p);
    if (r->second_uri) {
        ox_warn(st->p.log, "storage.place.moved", "place=%s from=%s to=%s hint=" OX_LOG_Q, p->name, p->uri,
                st->p.config.default_uri, "the same storage is found at the configured address; its entry is corrected");
        ox_free(p->uri);
        p->uri = ox_strdup(st->p.config.default_uri);
        st->control->watch.moved = true;
    }
    r->second_uri = false;
    if (!*p->identity)
        memcpy(p->identity, r->opening.place->identity, sizeof p->identity);
    p->index = ox_router_add(st->p.router, r->opening.place);
    p->opened = true;
    return OX_GOTO(s, resolve_open);
}

// ---- the end ---------------------------------------------------------------------------------------------------------

// All places have their indexes.
static ox_step resolve_targets(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    ox_seq_bind(s, &r->targets.op, "storage.resolve.targets");
    storage_targets_load(r->st, &r->targets);
    return OX_WAIT(s, resolve_failures);
}

static ox_step resolve_failures(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    struct ox_storage *st = r->st;
    if (r->targets.why.len)
        return resolve_fail(s, s->err, "%s", ox_str_get(&r->targets.why));
    if (s->err != OX_OK)
        return resolve_unreadable(s, s->err, "targets");
    ox_router_activate(st->p.router, storage_place_find(st, r->active)->index);
    storage_refresh(st);
    ox_info(st->p.log, "storage.resolved", "active=%s epoch=%lld bootstrap=%s places=%zu switch=%s", r->active,
            (long long)st->directive.epoch, st->bootstrap, ox_map_count(&st->places), storage_state_name(st->state));
    if (!st->directive.target)
        return OX_FINISH(s, OX_OK);
    // A crash may have come between the directive and the header: the switch goes on.
    if (st->state == STORAGE_NONE)
        st->state = STORAGE_RUNNING;
    if (!st->started_ms)
        st->started_ms = st->directive.ts_ms;
    return resolve_read(s, storage_path(st, "orchestrator/%s/failures", st->directive.switch_id), resolve_failures_read);
}

static ox_step resolve_failures_read(struct ox_seq *s)
{
    struct resolve *r = resolve_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
    if (storage_failures_read(r->get.value, &r->st->failures) != OX_OK)
        ox_warn(r->st->p.log, "storage.failures.corrupt", "switch=%s", r->st->directive.switch_id);
    ox_buf_unref(&r->get.value);
    return OX_FINISH(s, OX_OK);
}
