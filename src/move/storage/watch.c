// watch.c - keeps this broker behind the directive: a watch, every 10 s, and whenever the session comes back, everything is looked at again. Watches are hints.
//
// One round: bootstrap record, directive (followed, or put back if it was removed or went back), acknowledgement, registry, places that are not open, header.
// What cannot be done now is left to the next round.
#include <string.h>

#include "move/storage/control_int.h"

static ox_step look_bootstrap(struct ox_seq *s);
static ox_step look_bootstrap_read(struct ox_seq *s);
static ox_step look_bootstrap_written(struct ox_seq *s);
static ox_step look_directive(struct ox_seq *s);
static ox_step look_directive_read(struct ox_seq *s);
static ox_step look_directive_written(struct ox_seq *s);
static ox_step look_target(struct ox_seq *s);
static ox_step look_target_entry(struct ox_seq *s);
static ox_step look_target_opened(struct ox_seq *s);
static ox_step look_ack(struct ox_seq *s);
static ox_step look_ack_read(struct ox_seq *s);
static ox_step look_ack_write(struct ox_seq *s);
static ox_step look_ack_written(struct ox_seq *s);
static ox_step look_ack_old(struct ox_seq *s);
static ox_step look_names(struct ox_seq *s);
static ox_step look_names_read(struct ox_seq *s);
static ox_step look_entry(struct ox_seq *s);
static ox_step look_entry_read(struct ox_seq *s);
static ox_step look_entry_written(struct ox_seq *s);
static ox_step look_closed(struct ox_seq *s);
static ox_step look_closed_opened(struct ox_seq *s);
static ox_step look_targets(struct ox_seq *s);
static ox_step look_targets_read(struct ox_seq *s);
static ox_step look_header(struct ox_seq *s);
static ox_step look_header_read(struct ox_seq *s);
static ox_step look_brokers(struct ox_seq *s);
static ox_step look_brokers_asked(struct ox_seq *s);

static struct ox_storage *look_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_watch, seq)->st;
}

static struct storage_watch *look_watch(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_watch, seq);
}

static void look_start(struct ox_storage *st);

static void look_fini(struct storage_watch *w)
{
    storage_directive_fini(&w->next);
    ox_str_fini(&w->opening.why);
    ox_free(w->opening_name);
    w->opening_name = NULL;
}

static void look_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    ox_meta_names_free(w->names, w->name_count);
    w->names = NULL;
    w->name_count = 0;
    if (!w->running) {
        look_fini(w);
        storage_settle(st);
    } else if (w->again) {
        look_start(st);
    } else {
        ox_timer_start(&w->timer, err == OX_OK ? STORAGE_REREAD_NS : STORAGE_RETRY_NS);
    }
}

static void look_start(struct ox_storage *st)
{
    struct storage_watch *w = &st->control->watch;
    w->again = false;
    ox_timer_stop(&w->timer);
    ox_seq_start(&w->seq, st->p.loop, "storage.watch", look_bootstrap, look_done);
}

void storage_watch_kick(struct ox_storage *st)
{
    struct storage_watch *w = &st->control->watch;
    if (!w->running)
        return;
    w->again = true;
    if (!w->seq.active)
        look_start(st);
}

static void look_tick(struct ox_timer *t)
{
    storage_watch_kick(CONTAINER_OF(t, struct storage_watch, timer)->st);
}

static void look_fired(struct ox_meta_watch *watch, enum ox_meta_event event)
{
    (void)event;
    storage_watch_kick(CONTAINER_OF(watch, struct storage_watch, watch)->st);
}

static void look_session(struct ox_meta_listener *l, enum ox_meta_session state)
{
    struct storage_watch *w = CONTAINER_OF(l, struct storage_watch, listener);
    if (state == OX_META_CONNECTED)
        storage_watch_kick(w->st);
    else if (state == OX_META_EXPIRED)
        w->acked = -1; // the acknowledgement went with the session
}

void storage_watch_start(struct ox_storage *st)
{
    struct storage_watch *w = &st->control->watch;
    w->st = st;
    w->running = true;
    w->next.version = -1;
    ox_timer_init(&w->timer, st->p.loop, look_tick);
    w->watch.fired = look_fired;
    w->listener.session = look_session;
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "switch-target");
    ox_meta_watch(st->p.meta, &w->watch, path);
    ox_meta_listen(st->p.meta, &w->listener);
    look_start(st);
}

void storage_watch_stop(struct ox_storage *st)
{
    struct storage_watch *w = &st->control->watch;
    if (!w->running)
        return;
    w->running = false;
    ox_timer_stop(&w->timer);
    ox_meta_unwatch(&w->watch);
    ox_meta_unlisten(st->p.meta, &w->listener);
    if (!w->seq.active)
        look_fini(w);
}

static ox_step look_read(struct ox_seq *s, char *take_path, ox_step_fn then)
{
    struct storage_watch *w = look_watch(s);
    ox_seq_bind(s, &w->get.op, "storage.watch.read");
    ox_meta_get(w->st->p.meta, &w->get, take_path);
    ox_free(take_path);
    return ox_seq_goto(s, then, "storage.watch.read", OX_STEP_WAIT);
}

// Something is wrong with a record: said once until it is right again.
static bool look_alarm(struct storage_watch *w, bool *said)
{
    if (*said)
        return false;
    *said = true;
    w->st->control->alarms.value++;
    return true;
}

// ---- bootstrap record ------------------------------------------------------------------------------------------------

static ox_step look_bootstrap(struct ox_seq *s)
{
    if (!look_watch(s)->running)
        return OX_FINISH(s, OX_OK);
    return look_read(s, storage_path(look_of(s), "bootstrap"), look_bootstrap_read);
}

// Another broker has registered a second place: from now on this one stamps, too.
static void look_activated(struct ox_storage *st, struct storage_bootstrap *take_record)
{
    if (strcmp(take_record->name, st->bootstrap) != 0) {
        ox_error(st->p.log, "storage.bootstrap.other", "recorded=%s here=%s hint=" OX_LOG_Q, take_record->name,
                 st->bootstrap, "another broker of this instance began in another bookie cluster: stop this one and correct its configuration");
        storage_bootstrap_fini(take_record);
        return;
    }
    storage_bootstrap_fini(&st->control->bootstrap);
    st->control->bootstrap = *take_record;
    st->activated = true;
    st->control->interrupted = false;
    storage_stamp(st);
    ox_info(st->p.log, "storage.activated_elsewhere", "bootstrap=%s", st->bootstrap);
}

static ox_step look_bootstrap_missing(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (look_alarm(w, &w->bootstrap_alarm))
        ox_error(st->p.log, "storage.bootstrap.missing", "root=%s bootstrap=%s hint=" OX_LOG_Q, st->p.config.root,
                 st->bootstrap,
                 "it was removed by hand; written again: without it unstamped ledgers cannot be found after a restart");
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "bootstrap");
    ox_seq_bind(s, &w->save.op, "storage.watch.bootstrap");
    storage_put(st, &w->save, path, storage_bootstrap_text(&st->control->bootstrap), OX_META_ABSENT);
    return OX_WAIT(s, look_bootstrap_written);
}

static ox_step look_bootstrap_written(struct ox_seq *s)
{
    return OX_GOTO(s, look_directive);
}

static ox_step look_bootstrap_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (s->err == OX_E_NOT_FOUND && st->activated)
        return look_bootstrap_missing(s);
    if (s->err != OX_OK)
        return s->err == OX_E_NOT_FOUND ? OX_GOTO(s, look_directive) : OX_FINISH(s, s->err);
    struct storage_bootstrap record;
    bool good = storage_bootstrap_read(w->get.value, &record) == OX_OK;
    ox_buf_unref(&w->get.value);
    if (good && !st->activated)
        look_activated(st, &record);
    else if (good)
        storage_bootstrap_fini(&record);
    if (good)
        w->bootstrap_alarm = false;
    else if (look_alarm(w, &w->bootstrap_alarm))
        ox_error(st->p.log, "storage.bootstrap.corrupt", "root=%s bootstrap=%s", st->p.config.root, st->bootstrap);
    return OX_GOTO(s, look_directive);
}

// ---- directive -------------------------------------------------------------------------------------------------------

static ox_step look_directive(struct ox_seq *s)
{
    return look_read(s, storage_path(look_of(s), "switch-target"), look_directive_read);
}

// Ours is written over what is there (version, or absent).
static ox_step look_put_back(struct ox_seq *s, int64_t version)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "switch-target");
    ox_seq_bind(s, &w->save.op, "storage.watch.directive");
    storage_put(st, &w->save, path, storage_directive_text(&st->directive), version);
    return OX_WAIT(s, look_directive_written);
}

static ox_step look_directive_written(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (s->err == OX_OK) {
        st->directive.version = w->save.version;
        st->directive.partial = false;
        st->control->restore = false;
    } else {
        w->again = s->err == OX_E_BAD_VERSION; // somebody was quicker: look again
    }
    return OX_GOTO(s, look_ack);
}

static ox_step look_directive_gone(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (!st->directive.target)
        return OX_GOTO(s, look_ack);
    if (!st->control->restore && look_alarm(w, &w->deleted_alarm))
        ox_error(st->p.log, "storage.directive.missing", "target=%s epoch=%lld hint=" OX_LOG_Q, st->directive.target,
                 (long long)st->directive.epoch, "switch-target was removed by hand; nothing changes, it is written again");
    return look_put_back(s, OX_META_ABSENT);
}

// True if the record is an older one than what is followed here.
static bool look_went_back(const struct ox_storage *st, const struct storage_directive *d)
{
    return st->directive.target && !d->partial && d->epoch <= st->directive.epoch;
}

// What another program wrote without an epoch counts as newer than what is known.
static void look_complete(const struct ox_storage *st, struct storage_directive *d)
{
    if (!d->partial)
        return;
    d->epoch = OX_MAX(d->epoch, st->directive.epoch + 1);
    if (!strncmp(d->switch_id, "epoch-", 6)) {
        ox_free(d->switch_id);
        d->switch_id = ox_asprintf("epoch-%lld", (long long)d->epoch);
    }
    if (!d->previous)
        d->previous = ox_strdup(storage_active(st));
}

static ox_step look_directive_new(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (look_went_back(st, &w->next)) {
        if (look_alarm(w, &w->stale_alarm))
            ox_error(st->p.log, "storage.directive.stale", "found=%s epoch=%lld here=%s epoch_here=%lld hint=" OX_LOG_Q,
                     w->next.target, (long long)w->next.epoch, st->directive.target, (long long)st->directive.epoch,
                     "switch-target was set back by hand; nothing changes, ours is written again");
        return look_put_back(s, w->next.version);
    }
    if (!st->activated) { // the record that was read before is older than this one
        w->again = true;
        return OX_GOTO(s, look_ack);
    }
    look_complete(st, &w->next);
    return OX_GOTO(s, look_target);
}

static ox_step look_directive_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (s->err == OX_E_NOT_FOUND)
        return look_directive_gone(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    w->deleted_alarm = false;
    storage_directive_fini(&w->next);
    enum ox_err err = storage_directive_read(w->get.value, w->get.stat.version, &w->next);
    ox_buf_unref(&w->get.value);
    if (err != OX_OK) {
        if (look_alarm(w, &w->corrupt_alarm))
            ox_error(st->p.log, "storage.directive.corrupt", "root=%s version=%lld hint=" OX_LOG_Q, st->p.config.root,
                     (long long)w->get.stat.version, "switch-target cannot be understood; nothing changes");
        return st->directive.target ? look_put_back(s, w->get.stat.version) : OX_GOTO(s, look_ack);
    }
    w->corrupt_alarm = false;
    const struct storage_directive *d = &st->directive;
    bool same = d->target && !w->next.partial && !strcmp(d->switch_id, w->next.switch_id) &&
                d->epoch == w->next.epoch && !strcmp(d->target, w->next.target);
    if (same) {
        st->directive.version = w->next.version;
        st->control->restore = w->stale_alarm = false;
        return OX_GOTO(s, look_ack);
    }
    if (d->target && d->partial && w->next.version == d->version)
        return look_put_back(s, d->version); // what start-up read: written again with its epoch
    return look_directive_new(s);
}

// ---- its target ------------------------------------------------------------------------------------------------------

static ox_step look_follow_failed(struct ox_seq *s, const char *why)
{
    struct storage_watch *w = look_watch(s);
    if (look_alarm(w, &w->follow_alarm))
        ox_error(w->st->p.log, "storage.follow.failed", "target=%s epoch=%lld reason=" OX_LOG_Q, w->next.target,
                 (long long)w->next.epoch, why);
    return OX_GOTO(s, look_ack);
}

static ox_step look_adopt(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    w->follow_alarm = false;
    storage_adopt(st, &w->next);
    if (st->directive.partial)
        return look_put_back(s, st->directive.version);
    return OX_GOTO(s, look_ack);
}

static ox_step look_target_open(struct ox_seq *s, const struct storage_place *p)
{
    struct storage_watch *w = look_watch(s);
    ox_seq_bind(s, &w->opening.op, "storage.watch.open");
    storage_opening_start(&w->st->p, &w->opening, p->name, p->uri, p->identity);
    return OX_WAIT(s, look_target_opened);
}

static ox_step look_target(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    const struct storage_place *p = storage_place_find(st, w->next.target);
    if (st->control->busy) { // a verb of ours is at work; it kicks when it is over
        return OX_GOTO(s, look_ack);
    }
    if (!p)
        return look_read(s, storage_path(st, "%s", w->next.target), look_target_entry);
    return ox_router_place(st->p.router, p->index) ? look_adopt(s) : look_target_open(s, p);
}

// A place that was registered at another broker.
static struct storage_place *look_learn(struct ox_storage *st, const char *name, struct storage_entry *take_entry,
                                        int64_t version)
{
    struct storage_place *p = storage_place_new(st, name, NULL, "");
    storage_place_take(p, take_entry, version);
    p->index = ox_router_reserve(st->p.router, name, OX_E_PLACE_CLOSED);
    storage_refresh(st);
    return p;
}

static ox_step look_target_entry(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct storage_entry entry;
    if (s->err != OX_OK)
        return look_follow_failed(s, s->err == OX_E_NOT_FOUND ? "it is not registered" : ox_err_text(s->err));
    enum ox_err err = storage_entry_read(w->get.value, &entry);
    ox_buf_unref(&w->get.value);
    if (err != OX_OK)
        return look_follow_failed(s, "its entry cannot be understood");
    const struct storage_place *known = storage_place_find(w->st, w->next.target);
    if (known)
        storage_entry_fini(&entry);
    return look_target_open(s, known ? known : look_learn(w->st, w->next.target, &entry, w->get.stat.version));
}

// The place was opened for a name that may be registered no more, or be open by now: then it is closed again.
static ox_step look_attach(struct ox_seq *s, const char *name, ox_step_fn then)
{
    struct storage_watch *w = look_watch(s);
    struct storage_place *p = storage_place_find(w->st, name);
    if (p && !ox_router_place(w->st->p.router, p->index)) {
        if (!*p->identity)
            memcpy(p->identity, w->opening.place->identity, sizeof p->identity);
        storage_place_attach(w->st, p, w->opening.place);
        ox_info(w->st->p.log, "storage.place.open", "place=%s uri=%s", p->name, p->uri);
        w->opening.place = NULL;
        return ox_seq_goto(s, then, "storage.watch.attached", OX_STEP_NEXT);
    }
    ox_seq_bind(s, &w->close, "storage.watch.close");
    ox_place_close(w->opening.place, &w->close);
    return ox_seq_goto(s, look_header, "storage.watch.close", OX_STEP_WAIT);
}

static ox_step look_target_opened(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (s->err != OX_OK)
        return look_follow_failed(s, ox_str_get(&w->opening.why));
    return look_attach(s, w->next.target, look_adopt);
}

// ---- acknowledgement -------------------------------------------------------------------------------------------------

static char *look_ack_path(const struct ox_storage *st, int64_t epoch)
{
    return storage_path(st, "acks/%lld/%s", (long long)epoch, st->p.config.broker);
}

static ox_step look_ack(struct ox_seq *s)
{
    struct ox_storage *st = look_of(s);
    if (!st->activated || !look_watch(s)->running)
        return OX_GOTO(s, look_names);
    return look_read(s, look_ack_path(st, st->directive.epoch), look_ack_read);
}

static ox_step look_ack_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (s->err == OX_E_NOT_FOUND)
        return OX_GOTO(s, look_ack_write);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    bool ours = w->get.stat.ephemeral_session == st->p.meta->session_id;
    ox_buf_unref(&w->get.value);
    if (ours) {
        w->acked = st->directive.epoch;
        return OX_GOTO(s, look_names);
    }
    OX_CLEANUP(ox_free_ptr) // of a former session of this broker
    char *path = look_ack_path(st, st->directive.epoch);
    ox_seq_bind(s, &w->del.op, "storage.watch.ack_del");
    ox_meta_del(st->p.meta, &w->del, path, w->get.stat.version);
    return OX_WAIT(s, look_ack_write);
}

static ox_step look_ack_write(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    OX_CLEANUP(ox_free_ptr)
    char *path = look_ack_path(st, st->directive.epoch);
    w->acking = st->directive.epoch;
    ox_seq_bind(s, &w->put.op, "storage.watch.ack");
    ox_meta_put(st->p.meta, &w->put, path, ox_buf_empty(), OX_META_ABSENT, OX_META_EPHEMERAL);
    return OX_WAIT(s, look_ack_written);
}

static ox_step look_ack_written(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    int64_t old = w->acked;
    if (s->err != OX_OK) {
        w->again = s->err == OX_E_BAD_VERSION || s->err == OX_E_UNKNOWN_OUTCOME;
        return OX_GOTO(s, look_names);
    }
    ox_free(w->put.path);
    w->acked = w->acking;
    OX_CRASHPOINT(s->loop, "switch.after_ack");
    if (old < 0 || old == w->acked)
        return OX_GOTO(s, look_names);
    OX_CLEANUP(ox_free_ptr) // that of the epoch before is not needed any more
    char *path = look_ack_path(st, old);
    w->acked_before = old;
    ox_seq_bind(s, &w->del.op, "storage.watch.ack_old");
    ox_meta_del(st->p.meta, &w->del, path, OX_META_ANY);
    return OX_WAIT(s, look_ack_old);
}

static ox_step look_ack_old(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(w->st, "acks/%lld", (long long)w->acked_before);
    ox_seq_bind(s, &w->del.op, "storage.watch.ack_epoch");
    ox_meta_del(w->st->p.meta, &w->del, path, OX_META_ANY); // stays while other brokers' nodes are in it
    return OX_WAIT(s, look_names);
}

// ---- registry --------------------------------------------------------------------------------------------------------

// A verb at work here changes the registry itself: it is left alone.
static bool look_may_touch(const struct storage_watch *w)
{
    return w->running && !w->st->control->busy;
}

static ox_step look_names(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (!look_may_touch(w) || !w->st->activated)
        return OX_GOTO(s, look_header);
    ox_seq_bind(s, &w->children.op, "storage.watch.names");
    ox_meta_children(w->st->p.meta, &w->children, w->st->p.config.root);
    return OX_WAIT(s, look_names_read);
}

static ox_step look_names_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    w->names = w->children.names;
    w->name_count = w->children.count;
    w->name_at = 0;
    return OX_GOTO(s, look_entry);
}

static ox_step look_entry(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    const char *why;
    while (w->name_at < w->name_count && !storage_name_valid(w->names[w->name_at], &why))
        w->name_at++;
    if (w->name_at == w->name_count || !look_may_touch(w)) {
        w->place_at = 0;
        return OX_GOTO(s, look_closed);
    }
    return look_read(s, storage_path(w->st, "%s", w->names[w->name_at]), look_entry_read);
}

static ox_step look_repair(struct ox_seq *s, struct storage_place *p)
{
    struct storage_watch *w = look_watch(s);
    const char *status = storage_status(w->st, p);
    bool moved = w->moved && !strcmp(p->name, w->st->bootstrap);
    if (p->status && !strcmp(p->status, status) && !moved)
        return OX_GOTO(s, look_entry);
    ox_info(w->st->p.log, "storage.status", "place=%s from=%s to=%s", p->name, p->status ? p->status : "-", status);
    ox_free(p->status);
    p->status = ox_strdup(status);
    w->moved = w->moved && !moved;
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(w->st, "%s", p->name);
    ox_seq_bind(s, &w->save.op, "storage.watch.status");
    storage_put(w->st, &w->save, path, storage_entry_text(p), p->version);
    return OX_WAIT(s, look_entry_written);
}

// The view is repaired; whoever wins a race for it, it is looked at again.
static ox_step look_entry_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    const char *name = w->names[w->name_at++];
    struct storage_entry entry;
    if (s->err != OX_OK)
        return s->err == OX_E_NOT_FOUND ? OX_GOTO(s, look_entry) : OX_FINISH(s, s->err);
    bool good = look_may_touch(w) && storage_entry_read(w->get.value, &entry) == OX_OK;
    ox_buf_unref(&w->get.value);
    if (!good)
        return OX_GOTO(s, look_entry);
    struct storage_place *p = storage_place_find(st, name);
    if (p)
        storage_place_take(p, &entry, w->get.stat.version);
    else
        p = look_learn(st, name, &entry, w->get.stat.version);
    return look_repair(s, p);
}

static ox_step look_entry_written(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct storage_place *p = storage_place_find(w->st, w->names[w->name_at - 1]);
    if (s->err == OX_OK && p)
        p->version = w->save.version;
    return OX_GOTO(s, look_entry);
}

// ---- places that are not open ----------------------------------------------------------------------------------------

static struct storage_place *look_closed_next(struct storage_watch *w)
{
    OX_MAP_EACH(&w->st->places, node) {
        struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (p->index >= w->place_at && p->uri && !ox_router_place(w->st->p.router, p->index) &&
            (!p->opened || storage_target_user(w->st, p->index)))
            return p;
    }
    return NULL;
}

static ox_step look_closed(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct storage_place *p = look_may_touch(w) ? look_closed_next(w) : NULL;
    uint64_t now = ox_now_ns(s->loop);
    if (w->place_at == 0 && w->opened_ns && now - w->opened_ns < STORAGE_REREAD_NS)
        p = NULL;
    if (!p)
        return OX_GOTO(s, look_targets);
    w->opened_ns = now;
    w->place_at = p->index + 1;
    ox_free(w->opening_name);
    w->opening_name = ox_strdup(p->name);
    ox_seq_bind(s, &w->opening.op, "storage.watch.reopen");
    storage_opening_start(&w->st->p, &w->opening, p->name, p->uri, p->identity);
    return OX_WAIT(s, look_closed_opened);
}

// What failed because of it may work now.
static void look_back(struct ox_storage *st)
{
    if (st->state != STORAGE_DONE_WITH_FAILURES)
        return;
    st->state = STORAGE_RUNNING;
    storage_header_save(st);
    storage_orchestrate(st);
}

static ox_step look_back_open(struct ox_seq *s)
{
    look_back(look_of(s));
    return OX_GOTO(s, look_closed);
}

static ox_step look_closed_opened(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (s->err == OX_OK)
        return look_attach(s, w->opening_name, look_back_open);
    const struct storage_place *p = storage_place_find(st, w->opening_name);
    bool changed = s->err == OX_E_PLACE_CHANGED;
    if (p && changed && st->p.router->slots[p->index].err != OX_E_PLACE_CHANGED)
        ox_error(st->p.log, "storage.place.changed_now", "place=%s reason=" OX_LOG_Q, p->name, ox_str_get(&w->opening.why));
    if (p && !w->opening.meta_failed)
        ox_router_reserve(st->p.router, p->name, changed ? OX_E_PLACE_CHANGED : OX_E_PLACE_CLOSED);
    return OX_GOTO(s, look_closed);
}

// ---- targets: another broker may have changed them ---------------------------------------------------------------------

static ox_step look_targets(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (!look_may_touch(w))
        return OX_GOTO(s, look_header);
    ox_seq_bind(s, &w->targets.op, "storage.watch.targets");
    storage_targets_load(w->st, &w->targets);
    return OX_WAIT(s, look_targets_read);
}

// A record that is not right changes nothing: what was known before goes on to hold.
static ox_step look_targets_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    bool wrong = w->targets.why.len > 0;
    if (s->err != OX_OK && !wrong)
        return OX_FINISH(s, s->err);
    if (!wrong)
        w->target_alarm = false;
    else if (look_alarm(w, &w->target_alarm))
        ox_error(w->st->p.log, "storage.targets.wrong", "reason=" OX_LOG_Q, ox_str_get(&w->targets.why));
    ox_str_fini(&w->targets.why);
    return OX_GOTO(s, look_header);
}

// ---- header: another broker may lead the stages ------------------------------------------------------------------------

static ox_step look_header(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    if (!w->running || !st->directive.switch_id || st->control->saver.seq.active)
        return OX_GOTO(s, look_brokers);
    return look_read(s, storage_path(st, "orchestrator/%s/header", st->directive.switch_id), look_header_read);
}

static ox_step look_header_read(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    struct ox_storage *st = w->st;
    struct storage_header h;
    if (s->err == OX_E_NOT_FOUND && st->header_version >= 0 && w->running)
        storage_header_save(st); // removed by hand
    if (s->err != OX_OK)
        return s->err == OX_E_NOT_FOUND ? OX_GOTO(s, look_brokers) : OX_FINISH(s, s->err);
    bool newer = !st->control->saver.seq.active && w->get.stat.version > st->header_version &&
                 storage_header_read(w->get.value, &h) == OX_OK;
    ox_buf_unref(&w->get.value);
    if (newer && !strcmp(h.switch_id, st->directive.switch_id)) {
        storage_header_take(st, &h);
        st->header_version = w->get.stat.version;
        storage_orchestrate(st);
    }
    if (newer)
        storage_header_fini(&h);
    return OX_GOTO(s, look_brokers);
}

// ---- who follows -------------------------------------------------------------------------------------------------------

static ox_step look_brokers(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (!w->running || !w->st->activated)
        return OX_FINISH(s, OX_OK);
    w->asked = w->st->directive.epoch;
    ox_seq_bind(s, &w->brokers.op, "storage.watch.brokers");
    storage_brokers_ask(w->st, &w->brokers);
    return OX_WAIT(s, look_brokers_asked);
}

static ox_step look_brokers_asked(struct ox_seq *s)
{
    struct storage_watch *w = look_watch(s);
    if (s->err == OX_OK && w->asked == w->st->directive.epoch)
        storage_brokers_note(w->st, &w->brokers);
    storage_brokers_fini(&w->brokers);
    return OX_FINISH(s, s->err);
}

// ---- following -------------------------------------------------------------------------------------------------------

void storage_adopt(struct ox_storage *st, const struct storage_directive *d)
{
    const struct storage_place *p = storage_place_find(st, d->target);
    OX_ASSERT(p && ox_router_place(st->p.router, p->index));
    storage_directive_copy(&st->directive, d);
    ox_router_activate(st->p.router, p->index);
    OX_CRASHPOINT(st->p.loop, "switch.after_activate");
    st->state = STORAGE_RUNNING;
    st->move_data = false;
    st->started_ms = d->ts_ms ? d->ts_ms : ox_wall_ms(st->p.loop);
    st->finished_ms = 0;
    st->header_version = -1;
    json_decref(st->control->saver.raw);
    st->control->saver.raw = NULL;
    st->writes = st->metadata = st->data = (struct storage_progress){0};
    st->control->swapped = false;
    st->control->guarded = st->control->elsewhere = -1;
    storage_failures_clear(st);
    storage_refresh(st);
    ox_info(st->p.log, "storage.switched", "active=%s epoch=%lld switch=%s previous=%s origin=%s", d->target,
            (long long)d->epoch, d->switch_id, d->previous ? d->previous : "-", d->origin ? d->origin : "-");
    ox_ml_follow(st->factory);
    OX_CRASHPOINT(st->p.loop, "switch.after_follow");
    storage_watch_kick(st);
    storage_orchestrate(st);
}
