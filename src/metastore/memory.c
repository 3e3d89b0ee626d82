// memory.c - the store in memory: a tree shared by simulated processes, and a store on it that delays and fails calls as told.
#include "metastore/memory.h"

#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/mem.h"
#include "metastore/request.h"
#include "metastore/tree.h"

// One node, mapped by parent id and name, and by its own id.
struct memory_node {
    struct ox_map_node by_key, by_id;
    struct ox_link sibling; // in the parent's children
    struct ox_list children;
    uint64_t sequence; // next number for sequential children
    struct ox_meta_node node;
    size_t key_len;
    char key[]; // parent id (8 bytes, big endian), name
};

// How a node was before a change: to take a failed write back.
struct memory_undo {
    char *key;
    size_t key_len;
    bool existed;
    struct ox_meta_node node;
    uint64_t sequence;
};

struct ox_meta_memory_tree {
    struct ox_meta_nodes nodes; // first: is cast from the interface
    struct ox_map by_key, by_id;
    uint64_t last_id, last_session;
    struct memory_undo *undo;
    size_t undo_count, undo_cap;
    struct ox_list stores; // struct memory
};

// An event on its way to a store's watches.
struct memory_event {
    struct ox_link link;
    char *path;
    enum ox_meta_event event;
    uint64_t due_ns;
};

// One session on a tree.
struct memory {
    struct ox_meta_store store;
    struct ox_meta_memory_tree *tree;
    struct ox_meta_memory_faults *faults;
    bool owns_tree;
    struct ox_link link;      // in tree->stores
    struct ox_list waiting;   // requests that are not applied yet, by due time
    struct ox_list answering; // requests that are applied, by due time
    struct ox_list events;
    uint64_t last_due_ns, last_reply_ns, last_event_ns;
    struct ox_timer apply, answer, notify;
};

static struct ox_meta_memory_tree *tree_of(struct ox_meta_nodes *n)
{
    return CONTAINER_OF(n, struct ox_meta_memory_tree, nodes);
}

static char *memory_key(uint64_t parent, const char *name, size_t len, size_t *ret_len)
{
    char *key = ox_malloc(8 + len);
    ox_put_be64(key, parent);
    memcpy(key + 8, name, len);
    *ret_len = 8 + len;
    return key;
}

static struct memory_node *memory_find_key(const struct ox_meta_memory_tree *t, const char *key, size_t key_len)
{
    struct ox_map_node *found = ox_map_find(&t->by_key, key, key_len);
    return found ? CONTAINER_OF(found, struct memory_node, by_key) : NULL;
}

static struct memory_node *memory_find_id(const struct ox_meta_memory_tree *t, uint64_t id)
{
    struct ox_map_node *found = ox_map_find_u64(&t->by_id, id);
    return found ? CONTAINER_OF(found, struct memory_node, by_id) : NULL;
}

static struct memory_node *memory_add(struct ox_meta_memory_tree *t, const char *key, size_t key_len, uint64_t id)
{
    struct memory_node *node = ox_malloc(sizeof *node + key_len);
    memcpy(node->key, key, key_len);
    node->key_len = key_len;
    node->node.id = id;
    ox_list_init(&node->children);
    struct memory_node *parent = memory_find_id(t, ox_get_be64(key));
    if (parent)
        ox_list_push_back(&parent->children, &node->sibling);
    ox_map_put(&t->by_key, &node->by_key, node->key, key_len);
    ox_map_put_u64(&t->by_id, &node->by_id, id);
    return node;
}

static void memory_drop(struct ox_meta_memory_tree *t, struct memory_node *node)
{
    struct memory_node *parent = memory_find_id(t, ox_get_be64(node->key));
    if (parent)
        ox_list_remove(&parent->children, &node->sibling);
    ox_map_remove(&t->by_key, &node->by_key);
    ox_map_remove(&t->by_id, &node->by_id);
    ox_buf_unref(&node->node.value);
    ox_free(node);
}

static void memory_set(struct memory_node *node, const struct ox_meta_node *to)
{
    struct ox_buf value = ox_buf_copy(to->value.data, to->value.len);
    ox_buf_unref(&node->node.value);
    node->node = *to;
    node->node.value = value;
}

static void memory_remember(struct ox_meta_memory_tree *t, const char *key, size_t key_len, const struct memory_node *old)
{
    if (t->undo_count == t->undo_cap) {
        t->undo_cap = t->undo_cap ? t->undo_cap * 2 : 8;
        t->undo = ox_realloc(t->undo, t->undo_cap, sizeof *t->undo);
    }
    struct memory_undo *u = &t->undo[t->undo_count++];
    *u = (struct memory_undo){.key = ox_memdup(key, key_len), .key_len = key_len, .existed = old != NULL};
    if (old) {
        u->node = old->node;
        u->node.value = ox_buf_ref(old->node.value);
        u->sequence = old->sequence;
    }
}

static void memory_take_back(struct ox_meta_memory_tree *t, const struct memory_undo *u)
{
    struct memory_node *node = memory_find_key(t, u->key, u->key_len);
    if (!u->existed) {
        if (node)
            memory_drop(t, node);
        return;
    }
    if (!node)
        node = memory_add(t, u->key, u->key_len, u->node.id);
    memory_set(node, &u->node);
    node->sequence = u->sequence;
}

// Ends a write: takes all of it back, newest change first, or forgets how to.
static void memory_settle(struct ox_meta_memory_tree *t, bool keep)
{
    while (t->undo_count) {
        struct memory_undo *u = &t->undo[--t->undo_count];
        if (!keep)
            memory_take_back(t, u);
        ox_free(u->key);
        ox_buf_unref(&u->node.value);
    }
}

static enum ox_err memory_find(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len,
                               struct ox_meta_node *ret)
{
    size_t key_len;
    OX_CLEANUP(ox_free_ptr)
    char *key = memory_key(parent, name, len, &key_len);
    const struct memory_node *node = memory_find_key(tree_of(n), key, key_len);
    if (!node)
        return OX_E_NOT_FOUND;
    *ret = node->node;
    return OX_OK;
}

static enum ox_err memory_store(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len,
                                const struct ox_meta_node *to)
{
    struct ox_meta_memory_tree *t = tree_of(n);
    size_t key_len;
    OX_CLEANUP(ox_free_ptr)
    char *key = memory_key(parent, name, len, &key_len);
    struct memory_node *node = memory_find_key(t, key, key_len);
    memory_remember(t, key, key_len, node);
    if (!node)
        node = memory_add(t, key, key_len, to->id);
    memory_set(node, to);
    return OX_OK;
}

static enum ox_err memory_remove(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len, uint64_t id)
{
    (void)id;
    struct ox_meta_memory_tree *t = tree_of(n);
    size_t key_len;
    OX_CLEANUP(ox_free_ptr)
    char *key = memory_key(parent, name, len, &key_len);
    struct memory_node *node = memory_find_key(t, key, key_len);
    if (!node)
        return OX_E_NOT_FOUND;
    memory_remember(t, key, key_len, node);
    memory_drop(t, node);
    return OX_OK;
}

static enum ox_err memory_new_id(struct ox_meta_nodes *n, uint64_t *ret)
{
    *ret = ++tree_of(n)->last_id;
    return OX_OK;
}

static enum ox_err memory_next_sequence(struct ox_meta_nodes *n, uint64_t parent, uint64_t *ret)
{
    *ret = memory_find_id(tree_of(n), parent)->sequence++;
    return OX_OK;
}

static enum ox_err memory_children(struct ox_meta_nodes *n, uint64_t id, struct ox_meta_request *r)
{
    const struct memory_node *node = memory_find_id(tree_of(n), id);
    if (!r)
        return ox_list_empty(&node->children) ? OX_E_NOT_FOUND : OX_OK;
    struct ox_list *children = &memory_find_id(tree_of(n), id)->children;
    OX_LIST_EACH(children, link) {
        const struct memory_node *child = CONTAINER_OF(link, struct memory_node, sibling);
        ox_meta_request_add_name(r, child->key + 8, child->key_len - 8);
    }
    return OX_OK;
}

static const struct ox_meta_nodes_body memory_nodes = {
    .find = memory_find,
    .store = memory_store,
    .remove = memory_remove,
    .new_id = memory_new_id,
    .next_sequence = memory_next_sequence,
    .children = memory_children,
};

struct ox_meta_memory_tree *ox_meta_memory_tree_new(void)
{
    struct ox_meta_memory_tree *t = ox_malloc(sizeof *t);
    t->nodes.body = &memory_nodes;
    ox_list_init(&t->stores);
    t->last_id = OX_META_ROOT;
    char key[8] = {0};
    memory_add(t, key, sizeof key, OX_META_ROOT);
    return t;
}

void ox_meta_memory_tree_free(struct ox_meta_memory_tree *t)
{
    OX_ASSERT(ox_list_empty(&t->stores));
    OX_MAP_EACH(&t->by_key, mapped) {
        struct memory_node *node = CONTAINER_OF(mapped, struct memory_node, by_key);
        ox_map_remove(&t->by_key, &node->by_key);
        ox_map_remove(&t->by_id, &node->by_id);
        ox_buf_unref(&node->node.value);
        ox_free(node);
    }
    ox_free(t->undo);
    ox_free(t);
}

static struct memory *memory_of(struct ox_meta *meta)
{
    return CONTAINER_OF(meta, struct memory, store.base);
}

static void memory_start(struct memory *m, struct ox_timer *timer, uint64_t due_ns)
{
    uint64_t now = ox_now_ns(m->store.base.loop);
    if (!ox_timer_started(timer))
        ox_timer_start(timer, due_ns > now ? due_ns - now : 0);
}

static void memory_push_event(struct memory *m, const char *path, enum ox_meta_event event, uint64_t delay_ns)
{
    if (m->store.base.loop->dead || m->store.base.session != OX_META_CONNECTED)
        return;
    struct memory_event *e = ox_malloc(sizeof *e);
    e->path = ox_strdup(path);
    e->event = event;
    e->due_ns = m->last_event_ns = OX_MAX(m->last_event_ns, ox_now_ns(m->store.base.loop) + delay_ns);
    ox_list_push_back(&m->events, &e->link);
    memory_start(m, &m->notify, e->due_ns);
}

static void memory_publish(struct ox_meta_memory_tree *t, const struct ox_meta_request *r, uint64_t delay_ns)
{
    for (size_t i = 0; i < r->note_count; i++)
        OX_LIST_EACH(&t->stores, link)
            memory_push_event(CONTAINER_OF(link, struct memory, link), r->notes[i].path, r->notes[i].event, delay_ns);
}

static void memory_event_free(struct memory_event *e)
{
    ox_free(e->path);
    ox_free(e);
}

static void memory_drop_events(struct memory *m)
{
    struct ox_link *link;
    while ((link = ox_list_pop_front(&m->events)))
        memory_event_free(CONTAINER_OF(link, struct memory_event, link));
    ox_timer_stop(&m->notify);
}

static void memory_notify(struct ox_timer *timer)
{
    struct memory *m = CONTAINER_OF(timer, struct memory, notify);
    uint64_t now = ox_now_ns(m->store.base.loop);
    struct ox_link *link;
    while ((link = ox_list_first(&m->events))) {
        struct memory_event *e = CONTAINER_OF(link, struct memory_event, link);
        if (e->due_ns > now)
            break;
        ox_list_remove(&m->events, link);
        ox_meta_fire(&m->store.base, e->path, e->event);
        memory_event_free(e);
    }
    if (link)
        memory_start(m, &m->notify, CONTAINER_OF(link, struct memory_event, link)->due_ns);
}

// The path of a node, by climbing to the root.
static char *memory_path(const struct ox_meta_memory_tree *t, const struct memory_node *node)
{
    char *path = ox_strdup("");
    while (node && node->node.id != OX_META_ROOT) {
        char *longer = ox_asprintf("/%.*s%s", (int)(node->key_len - 8), node->key + 8, path);
        ox_free(path);
        path = longer;
        node = memory_find_id(t, ox_get_be64(node->key));
    }
    return path;
}

static void memory_remove_ephemerals(struct ox_meta_memory_tree *t, uint64_t session_id)
{
    OX_MAP_EACH(&t->by_key, mapped) {
        struct memory_node *node = CONTAINER_OF(mapped, struct memory_node, by_key);
        if (node->node.stat.ephemeral_session != session_id)
            continue;
        struct ox_meta_edit edit = {.kind = OX_META_DELETE, .path = memory_path(t, node), .expected = OX_META_ANY};
        struct ox_meta_request r = {.kind = OX_META_REQ_WRITE, .edits = &edit, .edit_count = 1};
        enum ox_err err = ox_meta_apply(&t->nodes, &r);
        OX_ASSERT(err == OX_OK);
        memory_settle(t, true);
        memory_publish(t, &r, 0);
        ox_free(edit.path);
        ox_meta_request_reset(&r);
    }
}

static void memory_reply(struct memory *m, struct ox_meta_request *r)
{
    r->due_ns = m->last_reply_ns = OX_MAX(m->last_reply_ns, ox_now_ns(m->store.base.loop) + r->reply_ns);
    ox_list_push_back(&m->answering, &r->link);
    memory_start(m, &m->answer, r->due_ns);
}

// Lets a request take effect (or not, as its outcome says).
static void memory_apply(struct memory *m, struct ox_meta_request *r)
{
    struct ox_meta_memory_tree *t = m->tree;
    bool write = r->kind == OX_META_REQ_WRITE;
    t->nodes.session_id = m->store.base.session_id;
    t->nodes.now_ms = ox_wall_ms(m->store.base.loop);
    if (r->outcome == OX_META_FAIL_BEFORE || (r->outcome != OX_META_DO && !write)) {
        r->err = OX_E_DISCONNECTED;
    } else if (r->outcome == OX_META_FAIL_UNKNOWN) {
        r->err = OX_E_UNKNOWN_OUTCOME;
    } else if (r->kind == OX_META_REQ_CLOSE) {
        memory_remove_ephemerals(t, m->store.base.session_id);
    } else {
        enum ox_err err = ox_meta_apply(&t->nodes, r);
        memory_settle(t, err == OX_OK);
        if (err == OX_OK)
            memory_publish(t, r, r->reply_ns);
        if (r->outcome == OX_META_FAIL_AFTER)
            r->err = OX_E_UNKNOWN_OUTCOME;
    }
    memory_reply(m, r);
}

static void memory_fail_list(struct memory *m, struct ox_list *list, enum ox_err read_err, enum ox_err write_err);

static void memory_free(struct memory *m)
{
    memory_fail_list(m, &m->waiting, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    memory_fail_list(m, &m->answering, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    memory_drop_events(m);
    ox_timer_stop(&m->apply);
    ox_timer_stop(&m->answer);
    ox_list_remove(&m->tree->stores, &m->link);
    ox_meta_fini(&m->store.base);
    if (m->owns_tree)
        ox_meta_memory_tree_free(m->tree);
    ox_free(m);
}

// Finishes all requests of a queue but a close with an error.
static void memory_fail_list(struct memory *m, struct ox_list *list, enum ox_err read_err, enum ox_err write_err)
{
    (void)m;
    OX_LIST_EACH(list, link) {
        struct ox_meta_request *r = CONTAINER_OF(link, struct ox_meta_request, link);
        if (r->kind == OX_META_REQ_CLOSE)
            continue;
        ox_list_remove(list, link);
        r->err = r->kind == OX_META_REQ_WRITE ? write_err : read_err;
        ox_meta_request_finish(r);
    }
}

// Finishes a closing store: the last thing that its timer does.
static void memory_finish_close(struct memory *m, struct ox_meta_request *r)
{
    ox_meta_request_finish(r);
    memory_free(m);
}

static void memory_on_apply(struct ox_timer *timer)
{
    struct memory *m = CONTAINER_OF(timer, struct memory, apply);
    struct ox_loop *loop = m->store.base.loop;
    if (loop->dead)
        memory_fail_list(m, &m->waiting, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    struct ox_link *link;
    while ((link = ox_list_first(&m->waiting))) {
        struct ox_meta_request *r = CONTAINER_OF(link, struct ox_meta_request, link);
        if (r->due_ns > ox_now_ns(loop) && !loop->dead)
            break;
        ox_list_remove(&m->waiting, link);
        if (loop->dead)
            memory_reply(m, r);
        else
            memory_apply(m, r);
    }
    if (link)
        memory_start(m, &m->apply, CONTAINER_OF(link, struct ox_meta_request, link)->due_ns);
}

static void memory_on_answer(struct ox_timer *timer)
{
    struct memory *m = CONTAINER_OF(timer, struct memory, answer);
    struct ox_loop *loop = m->store.base.loop;
    if (loop->dead)
        memory_fail_list(m, &m->answering, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    struct ox_link *link;
    while ((link = ox_list_first(&m->answering))) {
        struct ox_meta_request *r = CONTAINER_OF(link, struct ox_meta_request, link);
        if (r->due_ns > ox_now_ns(loop) && !loop->dead)
            break;
        ox_list_remove(&m->answering, link);
        if (r->kind == OX_META_REQ_CLOSE) {
            memory_finish_close(m, r);
            return;
        }
        ox_meta_request_finish(r);
    }
    if (link)
        memory_start(m, &m->answer, CONTAINER_OF(link, struct ox_meta_request, link)->due_ns);
}

static enum ox_err memory_refusal(const struct memory *m, const struct ox_meta_request *r)
{
    if (r->kind == OX_META_REQ_CLOSE)
        return OX_OK;
    if (m->store.base.loop->dead)
        return OX_E_SHUTDOWN;
    if (m->store.base.session == OX_META_DISCONNECTED)
        return OX_E_DISCONNECTED;
    return m->store.base.session == OX_META_EXPIRED ? OX_E_SESSION_EXPIRED : OX_OK;
}

static void memory_submit(struct ox_meta_store *store, struct ox_meta_request *r)
{
    struct memory *m = CONTAINER_OF(store, struct memory, store);
    r->err = memory_refusal(m, r);
    if (r->err != OX_OK) {
        ox_meta_request_finish(r);
        return;
    }
    struct ox_meta_fault fault = {0};
    bool write = r->kind == OX_META_REQ_WRITE;
    if (m->faults && r->kind != OX_META_REQ_CLOSE)
        m->faults->choose(m->faults, write, !write ? r->path : r->edit_count ? r->edits[0].path : "/", &fault);
    r->outcome = (int)fault.outcome;
    r->reply_ns = fault.after_ns;
    r->due_ns = m->last_due_ns = OX_MAX(m->last_due_ns, ox_now_ns(store->base.loop) + fault.before_ns);
    ox_list_push_back(&m->waiting, &r->link);
    memory_start(m, &m->apply, r->due_ns);
}

static const struct ox_meta_body memory_body = {
    .get = ox_meta_request_get,
    .put = ox_meta_request_put,
    .del = ox_meta_request_del,
    .children = ox_meta_request_children,
    .multi = ox_meta_request_multi,
    .watch = ox_meta_request_watch,
    .unwatch = ox_meta_request_watch,
    .close = ox_meta_request_close,
};

struct ox_meta *ox_meta_memory_new(struct ox_loop *loop, struct ox_meta_memory_tree *tree, struct ox_meta_memory_faults *faults)
{
    struct memory *m = ox_malloc(sizeof *m);
    ox_meta_init(&m->store.base, &memory_body, loop);
    m->store.base.session_id = ++tree->last_session;
    m->store.submit = memory_submit;
    m->tree = tree;
    m->faults = faults;
    ox_list_init(&m->waiting);
    ox_list_init(&m->answering);
    ox_list_init(&m->events);
    ox_timer_init(&m->apply, loop, memory_on_apply);
    ox_timer_init(&m->answer, loop, memory_on_answer);
    ox_timer_init(&m->notify, loop, memory_notify);
    ox_list_push_back(&tree->stores, &m->link);
    return &m->store.base;
}

void ox_meta_memory_open(struct ox_loop *loop, struct ox_op *op, struct ox_meta **ret)
{
    ox_op_begin(op);
    *ret = ox_meta_memory_new(loop, ox_meta_memory_tree_new(), NULL);
    memory_of(*ret)->owns_tree = true;
    ox_op_finish(op, OX_OK);
}

void ox_meta_memory_crash(struct ox_meta *meta)
{
    struct memory *m = memory_of(meta);
    OX_ASSERT(meta->loop->dead);
    memory_fail_list(m, &m->waiting, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    memory_fail_list(m, &m->answering, OX_E_SHUTDOWN, OX_E_SHUTDOWN);
    memory_drop_events(m);
}

void ox_meta_memory_disconnect(struct ox_meta *meta)
{
    struct memory *m = memory_of(meta);
    if (meta->session != OX_META_CONNECTED)
        return;
    memory_fail_list(m, &m->waiting, OX_E_DISCONNECTED, OX_E_UNKNOWN_OUTCOME);
    memory_fail_list(m, &m->answering, OX_E_DISCONNECTED, OX_E_UNKNOWN_OUTCOME);
    memory_drop_events(m);
    ox_meta_set_session(meta, OX_META_DISCONNECTED);
}

void ox_meta_memory_reconnect(struct ox_meta *meta)
{
    if (meta->session == OX_META_CONNECTED)
        return;
    if (meta->session == OX_META_EXPIRED)
        meta->session_id = ++memory_of(meta)->tree->last_session;
    ox_meta_set_session(meta, OX_META_CONNECTED);
    ox_meta_fire_lost(meta);
}

void ox_meta_memory_expire(struct ox_meta_memory_tree *tree, uint64_t session_id)
{
    memory_remove_ephemerals(tree, session_id);
    OX_LIST_EACH(&tree->stores, link) {
        struct memory *m = CONTAINER_OF(link, struct memory, link);
        if (m->store.base.session_id != session_id || m->store.base.loop->dead)
            continue;
        memory_fail_list(m, &m->waiting, OX_E_SESSION_EXPIRED, OX_E_SESSION_EXPIRED);
        memory_fail_list(m, &m->answering, OX_E_DISCONNECTED, OX_E_UNKNOWN_OUTCOME);
        memory_drop_events(m);
        ox_meta_set_session(&m->store.base, OX_META_EXPIRED);
    }
}
