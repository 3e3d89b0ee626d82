// topic_watch.c - watched lists of topics: one list a namespace, kept in step with the metadata store, and a selection of it for each watcher.
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/topic_list.h"

#define LOOK_NS_PER_NAME \
    20000u // long lists are looked at less often: so long a pause for each name, at most LOOK_NS_MAX
#define LOOK_NS_MAX OX_SEC
#define SINGLY_MAX 32u // so many changes are told one by one, more of them together

// What all watchers of a namespace share.
struct topic_board {
    struct ox_shard *shard;
    char *ns;
    struct ox_map_node by_ns; // in shard->boards
    struct ox_list watchers;  // of struct ox_topics_watch, link
    struct ox_list fresh;     // those who come in with the next look
    struct ox_meta_watch watch;
    char **names; // sorted
    size_t count;
    bool dirty;   // something has changed since the look began
    bool looking; // the list is being read
    struct ox_topics_list list;
    struct ox_timer pause;
};

// ---- two sorted lists

struct names {
    char **at;
    size_t count;
};

static void names_add(struct names *n, char *name)
{
    n->at[n->count++] = name;
}

// What is only in `now`, and what is only in `was`; room for all of each.
static void names_compare(char *const *was, size_t was_count, char *const *now, size_t now_count, struct names *added,
                          struct names *removed)
{
    size_t i = 0, k = 0;
    while (i < was_count || k < now_count) {
        int order = i == was_count ? 1 : k == now_count ? -1 : strcmp(was[i], now[k]);
        if (order < 0)
            names_add(removed, was[i]);
        else if (order > 0)
            names_add(added, now[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

// ---- a watcher's selection

static void watch_select(struct ox_topics_watch *w, char *const *names, size_t count, struct names *ret)
{
    ret->at = ox_calloc(count + 1, sizeof *ret->at);
    for (size_t i = 0; i < count; i++)
        if (!w->pattern || ox_topic_pattern_matches(w->pattern, names[i]))
            names_add(ret, names[i]);
}

// Joins what stayed with what came; both are sorted. The strings that stayed are the old list's: they are replaced by the caller's new ones.
static void watch_replace(struct ox_topics_watch *w, const struct names *added, const struct names *removed)
{
    char **joined = ox_calloc(w->count + added->count + 1, sizeof *joined);
    size_t n = 0, a = 0, r = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (r < removed->count && !strcmp(removed->at[r], w->names[i])) {
            r++;
            continue;
        }
        while (a < added->count && strcmp(added->at[a], w->names[i]) < 0)
            joined[n++] = added->at[a++];
        joined[n++] = w->names[i];
    }
    while (a < added->count)
        joined[n++] = added->at[a++];
    ox_free(w->names);
    w->names = joined;
    w->count = n;
}

static void watch_tell(struct ox_topics_watch *w, struct names added, struct names removed)
{
    watch_replace(w, &added, &removed);
    w->changed(w, added.at, added.count, removed.at, removed.count);
}

// One call for each name, as Pulsar sends one update for each.
static void watch_tell_singly(struct ox_topics_watch *w, const struct names *added, const struct names *removed)
{
    for (size_t i = 0; i < removed->count; i++)
        watch_tell(w, (struct names){0}, (struct names){removed->at + i, 1});
    for (size_t i = 0; i < added->count; i++)
        watch_tell(w, (struct names){added->at + i, 1}, (struct names){0});
}

static void watch_update(struct ox_topics_watch *w, const struct names *added, const struct names *removed)
{
    struct names mine = {0}, gone = {0};
    watch_select(w, added->at, added->count, &mine);
    watch_select(w, removed->at, removed->count, &gone);
    if (mine.count + gone.count > SINGLY_MAX)
        watch_tell(w, mine, gone);
    else
        watch_tell_singly(w, &mine, &gone);
    ox_free(mine.at);
    ox_free(gone.at);
}

static void watch_begin(struct ox_topics_watch *w)
{
    struct names all = {0};
    watch_select(w, w->board->names, w->board->count, &all);
    w->names = all.at;
    w->count = all.count;
    w->ready = true;
    ox_op_finish(&w->op, OX_OK);
}

// ---- the board

static void board_free(struct topic_board *b)
{
    if (!ox_list_empty(&b->watchers) || !ox_list_empty(&b->fresh) || b->looking)
        return;
    ox_meta_unwatch(&b->watch);
    ox_timer_stop(&b->pause);
    ox_map_remove(&b->shard->boards, &b->by_ns);
    for (size_t i = 0; i < b->count; i++)
        ox_free(b->names[i]);
    ox_free(b->names);
    ox_free(b->ns);
    ox_free(b);
}

// Those that stayed keep the old list's strings, which the watchers' selections share.
static void board_take(struct topic_board *b)
{
    struct ox_topics_list *l = &b->list;
    struct names added = {.at = ox_calloc(l->count + 1, sizeof *added.at)};
    struct names removed = {.at = ox_calloc(b->count + 1, sizeof *removed.at)};
    names_compare(b->names, b->count, l->names, l->count, &added, &removed);
    for (size_t i = 0, k = 0; i < l->count; i++) {
        while (k < b->count && strcmp(b->names[k], l->names[i]) < 0)
            k++;
        if (k < b->count && !strcmp(b->names[k], l->names[i])) {
            ox_free(l->names[i]);
            l->names[i] = b->names[k];
        }
    }
    ox_free(b->names);
    b->names = l->names;
    b->count = l->count;
    if (added.count || removed.count)
        OX_LIST_EACH(&b->watchers, link)
            watch_update(CONTAINER_OF(link, struct ox_topics_watch, link), &added, &removed);
    for (size_t i = 0; i < removed.count; i++)
        ox_free(removed.at[i]);
    ox_free(added.at);
    ox_free(removed.at);
}

static void board_failed(struct topic_board *b, struct ox_list *asking, enum ox_err err)
{
    ox_warn(b->shard->log, "topics.watch.failed", "namespace=%s error=%s", b->ns, ox_err_name(err));
    for (struct ox_link *l = ox_list_pop_front(asking); l; l = ox_list_pop_front(asking)) {
        struct ox_topics_watch *w = CONTAINER_OF(l, struct ox_topics_watch, link);
        w->board = NULL;
        ox_op_finish(&w->op, err);
    }
    b->dirty = !ox_list_empty(&b->watchers);
}

static void board_looked(struct ox_op *op)
{
    struct topic_board *b = CONTAINER_OF(op, struct topic_board, list.op);
    struct ox_list asking;
    ox_list_init(&asking);
    ox_list_splice(&asking, &b->fresh);
    b->looking = false;
    if (op->err && op->err != OX_E_NAMESPACE_NOT_FOUND) {
        board_failed(b, &asking, op->err);
    } else {
        board_take(b);
        for (struct ox_link *l = ox_list_pop_front(&asking); l; l = ox_list_pop_front(&asking)) {
            ox_list_push_back(&b->watchers, l);
            watch_begin(CONTAINER_OF(l, struct ox_topics_watch, link));
        }
    }
    uint64_t pause = OX_MIN((uint64_t)b->count * LOOK_NS_PER_NAME, (uint64_t)LOOK_NS_MAX);
    if (b->dirty)
        ox_timer_start(&b->pause, op->err && op->err != OX_E_NAMESPACE_NOT_FOUND ? LOOK_NS_MAX : pause);
    board_free(b);
}

static void board_look(struct topic_board *b)
{
    b->dirty = false;
    b->looking = true;
    b->list = (struct ox_topics_list){0};
    ox_op_init(&b->list.op, b->shard->loop, board_looked, "topics.watch");
    ox_topics_list(b->shard, &b->list, b->ns);
}

static void board_rested(struct ox_timer *t)
{
    struct topic_board *b = CONTAINER_OF(t, struct topic_board, pause);
    if (b->dirty && !b->looking)
        board_look(b);
}

static void board_fired(struct ox_meta_watch *w, enum ox_meta_event event)
{
    struct topic_board *b = CONTAINER_OF(w, struct topic_board, watch);
    (void)event;
    b->dirty = true;
    if (!b->looking && !ox_timer_started(&b->pause))
        ox_timer_start(&b->pause, 0);
}

static struct topic_board *board_get(struct ox_shard *sh, const char *ns)
{
    struct ox_map_node *n = ox_map_find_str(&sh->boards, ns);
    if (n)
        return CONTAINER_OF(n, struct topic_board, by_ns);
    struct topic_board *b = ox_malloc(sizeof *b);
    b->shard = sh;
    b->ns = ox_strdup(ns);
    ox_list_init(&b->watchers);
    ox_list_init(&b->fresh);
    ox_timer_init(&b->pause, sh->loop, board_rested);
    b->watch.fired = board_fired;
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s/persistent", ns);
    ox_meta_watch(sh->meta, &b->watch, path);
    ox_map_put_str(&sh->boards, &b->by_ns, b->ns);
    return b;
}

void ox_topics_watch(struct ox_shard *sh, struct ox_topics_watch *w, const char *ns)
{
    ox_op_begin(&w->op);
    w->names = NULL;
    w->count = 0;
    w->ready = false;
    if (!ox_namespace_valid(ns)) {
        w->board = NULL;
        ox_op_finish(&w->op, OX_E_NAMESPACE_NOT_FOUND);
        return;
    }
    w->board = board_get(sh, ns);
    ox_list_push_back(&w->board->fresh, &w->link);
    w->board->dirty = true;
    if (!w->board->looking)
        board_look(w->board);
}

void ox_topics_unwatch(struct ox_topics_watch *w)
{
    struct topic_board *b = w->board;
    if (!b)
        return;
    ox_list_remove(w->ready ? &b->watchers : &b->fresh, &w->link);
    w->board = NULL;
    ox_free(w->names);
    w->names = NULL;
    w->count = 0;
    board_free(b);
}
