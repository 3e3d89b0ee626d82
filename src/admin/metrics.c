// metrics.c - /metrics: one walk over the topics at a time, whose figures all who asked for them meanwhile get, each line made as its client takes it.
#include <string.h>

#include "admin/process.h"
#include "base/version.h"
#include "broker/gauges.h"
#include "gen/rest_routes.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_TURN_NS OX_MS // of a walk, before the loop does other things
#define METRICS_SNAPSHOTS \
    4u // at most on their way in peace: beyond it the oldest pages are given up as soon as their clients want more
#define METRICS_SNAPSHOTS_MAX 8u // beyond it there is no walk: the last figures are shared
#define METRICS_SHARE_NS OX_SEC  // beyond the first bound figures are shared that long

// The figures of one walk, as long as somebody is being sent them.
struct metrics_snapshot {
    struct ox_link link; // in admin->snapshots
    struct ox_gauges *gauges;
    struct ox_admin *admin;
    uint32_t refs;
    uint64_t made_ns;
    bool given_up;
};

// A walk, and who waits for it.
struct admin_metrics {
    struct ox_admin *admin;
    struct ox_gauges *gauges;
    struct admin_request **waiting;
    size_t count, cap;
    struct ox_seq seq;
    struct admin_pause pause;
    struct ox_job job; // looks at the process
    struct ox_admin_process process;
};

// One client's page.
struct metrics_page {
    struct admin_source source;
    struct metrics_snapshot *snapshot;
    struct ox_gauges_place place;
};

static ox_step walk_topics(struct ox_seq *s);

// ---- pages

static size_t page_more(struct admin_source *source, char *data, size_t cap)
{
    struct metrics_page *page = CONTAINER_OF(source, struct metrics_page, source);
    return page->snapshot->given_up ? ADMIN_SOURCE_FAILED : ox_gauges_print(page->snapshot->gauges, &page->place, data, cap);
}

static void snapshot_unref(struct metrics_snapshot *snapshot)
{
    if (--snapshot->refs)
        return;
    ox_list_remove(&snapshot->admin->snapshots, &snapshot->link);
    ox_gauges_free(snapshot->gauges);
    ox_free(snapshot);
}

static void page_free(struct admin_source *source)
{
    struct metrics_page *page = CONTAINER_OF(source, struct metrics_page, source);
    snapshot_unref(page->snapshot);
    ox_free(page);
}

static void page_send(struct admin_request *r, struct metrics_snapshot *snapshot)
{
    struct metrics_page *page = ox_malloc(sizeof *page);
    page->source = (struct admin_source){.more = page_more, .free = page_free};
    page->snapshot = snapshot;
    snapshot->refs++;
    admin_stream(r, HTTP_OK, METRICS_TYPE, &page->source);
}

// ---- what only this folder knows

static void label_host(struct ox_str *labels, const struct ox_admin *admin, const char *metric)
{
    const char *id = admin_broker_id(admin->shard), *port = strrchr(id, ':'); // an IPv6 address has more of them
    ox_str_truncate(labels, 0);
    ox_str_addf(labels, "broker=\"%.*s\",metric=\"%s\"", (int)(port ? port - id : (ptrdiff_t)strlen(id)), id, metric);
}

static void fill_process(const struct admin_metrics *m, const struct admin_load *load, double *row)
{
    row[OX_GAUGE_PROCESS_START_TIME_SECONDS] = (double)load->started_ms / 1000;
    if (!m->admin->process)
        return;
    row[OX_GAUGE_PROCESS_CPU_SECONDS_TOTAL] = load->cpu_seconds;
    row[OX_GAUGE_PROCESS_RESIDENT_MEMORY_BYTES] = (double)load->resident_bytes;
    row[OX_GAUGE_PROCESS_VIRTUAL_MEMORY_BYTES] = (double)m->process.virtual_bytes;
    row[OX_GAUGE_PROCESS_OPEN_FDS] = m->process.files_open;
    row[OX_GAUGE_PROCESS_MAX_FDS] = (double)m->process.files_max;
}

static void fill_broker(struct admin_metrics *m)
{
    struct ox_shard *sh = m->admin->shard;
    struct admin_load load;
    struct ox_str labels = {0};
    admin_load_now(m->admin, &load);
    fill_process(m, &load, ox_metric_table_row(&m->gauges->broker, 0));
    label_host(&labels, m->admin, "broker_health");
    ox_gauges_broker_row(m->gauges, sh, ox_str_get(&labels))[OX_GAUGE_HEALTH] = admin_broker_trouble(sh) ? 0 : 1;
    label_host(&labels, m->admin, "loadBalancing");
    double *row = ox_gauges_broker_row(m->gauges, sh, ox_str_get(&labels));
    row[OX_GAUGE_LB_CPU_USAGE] = load.cpu_limit_percent > 0 ? 100 * load.cpu_percent / load.cpu_limit_percent : 0;
    row[OX_GAUGE_LB_MEMORY_USAGE] = load.memory_bytes ? 100 * (double)load.resident_bytes / (double)load.memory_bytes : 0;
    ox_gauges_broker_row(m->gauges, sh, "version=\"" OX_VERSION "\",commit=\"\"")[OX_GAUGE_VERSION_INFO] = 1;
    ox_str_fini(&labels);
}

// ---- the walk

static struct admin_metrics *metrics_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct admin_metrics, seq);
}

static ox_step walk_topics(struct ox_seq *s)
{
    struct admin_metrics *m = metrics_of(s);
    if (ox_gauges_collect(m->gauges, METRICS_TURN_NS))
        return admin_rest(&m->pause, s, walk_topics, "walk_topics");
    return OX_FINISH(s, OX_OK);
}

static void job_look(struct ox_job *job)
{
    struct admin_metrics *m = CONTAINER_OF(job, struct admin_metrics, job);
    m->process.wants_files = true;
    m->admin->process(&m->process);
}

// Counting open files takes as long as there are many: not on the loop.
static ox_step walk_begin(struct ox_seq *s)
{
    struct admin_metrics *m = metrics_of(s);
    m->gauges = ox_gauges_new(m->admin->shard);
    if (!m->admin->process)
        return OX_GOTO(s, walk_topics);
    ox_seq_bind(s, &m->job.op, "metrics.process");
    m->job.run = job_look;
    m->job.lane = OX_LANE_POOL;
    ox_job_submit(s->loop, &m->job);
    return OX_WAIT(s, walk_topics);
}

static void walk_done(struct ox_seq *s, enum ox_err err)
{
    struct admin_metrics *m = metrics_of(s);
    struct ox_admin *admin = m->admin;
    struct metrics_snapshot *snapshot = ox_malloc(sizeof *snapshot);
    (void)err; // no step fails
    fill_broker(m);
    admin_metrics_look(admin);
    ox_metrics_print(admin->shard->metrics, &m->gauges->text);
    *snapshot =
        (struct metrics_snapshot){.gauges = m->gauges, .admin = admin, .refs = 1, .made_ns = ox_now_ns(admin->shard->loop)};
    ox_list_push_back(&admin->snapshots, &snapshot->link);
    admin->metrics = NULL;
    for (size_t i = 0; i < m->count; i++)
        page_send(m->waiting[i], snapshot);
    snapshot_unref(snapshot);
    ox_free(m->waiting);
    ox_free(m);
}

static struct admin_metrics *walk_get(struct ox_admin *admin)
{
    struct admin_metrics *m = admin->metrics;
    if (m)
        return m;
    m = admin->metrics = ox_malloc(sizeof *m);
    m->admin = admin;
    ox_seq_start(&m->seq, admin->shard->loop, "admin.metrics", walk_begin, walk_done);
    return m;
}

// Clients that take their pages slowly, or not at all, keep the figures of those in memory: what others get then; NULL: a walk of their own.
static struct metrics_snapshot *metrics_share(struct ox_admin *admin)
{
    size_t count = admin->snapshots.count, n = 0;
    if (count < METRICS_SNAPSHOTS)
        return NULL;
    OX_LIST_EACH(&admin->snapshots, link)
        CONTAINER_OF(link, struct metrics_snapshot, link)->given_up |= n++ + METRICS_SNAPSHOTS <= count;
    struct metrics_snapshot *newest = CONTAINER_OF(ox_list_last(&admin->snapshots), struct metrics_snapshot, link);
    bool young = ox_now_ns(admin->shard->loop) - newest->made_ns < METRICS_SHARE_NS;
    return !newest->given_up && (young || count >= METRICS_SNAPSHOTS_MAX) ? newest : NULL;
}

static void metrics_show(struct admin_request *r)
{
    struct ox_admin *admin = r->admin;
    struct metrics_snapshot *shared = admin->metrics ? NULL : metrics_share(admin);
    if (shared) {
        page_send(r, shared);
        return;
    }
    struct admin_metrics *m = walk_get(admin);
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 4;
        m->waiting = ox_realloc(m->waiting, m->cap, sizeof(struct admin_request *));
    }
    m->waiting[m->count++] = r;
}

static const struct admin_route routes[] = {ADMIN_ROUTES_METRICS};
const struct admin_route_table admin_metrics = {routes, OX_COUNT(routes)};
