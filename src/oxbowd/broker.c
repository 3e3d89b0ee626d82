// broker.c - starting and stopping everything, one step after another.
#include "oxbowd/broker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "io/posix/posix.h"
#include "oxbowd/follow.h"
#include "oxbowd/settings.h"

#define SWEEP_AGAIN_NS (30 * OX_SEC)    // after a sweep that a store has cut short
#define INSTANCE_PATH "/oxbow/instance" // the id that this instance's ledgers carry

static struct oxbowd *oxbowd_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct oxbowd, seq);
}

static ox_step start_folder(struct ox_seq *s);
static ox_step start_metadata(struct ox_seq *s);
static ox_step start_places(struct ox_seq *s);
static ox_step start_instance(struct ox_seq *s);
static ox_step start_instance_read(struct ox_seq *s);
static ox_step start_instance_written(struct ox_seq *s);
static ox_step start_settings(struct ox_seq *s);
static ox_step start_shard(struct ox_seq *s);
static ox_step start_ready(struct ox_seq *s);

// A step that failed: says what and what to do, once.
static ox_step start_failed(struct ox_seq *s, enum ox_err err, const char *what, const char *advice)
{
    struct oxbowd *b = oxbowd_of(s);
    if (b->trouble.len == 0)
        ox_str_addf(&b->trouble, "%s: %s%s%s", what, ox_err_text(err), *advice ? "; " : "", advice);
    return OX_FINISH(s, err);
}

// ---- starting -------------------------------------------------------------------------------------------------------

static void start_opener(struct oxbowd *b)
{
    b->opener = (struct opener){.loop = b->loop,
                                .fs = b->fs,
                                .config = b->config,
                                .metrics = &b->metrics,
                                .cwd = b->cwd,
                                .table = b->table,
                                .segment_bytes = b->segment_bytes};
    opener_init(&b->opener);
}

static void start_names(struct oxbowd *b)
{
    const struct ox_config *c = b->config;
    const char *uri = c->bookkeeperMetadataServiceUri, *why;
    b->metadata_url = *c->metadataStoreUrl ? ox_strdup(c->metadataStoreUrl) : ox_asprintf("lmdb:%s/metadata", b->data_dir);
    OX_CLEANUP(ox_free_ptr)
    char *standard = ox_asprintf("embedded:%s/store", b->data_dir);
    start_opener(b);
    b->store_uri = b->opener.opener.canonical(&b->opener.opener, *uri ? uri : standard, &why);
    OX_ASSERT(b->store_uri);                                              // settings_check has seen it
    b->opener.data = b->data_path = opener_absolute(b->cwd, b->data_dir); // from now on nothing is made around it
}

// Makes the data folder and those above it, one a step.
static ox_step start_folder(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err != OX_OK)
        return start_failed(s, s->err, b->folder, "choose a data directory that can be written with --data DIR");
    if (!b->data_dir[b->path_done])
        return OX_GOTO(s, start_metadata);
    b->path_done++;
    b->path_done += strcspn(b->data_dir + b->path_done, "/");
    ox_free(b->folder);
    b->folder = ox_strndup(b->data_dir, b->path_done);
    ox_seq_bind(s, &b->op, "oxbowd.folder");
    ox_fs_mkdir(b->fs, &b->op, b->folder);
    return OX_WAIT(s, start_folder);
}

static ox_step start_metadata(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (b->take_meta) {
        b->meta = b->take_meta;
        return OX_GOTO(s, start_places);
    }
    ox_seq_bind(s, &b->op, "oxbowd.metadata.open");
    ox_meta_open(b->loop, &b->op, b->metadata_url, &b->meta);
    return OX_WAIT(s, start_places);
}

static const char *start_advice(const struct oxbowd *b, enum ox_err err)
{
    if (err == OX_E_LOCKED)
        return "another oxbowd runs on this directory: stop it, or choose another one with --data DIR";
    if (err == OX_E_NO_SPACE)
        return "make room on its file system, then start again";
    if (err == OX_E_ACCESS)
        return b->is_service ? "give this user the right to write there, and the unit ReadWritePaths= (systemctl edit)"
                             : "give this user the right to write there";
    return "see the log above";
}

// The host that clients are told.
static const char *advertised_host(const struct ox_config *c)
{
    if (*c->advertisedAddress)
        return c->advertisedAddress;
    return strcmp(c->bindAddress, "0.0.0.0") == 0 ? "127.0.0.1" : c->bindAddress;
}

static void start_broker_id(struct oxbowd *b, uint16_t port)
{
    snprintf(b->broker_id, sizeof b->broker_id, "%s:%u", advertised_host(b->config), port);
}

// Which places there are and which of them is active: read from the metadata, or the configured one alone.
static ox_step start_places(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err != OX_OK)
        return start_failed(s, s->err, b->metadata_url, start_advice(b, s->err));
    ox_router_init(&b->router, b->loop);
    b->router_made = true;
    start_broker_id(b, (uint16_t)b->config->webServicePort);
    struct ox_storage_ports ports = {.loop = b->loop,
                                     .log = b->log,
                                     .meta = b->meta,
                                     .router = &b->router,
                                     .metrics = &b->metrics,
                                     .opener = &b->opener.opener,
                                     .is_service = b->is_service};
    settings_storage(b->config, &ports.config);
    ports.config.broker = b->broker_id;
    ports.config.default_uri = b->store_uri;
    ox_seq_bind(s, &b->op, "oxbowd.places.open");
    ox_storage_resolve(&ports, &b->op, &b->trouble, &b->storage);
    return OX_WAIT(s, start_instance);
}

static ox_step start_instance(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err != OX_OK)
        return start_failed(s, s->err, b->store_uri, start_advice(b, s->err));
    ox_seq_bind(s, &b->get.op, "oxbowd.instance.read");
    ox_meta_get(b->meta, &b->get, INSTANCE_PATH);
    return OX_WAIT(s, start_instance_read);
}

static ox_step start_instance_read(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err == OX_OK) {
        b->instance = ox_strndup((const char *)b->get.value.data, b->get.value.len);
        ox_buf_unref(&b->get.value);
        return OX_GOTO(s, start_settings);
    }
    if (s->err != OX_E_NOT_FOUND)
        return start_failed(s, s->err, INSTANCE_PATH, "see the log above");
    b->instance = ox_asprintf("%016" PRIx64 "%016" PRIx64, ox_loop_random(s->loop), ox_loop_random(s->loop));
    struct ox_buf value = ox_buf_copy(b->instance, strlen(b->instance));
    ox_seq_bind(s, &b->put.op, "oxbowd.instance.write");
    ox_meta_put(b->meta, &b->put, INSTANCE_PATH, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, start_instance_written);
}

static ox_step start_instance_written(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err != OX_OK)
        return start_failed(s, s->err, INSTANCE_PATH, "start again");
    ox_free(b->put.path);
    return OX_GOTO(s, start_settings);
}

// What was set over REST is in force before the first topic is served.
static ox_step start_settings(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    b->dynamic.loop = b->loop;
    b->dynamic.log = b->log;
    b->dynamic.meta = b->meta;
    b->dynamic.live = &b->live;
    ox_seq_bind(s, &b->op, "oxbowd.settings.read");
    dynamic_open(&b->dynamic, &b->op);
    return OX_WAIT(s, start_shard);
}

static void start_mledgers(struct oxbowd *b)
{
    b->mledgers.loop = b->loop;
    b->mledgers.log = b->log;
    b->mledgers.meta = b->meta;
    b->mledgers.router = &b->router;
    b->mledgers.metrics = &b->metrics;
    b->mledgers.instance = b->instance;
    settings_mledger(b->config, &b->mledgers.settings);
    b->mledgers.settings.stamps = ox_storage_activated(b->storage);
    ox_ml_factory_init(&b->mledgers, settings_cache_bytes(b->config));
    b->mledgers_made = true;
}

static enum ox_err listen_failed(struct oxbowd *b, enum ox_err err, int64_t port, const char *key)
{
    ox_str_addf(&b->trouble, "cannot listen on %s:%lld: %s; stop what uses the port, or choose another one with --set %s=PORT (bindAddress: the address)",
                b->config->bindAddress, (long long)port, ox_err_text(err), key);
    return err;
}

static enum ox_err start_pulsar(struct oxbowd *b)
{
    const struct ox_config *c = b->config;
    b->pulsar.shard = &b->shard;
    b->pulsar.net = b->net;
    settings_pulsar(c, &b->pulsar.config);
    b->pulsar.config.advertised = advertised_host(c);
    enum ox_err err = ox_pulsar_listen(&b->pulsar);
    if (err != OX_OK)
        return listen_failed(b, err, c->brokerServicePort, "brokerServicePort");
    b->pulsar_made = true;
    return OX_OK;
}

static void process_usage(struct ox_admin_process *ret)
{
    struct ox_posix_usage usage;
    struct ox_posix_files files = {0};
    if (ret->wants_files)
        ox_posix_files(&files);
    ox_posix_usage(&usage);
    *ret = (struct ox_admin_process){.cpu_ns = usage.cpu_ns,
                                     .resident_bytes = usage.resident_bytes,
                                     .memory_bytes = usage.memory_bytes,
                                     .processors = usage.processors,
                                     .virtual_bytes = files.virtual_bytes,
                                     .files_open = files.open,
                                     .files_max = files.max};
}

static enum ox_err start_admin(struct oxbowd *b)
{
    const struct ox_config *c = b->config;
    if (!b->rest)
        return OX_OK;
    struct ox_admin_config admin = {.shard = &b->shard,
                                    .host = c->bindAddress,
                                    .port = (uint16_t)c->webServicePort,
                                    .net = b->net,
                                    .storage = b->storage,
                                    .settings = dynamic_port(&b->dynamic),
                                    .process = process_usage};
    settings_admin(c, &admin.limits);
    enum ox_err err = ox_admin_open(&admin, &b->admin);
    return err == OX_OK ? OX_OK : listen_failed(b, err, c->webServicePort, "webServicePort");
}

static ox_step start_shard(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    start_mledgers(b);
    b->shard.loop = b->loop;
    b->shard.log = b->log;
    b->shard.metrics = &b->metrics;
    b->shard.meta = b->meta;
    b->shard.router = &b->router;
    b->shard.mledgers = &b->mledgers;
    settings_broker(b->config, &b->shard.config);
    ox_shard_init(&b->shard);
    b->shard_made = true;
    enum ox_err err = start_pulsar(b);
    if (err == OX_OK)
        err = start_admin(b);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    b->service_url = ox_asprintf("pulsar://%s:%u", advertised_host(b->config), b->pulsar.port);
    start_broker_id(b, b->admin ? ox_admin_port(b->admin) : (uint16_t)b->config->webServicePort);
    b->web_url = ox_asprintf("http://%s", b->broker_id);
    b->shard.config.service_url = b->service_url;
    b->shard.config.web_url = b->web_url;
    b->shard.config.metadata_url = b->metadata_url;
    ox_seq_bind(s, &b->op, "oxbowd.shard.start");
    ox_shard_start(&b->shard, &b->op);
    return OX_WAIT(s, start_ready);
}

static void sweep_done(struct ox_op *op)
{
    struct oxbowd *b = CONTAINER_OF(op, struct oxbowd, sweep);
    if (b->stop_wanted) {
        oxbowd_stop(b);
    } else if (op->err != OX_OK && op->err != OX_E_SHUTDOWN && op->err != OX_E_CANCELED) {
        ox_warn(b->log, "oxbowd.sweep.failed", "error=%s", ox_err_name(op->err));
        ox_timer_start(&b->sweep_again, SWEEP_AGAIN_NS);
    }
}

static void sweep_start(struct ox_timer *t)
{
    struct oxbowd *b = CONTAINER_OF(t, struct oxbowd, sweep_again);
    ox_op_init(&b->sweep, b->loop, sweep_done, "oxbowd.sweep");
    ox_ml_orphans_sweep(&b->mledgers, &b->sweep);
}

static ox_step start_ready(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (s->err != OX_OK)
        return start_failed(s, s->err, "broker", "see the log above");
    b->running = true;
    ox_info(b->log, "oxbowd.ready", "version=%s pulsar=%s web=%s data=%s ms=%llu", OX_VERSION, b->service_url,
            b->web_url, b->data_dir, (unsigned long long)((ox_now_ns(b->loop) - b->started_ns) / OX_MS));
    ox_storage_start(b->storage, &b->mledgers);
    b->storage_started = true;
    ox_timer_init(&b->sweep_again, b->loop, sweep_start);
    ox_timer_start(&b->sweep_again, 0);
    waiting_start(&b->waiting, &b->mledgers);
    if (b->ready)
        b->ready(b);
    return OX_FINISH(s, OX_OK);
}

static void start_over(struct ox_seq *s, enum ox_err err)
{
    struct oxbowd *b = oxbowd_of(s);
    b->starting = false;
    if (err != OX_OK)
        b->outcome = err;
    if (err != OX_OK || b->stop_wanted)
        oxbowd_stop(b);
}

static void start_follow(struct live *l, const struct ox_config *before)
{
    follow_settings(CONTAINER_OF(l, struct oxbowd, live), before);
}

static void start_live(struct oxbowd *b)
{
    b->live.log = b->log;
    b->live.config = b->config;
    b->live.changed = start_follow;
    live_init(&b->live);
}

void oxbowd_start(struct oxbowd *b)
{
    b->started_ns = ox_now_ns(b->loop);
    b->starting = true;
    ox_metrics_init(&b->metrics);
    b->metrics.cluster = b->config->clusterName;
    start_live(b);
    start_names(b);
    ox_seq_start(&b->seq, b->loop, "oxbowd.start", start_folder, start_over);
}

// ---- stopping -------------------------------------------------------------------------------------------------------

static ox_step stop_storage(struct ox_seq *s);
static ox_step stop_shard(struct ox_seq *s);
static ox_step stop_pulsar(struct ox_seq *s);
static ox_step stop_admin(struct ox_seq *s);
static ox_step stop_mledgers(struct ox_seq *s);
static ox_step stop_doors(struct ox_seq *s);
static ox_step stop_places(struct ox_seq *s);
static ox_step stop_metadata(struct ox_seq *s);
static ox_step stop_done(struct ox_seq *s);

static void stop_note(struct oxbowd *b, const char *what, enum ox_err err)
{
    if (err == OX_OK)
        return;
    ox_warn(b->log, "oxbowd.stop.error", "part=%s error=%s", what, ox_err_name(err));
    if (b->outcome == OX_OK)
        b->outcome = err;
}

// Nothing is moved any more when the topics are closed.
static ox_step stop_storage(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (b->pulsar_made)
        ox_pulsar_unlisten(&b->pulsar);
    if (!b->storage_started)
        return OX_GOTO(s, stop_shard);
    ox_seq_bind(s, &b->op, "oxbowd.storage.stop");
    ox_storage_stop(b->storage, &b->op);
    return OX_WAIT(s, stop_shard);
}

static ox_step stop_shard(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (!b->shard_made || b->shard.state != OX_SHARD_RUNNING)
        return OX_GOTO(s, stop_pulsar);
    ox_seq_bind(s, &b->op, "oxbowd.shard.stop");
    ox_shard_stop(&b->shard, &b->op);
    return OX_WAIT(s, stop_pulsar);
}

static ox_step stop_pulsar(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    stop_note(b, "topics", s->err);
    if (!b->pulsar_made)
        return OX_GOTO(s, stop_admin);
    ox_seq_bind(s, &b->op, "oxbowd.pulsar.close");
    ox_pulsar_close(&b->pulsar, &b->op);
    return OX_WAIT(s, stop_admin);
}

// REST requests in work end before what they work with goes.
static ox_step stop_admin(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (!b->admin)
        return OX_GOTO(s, stop_mledgers);
    ox_seq_bind(s, &b->op, "oxbowd.admin.drain");
    ox_admin_drain(b->admin, &b->op);
    return OX_WAIT(s, stop_mledgers);
}

static ox_step stop_mledgers(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (!b->mledgers_made)
        return OX_GOTO(s, stop_doors);
    ox_seq_bind(s, &b->op, "oxbowd.mledgers.drain");
    ox_ml_factory_drain(&b->mledgers, &b->op);
    return OX_WAIT(s, stop_doors);
}

static ox_step stop_doors(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (b->pulsar_made)
        ox_pulsar_fini(&b->pulsar);
    if (b->admin)
        ox_admin_close(b->admin);
    dynamic_close(&b->dynamic);
    if (b->shard_made)
        ox_shard_fini(&b->shard);
    b->shard_made = false;
    waiting_fini(&b->waiting);
    if (b->mledgers_made)
        ox_ml_factory_fini(&b->mledgers);
    b->mledgers_made = b->pulsar_made = false;
    if (b->storage)
        ox_storage_free(b->storage);
    b->storage = NULL;
    return OX_GOTO(s, stop_places);
}

static ox_step stop_places(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    if (!b->router_made)
        return OX_GOTO(s, stop_metadata);
    ox_seq_bind(s, &b->op, "oxbowd.places.close");
    ox_router_close(&b->router, &b->op);
    return OX_WAIT(s, stop_metadata);
}

static ox_step stop_metadata(struct ox_seq *s)
{
    struct oxbowd *b = oxbowd_of(s);
    stop_note(b, "places", s->err);
    if (!b->meta)
        return OX_GOTO(s, stop_done);
    ox_seq_bind(s, &b->op, "oxbowd.metadata.close");
    ox_meta_close(b->meta, &b->op);
    return OX_WAIT(s, stop_done);
}

static ox_step stop_done(struct ox_seq *s)
{
    stop_note(oxbowd_of(s), "metadata", s->err);
    return OX_FINISH(s, OX_OK);
}

static void stop_over(struct ox_seq *s, enum ox_err err)
{
    (void)err;
    struct oxbowd *b = oxbowd_of(s);
    ox_timer_stop(&b->deadline);
    ox_info(b->log, "oxbowd.stopped", "error=%s", ox_err_name(b->outcome));
    if (b->outcome != OX_OK && b->trouble.len == 0)
        ox_str_addf(&b->trouble, "the end was not clean (%s): the next start recovers; see the log", ox_err_text(b->outcome));
    ox_free(b->metadata_url);
    ox_free(b->data_path);
    ox_free(b->store_uri);
    ox_free(b->service_url);
    ox_free(b->web_url);
    ox_free(b->instance);
    ox_free(b->folder);
    live_fini(&b->live);
    b->ended(b, b->outcome);
}

static void stop_late(struct ox_timer *t)
{
    struct oxbowd *b = CONTAINER_OF(t, struct oxbowd, deadline);
    ox_error(b->log, "oxbowd.stop.late", "step=%s", b->seq.step);
    b->late(b);
}

static void stop_waiting_over(struct waiting *w)
{
    oxbowd_stop(CONTAINER_OF(w, struct oxbowd, waiting));
}

void oxbowd_stop(struct oxbowd *b)
{
    bool first = !b->stop_wanted;
    b->stop_wanted = true;
    b->mledgers.sweep_stop = true;
    ox_timer_stop(&b->sweep_again);
    if (first)
        ox_timer_init(&b->deadline, b->loop, stop_late);
    if (first && b->late)
        ox_timer_start(&b->deadline, (uint64_t)b->config->brokerShutdownTimeoutMs * OX_MS);
    if (!waiting_stop(&b->waiting, stop_waiting_over) || b->starting || b->seq.active || ox_op_pending(&b->sweep))
        return; // goes on when that is over
    b->running = false;
    ox_seq_start(&b->seq, b->loop, "oxbowd.stop", stop_storage, stop_over);
}
