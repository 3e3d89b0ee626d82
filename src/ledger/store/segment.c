// segment.c - the set of segments: states, files that open on demand, pins; and the memory of unsealed ones.
#include "base/assert.h"
#include "ledger/store/store_int.h"

static const char *const segment_state_names[] = {
#define X(name) #name,
    SEGMENT_STATES(X)
#undef X
};

static bool segment_edge(enum segment_state from, enum segment_state to)
{
    switch (from) {
    case SEGMENT_READY: return to == SEGMENT_CURRENT;
    case SEGMENT_CURRENT: return to == SEGMENT_SEALING;
    case SEGMENT_SEALING: return to == SEGMENT_SEALED;
    case SEGMENT_SEALED: return to == SEGMENT_FREEING;
    case SEGMENT_FREEING: return false;
    }
    return false;
}

void segment_set_state(struct store *s, struct segment *seg, enum segment_state to)
{
    OX_ASSERT(segment_edge(seg->state, to));
    ox_debug(s->log, "store.segment.state", "segment=%llu old=%s new=%s", (unsigned long long)seg->number,
             segment_state_names[seg->state], segment_state_names[to]);
    seg->state = to;
}

// Where a number is or would be.
static size_t segment_at(const struct store *s, uint64_t number)
{
    size_t low = 0, high = s->seg_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->segs[mid]->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct segment *segment_find(const struct store *s, uint64_t number)
{
    size_t at = segment_at(s, number);
    return at < s->seg_count && s->segs[at]->number == number ? s->segs[at] : NULL;
}

struct segment *segment_new(struct store *s, uint64_t number, enum segment_state state)
{
    size_t at = segment_at(s, number);
    OX_ASSERT(at == s->seg_count || s->segs[at]->number != number);
    if (s->seg_count == s->seg_cap) {
        s->seg_cap = s->seg_cap ? s->seg_cap * 2 : 16;
        s->segs = ox_realloc(s->segs, s->seg_cap, sizeof(struct segment *));
    }
    for (size_t i = s->seg_count; i > at; i--)
        s->segs[i] = s->segs[i - 1];
    struct segment *seg = ox_malloc(sizeof *seg);
    seg->number = number;
    seg->state = state;
    s->segs[at] = seg;
    s->seg_count++;
    s->last_number = OX_MAX(s->last_number, number);
    return seg;
}

static void segment_close_file(struct store *s, struct segment *seg)
{
    if (!seg->file)
        return;
    ox_file_close(seg->file);
    seg->file = NULL;
    s->open_files--;
}

void segment_free(struct store *s, struct segment *seg)
{
    OX_ASSERT(seg->pins == 0);
    size_t at = segment_at(s, seg->number);
    OX_ASSERT(at < s->seg_count && s->segs[at] == seg);
    for (size_t i = at + 1; i < s->seg_count; i++)
        s->segs[i - 1] = s->segs[i];
    s->seg_count--;
    segment_close_file(s, seg);
    ox_free(seg);
}

char *segment_path(const struct store *s, uint64_t number)
{
    return ox_asprintf("%s/seg-%016llx", s->dir, (unsigned long long)number);
}

char *segment_spare_path(const struct store *s, uint64_t number)
{
    return ox_asprintf("%s/spare-%016llx", s->dir, (unsigned long long)number);
}

// Closes the coldest file of a sealed segment when too many are open.
static void segment_limit_files(struct store *s)
{
    struct segment *coldest = NULL;
    if (s->open_files < STORE_OPEN_FILES_MAX)
        return;
    for (size_t i = 0; i < s->seg_count; i++) {
        struct segment *seg = s->segs[i];
        if (seg->file && seg->pins == 0 && seg->state == SEGMENT_SEALED && (!coldest || seg->touched < coldest->touched))
            coldest = seg;
    }
    if (coldest)
        segment_close_file(s, coldest);
}

struct segment_opening {
    struct store *store;
    struct segment *seg;
    struct ox_op op;
    struct ox_op *user;
    struct ox_file *file;
    uint64_t size;
};

static void segment_opened(struct ox_op *op)
{
    struct segment_opening *o = CONTAINER_OF(op, struct segment_opening, op);
    if (op->err == OX_OK && o->seg->file) {
        ox_file_close(o->file); // two asked at once
    } else if (op->err == OX_OK) {
        o->seg->file = o->file;
        o->store->open_files++;
    }
    ox_op_finish(o->user, op->err);
    ox_free(o);
}

void segment_open(struct store *s, struct segment *seg, struct ox_op *op)
{
    OX_ASSERT(seg->pins > 0);
    seg->touched = ox_now_ns(s->loop);
    if (seg->file) {
        ox_op_begin(op);
        ox_op_finish(op, OX_OK);
        return;
    }
    ox_op_begin(op);
    segment_limit_files(s);
    struct segment_opening *o = ox_malloc(sizeof *o);
    o->store = s;
    o->seg = seg;
    o->user = op;
    ox_op_init(&o->op, s->loop, segment_opened, "open segment");
    OX_CLEANUP(ox_free_ptr)
    char *path = segment_path(s, seg->number);
    ox_file_open(s->fs, &o->op, OX_LANE_POOL, path, OX_OPEN_READ | OX_OPEN_WRITE, &o->file, &o->size);
}

void segment_pin(struct store *s, struct segment *seg)
{
    seg->pins++;
    seg->touched = ox_now_ns(s->loop);
}

void segment_unpin(struct store *s, struct segment *seg)
{
    OX_ASSERT(seg->pins > 0);
    if (--seg->pins == 0 && seg->live_entries == 0)
        store_woken(s);
}

struct tail *tail_new(struct segment *seg)
{
    struct tail *t = ox_malloc(sizeof *t);
    t->seg = seg;
    t->planned = OX_SEG_BLOCK;
    return t;
}

void tail_free(struct tail *t)
{
    OX_ASSERT(t->writes == 0 && !t->filling);
    if (t->journal_file)
        ox_file_close(t->journal_file);
    ox_index_fini(&t->index);
    OX_MAP_EACH(&t->rows, node) {
        struct tail_row *row = CONTAINER_OF(node, struct tail_row, node);
        ox_map_remove(&t->rows, node);
        ox_table_row_fini(&row->row);
        ox_free(row);
    }
    ox_free(t);
}

struct tail *tail_find(const struct store *s, uint64_t number)
{
    for (struct ox_link *link = s->tails.head.next; link != &s->tails.head; link = link->next) {
        struct tail *t = CONTAINER_OF(link, struct tail, link);
        if (t->seg->number == number)
            return t;
    }
    return NULL;
}
