// table.c - rows, extents and live bytes over an ordered key-value store; every call is one job on the metadata lane.
//
// Keys: "M"; "L" id; "S" number; "X" id, last entry of the extent (big endian, so that order is numeric).
#include "ledger/store/table.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

#define TABLE_VERSION 1u
#define TABLE_META_BYTES (4 + 4 * 8 + OX_IDENTITY_BYTES)
#define TABLE_SEGMENT_BYTES 44u
#define TABLE_EXTENT_BYTES 28u
#define TABLE_ROW_BYTES 17u // then custom metadata

struct ox_table {
    struct ox_loop *loop;
    struct ox_table_kv *kv;
};

// One call: arguments and results are reached through `args`.
struct table_job {
    struct ox_job job;
    struct ox_op *op;
    enum ox_err err;
    struct ox_table *table;
    enum ox_err (*work)(struct table_job *j);
    void (*publish)(struct table_job *j);
    struct ox_table_source source;
    char *dir;
    void *ret;
    void *ret2;
    int64_t id, entry;
    size_t max;
};

struct table_key {
    uint8_t bytes[17];
    size_t len;
};

void ox_table_row_fini(struct ox_table_row *row)
{
    ox_kv_fini(&row->custom);
}

static struct table_key table_key1(char kind, uint64_t number)
{
    struct table_key k = {.len = 9};
    k.bytes[0] = (uint8_t)kind;
    ox_put_be64(k.bytes + 1, number);
    return k;
}

static struct table_key table_extent_key(int64_t id, int64_t last)
{
    struct table_key k = table_key1('X', (uint64_t)id);
    ox_put_be64(k.bytes + 9, (uint64_t)last);
    k.len = 17;
    return k;
}

static struct ox_buf table_buf(const struct table_key *k)
{
    return ox_buf_static(k->bytes, k->len);
}

static void table_job_run(struct ox_job *job)
{
    struct table_job *j = CONTAINER_OF(job, struct table_job, job);
    j->err = j->work(j);
}

static void table_job_done(struct ox_op *op)
{
    struct table_job *j = CONTAINER_OF(op, struct table_job, job.op);
    enum ox_err err = op->err == OX_OK ? j->err : op->err;
    if (err == OX_OK && j->publish)
        j->publish(j);
    ox_op_finish(j->op, err);
    ox_free(j->dir);
    ox_free(j);
}

static struct table_job *table_job_new(struct ox_loop *loop, struct ox_table *t, struct ox_op *op,
                                       enum ox_err (*work)(struct table_job *))
{
    struct table_job *j = ox_malloc(sizeof *j);
    ox_op_begin(op);
    ox_op_init(&j->job.op, loop, table_job_done, "ledger table");
    j->job.run = table_job_run;
    j->job.lane = OX_LANE_META;
    j->op = op;
    j->table = t;
    j->work = work;
    return j;
}

// Wraps a read: begins, works, ends.
static enum ox_err table_reading(struct table_job *j, enum ox_err (*work)(struct table_job *j, struct ox_table_kv *kv))
{
    struct ox_table_kv *kv = j->table->kv;
    enum ox_err err = kv->body->begin(kv, false);
    if (err != OX_OK)
        return err;
    err = work(j, kv);
    kv->body->abort(kv);
    return err;
}

// Opening.

static enum ox_err table_open_work(struct table_job *j)
{
    return j->source.open(j->source.ctx, j->dir, &j->table->kv);
}

static void table_open_publish(struct table_job *j)
{
    *(struct ox_table **)j->ret = j->table;
    j->table = NULL;
}

static void table_open_done(struct ox_op *op)
{
    struct table_job *j = CONTAINER_OF(op, struct table_job, job.op);
    if (op->err != OX_OK || j->err != OX_OK) {
        if (j->table->kv)
            j->table->kv->body->close(j->table->kv);
        ox_free(j->table);
    }
    table_job_done(op);
}

void ox_table_open(struct ox_loop *loop, struct ox_op *op, struct ox_table_source source, const char *dir,
                   struct ox_table **ret)
{
    struct ox_table *t = ox_malloc(sizeof *t);
    t->loop = loop;
    struct table_job *j = table_job_new(loop, t, op, table_open_work);
    ox_op_init(&j->job.op, loop, table_open_done, "open ledger table");
    j->publish = table_open_publish;
    j->source = source;
    j->dir = ox_strdup(dir);
    j->ret = ret;
    ox_job_submit(loop, &j->job);
}

// Values.

static void table_meta_encode(uint8_t *p, const struct ox_table_meta *m)
{
    ox_put_le32(p, TABLE_VERSION);
    ox_put_le64(p + 4, m->covered);
    ox_put_le64(p + 12, (uint64_t)m->id_ceiling);
    ox_put_le64(p + 20, (uint64_t)m->id_max);
    ox_put_le64(p + 28, m->sequence);
    memcpy(p + 36, m->identity, OX_IDENTITY_BYTES);
}

static enum ox_err table_meta_decode(struct ox_buf v, struct ox_table_meta *m)
{
    if (v.len != TABLE_META_BYTES || v.data[v.len - 1] != 0)
        return OX_E_CORRUPT;
    if (ox_get_le32(v.data) != TABLE_VERSION)
        return OX_E_UNSUPPORTED;
    m->covered = ox_get_le64(v.data + 4);
    m->id_ceiling = (int64_t)ox_get_le64(v.data + 12);
    m->id_max = (int64_t)ox_get_le64(v.data + 20);
    m->sequence = ox_get_le64(v.data + 28);
    memcpy(m->identity, v.data + 36, OX_IDENTITY_BYTES);
    return OX_OK;
}

static void table_segment_encode(uint8_t *p, const struct ox_table_segment *s)
{
    ox_put_le64(p, s->number);
    ox_put_le64(p + 8, s->file_bytes);
    ox_put_le64(p + 16, s->live);
    ox_put_le32(p + 24, s->used);
    ox_put_le32(p + 28, s->items);
    ox_put_le32(p + 32, s->runs);
    ox_put_le64(p + 36, s->live_entries);
}

static enum ox_err table_segment_decode(struct ox_buf v, struct ox_table_segment *s)
{
    if (v.len != TABLE_SEGMENT_BYTES)
        return OX_E_CORRUPT;
    s->number = ox_get_le64(v.data);
    s->file_bytes = ox_get_le64(v.data + 8);
    s->live = ox_get_le64(v.data + 16);
    s->used = ox_get_le32(v.data + 24);
    s->items = ox_get_le32(v.data + 28);
    s->runs = ox_get_le32(v.data + 32);
    s->live_entries = ox_get_le64(v.data + 36);
    return OX_OK;
}

static enum ox_err table_extent_decode(struct ox_buf key, struct ox_buf v, struct ox_table_extent *x)
{
    if (key.len != 17 || v.len != TABLE_EXTENT_BYTES)
        return OX_E_CORRUPT;
    x->last = (int64_t)ox_get_be64(key.data + 9);
    x->first = (int64_t)ox_get_le64(v.data);
    x->segment = ox_get_le64(v.data + 8);
    x->bytes = ox_get_le64(v.data + 16);
    x->pos = ox_get_le32(v.data + 24);
    return x->first >= 0 && x->first <= x->last ? OX_OK : OX_E_CORRUPT;
}

static enum ox_err table_extent_put(struct ox_table_kv *kv, int64_t id, const struct ox_table_extent *x)
{
    uint8_t v[TABLE_EXTENT_BYTES];
    struct table_key key = table_extent_key(id, x->last);
    ox_put_le64(v, (uint64_t)x->first);
    ox_put_le64(v + 8, x->segment);
    ox_put_le64(v + 16, x->bytes);
    ox_put_le32(v + 24, x->pos);
    return kv->body->put(kv, table_buf(&key), ox_buf_static(v, sizeof v));
}

static enum ox_err table_row_put(struct ox_table_kv *kv, const struct ox_table_row *row, const struct ox_kv *custom)
{
    uint8_t v[TABLE_ROW_BYTES];
    struct ox_str s = {0};
    struct table_key key = table_key1('L', (uint64_t)row->id);
    v[0] = (uint8_t)row->state;
    ox_put_le64(v + 1, (uint64_t)row->last_entry);
    ox_put_le64(v + 9, row->length);
    ox_str_add(&s, v, sizeof v);
    ox_custom_encode(&s, custom);
    enum ox_err err = kv->body->put(kv, table_buf(&key), ox_buf_static(s.data, s.len));
    ox_str_fini(&s);
    return err;
}

static enum ox_err table_row_decode(int64_t id, struct ox_buf v, struct ox_table_row *row)
{
    if (v.len < TABLE_ROW_BYTES || v.data[0] > OX_LEDGER_CLOSED)
        return OX_E_CORRUPT;
    *row = (struct ox_table_row){
        .id = id,
        .state = (enum ox_ledger_state)v.data[0],
        .last_entry = (int64_t)ox_get_le64(v.data + 1),
        .length = ox_get_le64(v.data + 9),
    };
    return ox_custom_decode(v.data + TABLE_ROW_BYTES, v.len - TABLE_ROW_BYTES, &row->custom);
}

static enum ox_err table_row_get(struct ox_table_kv *kv, int64_t id, struct ox_table_row *row)
{
    struct ox_buf v;
    struct table_key key = table_key1('L', (uint64_t)id);
    enum ox_err err = kv->body->get(kv, table_buf(&key), &v);
    if (err == OX_E_NOT_FOUND)
        return OX_E_NO_LEDGER;
    return err == OX_OK ? table_row_decode(id, v, row) : err;
}

// Loading.

static enum ox_err table_load_segments(struct ox_table_kv *kv, struct ox_table_image *image)
{
    struct table_key key = table_key1('S', 0);
    struct ox_buf k, v;
    enum ox_err err;
    while ((err = kv->body->seek(kv, table_buf(&key), &k, &v)) == OX_OK && k.len == 9 && k.data[0] == 'S') {
        image->segments = ox_realloc(image->segments, image->count + 1, sizeof *image->segments);
        err = table_segment_decode(v, &image->segments[image->count]);
        if (err != OX_OK)
            return err;
        key = table_key1('S', image->segments[image->count++].number + 1);
    }
    return err == OX_E_NOT_FOUND ? OX_OK : err;
}

static enum ox_err table_load_read(struct table_job *j, struct ox_table_kv *kv)
{
    struct ox_table_image *image = j->ret;
    struct ox_buf v;
    *image = (struct ox_table_image){0};
    enum ox_err err = kv->body->get(kv, ox_buf_static("M", 1), &v);
    if (err == OX_E_NOT_FOUND) {
        image->fresh = true;
        return OX_OK;
    }
    if (err == OX_OK)
        err = table_meta_decode(v, &image->meta);
    return err == OX_OK ? table_load_segments(kv, image) : err;
}

static enum ox_err table_load_work(struct table_job *j)
{
    return table_reading(j, table_load_read);
}

void ox_table_load(struct ox_table *t, struct ox_op *op, struct ox_table_image *ret)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_load_work);
    j->ret = ret;
    ox_job_submit(t->loop, &j->job);
}

// Committing.

struct table_commit {
    struct ox_table_kv *kv;
    struct ox_table_changes *changes;
    struct ox_table_live *live; // segments touched, with their live bytes so far
    size_t live_count;
};

// What lives in a segment in this commit, to be changed; NULL if the table does not know it.
static enum ox_err table_live(struct table_commit *c, uint64_t segment, struct ox_table_live **ret)
{
    struct ox_buf v;
    struct ox_table_segment s;
    *ret = NULL;
    for (size_t i = 0; i < c->live_count; i++) {
        if (c->live[i].segment == segment)
            *ret = &c->live[i];
    }
    if (*ret)
        return OX_OK;
    struct table_key key = table_key1('S', segment);
    enum ox_err err = c->kv->body->get(c->kv, table_buf(&key), &v);
    if (err == OX_OK)
        err = table_segment_decode(v, &s);
    if (err != OX_OK)
        return err == OX_E_NOT_FOUND ? OX_OK : err;
    c->live = ox_realloc(c->live, c->live_count + 1, sizeof *c->live);
    c->live[c->live_count] = (struct ox_table_live){segment, s.live, s.live_entries};
    *ret = &c->live[c->live_count++];
    return OX_OK;
}

static uint64_t table_extent_entries(const struct ox_table_extent *x)
{
    return (uint64_t)(x->last - x->first) + 1;
}

// Entries that no extent names any more; counts that do not add up are damage, for a segment is given away when its count is 0.
static enum ox_err table_live_less(struct table_commit *c, uint64_t segment, uint64_t bytes, uint64_t entries)
{
    struct ox_table_live *live;
    enum ox_err err = table_live(c, segment, &live);
    if (err != OX_OK || !live)
        return err;
    if (live->live_entries < entries)
        return OX_E_CORRUPT;
    live->live -= OX_MIN(live->live, bytes);
    live->live_entries -= entries;
    return OX_OK;
}

// The extent with last >= entry of a ledger.
static enum ox_err table_extent_seek(struct ox_table_kv *kv, int64_t id, int64_t entry, struct ox_table_extent *ret)
{
    struct ox_buf k, v;
    struct table_key key = table_extent_key(id, entry);
    enum ox_err err = kv->body->seek(kv, table_buf(&key), &k, &v);
    if (err == OX_E_NOT_FOUND || (err == OX_OK && (k.len != 17 || memcmp(k.data, key.bytes, 9) != 0)))
        return OX_E_NO_ENTRY;
    return err == OX_OK ? table_extent_decode(k, v, ret) : err;
}

static enum ox_err table_extent_del(struct table_commit *c, int64_t id, const struct ox_table_extent *x)
{
    struct table_key key = table_extent_key(id, x->last);
    return c->kv->body->del(c->kv, table_buf(&key));
}

static enum ox_err table_ledger_del(struct table_commit *c, int64_t id)
{
    struct ox_table_extent x;
    struct table_key key = table_key1('L', (uint64_t)id);
    enum ox_err err = c->kv->body->del(c->kv, table_buf(&key));
    while (err == OX_OK && (err = table_extent_seek(c->kv, id, 0, &x)) == OX_OK) {
        err = table_live_less(c, x.segment, x.bytes, table_extent_entries(&x));
        if (err == OX_OK)
            err = table_extent_del(c, id, &x);
    }
    return err == OX_E_NO_ENTRY ? OX_OK : err;
}

static enum ox_err table_row_change(struct table_commit *c, const struct ox_table_row *row)
{
    if (row->deleted)
        return table_ledger_del(c, row->id);
    if (row->created) {
        enum ox_err err = table_ledger_del(c, row->id);
        return err == OX_OK ? table_row_put(c->kv, row, &row->custom) : err;
    }
    struct ox_table_row old;
    enum ox_err err = table_row_get(c->kv, row->id, &old);
    if (err != OX_OK)
        return err == OX_E_NO_LEDGER ? OX_OK : err;
    err = table_row_put(c->kv, row, &old.custom);
    ox_table_row_fini(&old);
    return err;
}

static uint64_t table_items_bytes(const struct ox_run *run, const struct ox_item *items, int64_t first, int64_t last)
{
    uint64_t bytes = 0;
    for (int64_t e = first; e <= last; e++)
        bytes += items[e - run->first].length;
    return bytes;
}

// What is left of an extent on one side of a cut. Its bytes are its share by entries: the old index is not at hand.
static enum ox_err table_extent_rest(struct table_commit *c, int64_t id, const struct ox_table_extent *old,
                                     int64_t first, int64_t last)
{
    if (first > last)
        return OX_OK;
    struct ox_table_extent x = *old;
    x.first = first;
    x.last = last;
    x.pos = old->pos + (uint32_t)(first - old->first);
    x.bytes = old->bytes / table_extent_entries(old) * table_extent_entries(&x);
    return table_extent_put(c->kv, id, &x);
}

// Takes a run's entries out of an older extent that overlaps it; what is left on either side stays.
static enum ox_err table_extent_cut(struct table_commit *c, const struct ox_run *run, const struct ox_item *items,
                                    const struct ox_table_extent *old)
{
    int64_t from = OX_MAX(old->first, run->first), to = OX_MIN(old->last, run->first + run->count - 1);
    uint64_t bytes = table_items_bytes(run, items, from, to);
    enum ox_err err = table_extent_del(c, run->ledger, old);
    if (err == OX_OK)
        err = table_live_less(c, old->segment, bytes, (uint64_t)(to - from) + 1);
    if (err == OX_OK)
        err = table_extent_rest(c, run->ledger, old, to + 1, old->last);
    if (err == OX_OK)
        err = table_extent_rest(c, run->ledger, old, old->first, from - 1);
    return err;
}

// A run becomes an extent, unless its ledger is gone.
static enum ox_err table_run_add(struct table_commit *c, const struct ox_run *run, const struct ox_item *items,
                                 struct ox_table_segment *segment)
{
    struct ox_buf v;
    struct table_key key = table_key1('L', (uint64_t)run->ledger);
    enum ox_err err = c->kv->body->get(c->kv, table_buf(&key), &v);
    if (err != OX_OK)
        return err == OX_E_NOT_FOUND ? OX_OK : err;
    int64_t last = run->first + run->count - 1;
    struct ox_table_extent old;
    while ((err = table_extent_seek(c->kv, run->ledger, run->first, &old)) == OX_OK && old.first <= last) {
        err = table_extent_cut(c, run, items, &old);
        if (err != OX_OK)
            return err;
    }
    if (err != OX_OK && err != OX_E_NO_ENTRY)
        return err;
    struct ox_table_extent x = {
        .first = run->first, .last = last, .segment = c->changes->segment->number, .bytes = run->bytes, .pos = run->first_item};
    segment->live += run->bytes;
    segment->live_entries += run->count;
    return table_extent_put(c->kv, run->ledger, &x);
}

static enum ox_err table_segment_put(struct ox_table_kv *kv, const struct ox_table_segment *s)
{
    uint8_t v[TABLE_SEGMENT_BYTES];
    struct table_key key = table_key1('S', s->number);
    table_segment_encode(v, s);
    return kv->body->put(kv, table_buf(&key), ox_buf_static(v, sizeof v));
}

static enum ox_err table_segment_add(struct table_commit *c)
{
    const struct ox_table_changes *ch = c->changes;
    struct ox_table_segment s = *ch->segment;
    s.live = s.live_entries = 0;
    for (size_t i = 0; i < ch->run_count; i++) {
        enum ox_err err = table_run_add(c, &ch->runs[i], ch->items[i], &s);
        if (err != OX_OK)
            return err;
    }
    c->live = ox_realloc(c->live, c->live_count + 1, sizeof *c->live);
    c->live[c->live_count++] = (struct ox_table_live){s.number, s.live, s.live_entries};
    return table_segment_put(c->kv, &s);
}

static enum ox_err table_live_write(struct table_commit *c)
{
    for (size_t i = 0; i < c->live_count; i++) {
        struct ox_table_segment s;
        struct ox_buf v;
        struct table_key key = table_key1('S', c->live[i].segment);
        enum ox_err err = c->kv->body->get(c->kv, table_buf(&key), &v);
        if (err == OX_OK)
            err = table_segment_decode(v, &s);
        if (err != OX_OK)
            return err;
        s.live = c->live[i].live;
        s.live_entries = c->live[i].live_entries;
        err = table_segment_put(c->kv, &s);
        if (err != OX_OK)
            return err;
    }
    return OX_OK;
}

static enum ox_err table_meta_write(struct table_commit *c)
{
    uint8_t v[TABLE_META_BYTES];
    table_meta_encode(v, &c->changes->meta);
    enum ox_err err = c->kv->body->put(c->kv, ox_buf_static("M", 1), ox_buf_static(v, sizeof v));
    if (err != OX_OK || c->changes->drop == 0)
        return err;
    struct table_key key = table_key1('S', c->changes->drop);
    return c->kv->body->del(c->kv, table_buf(&key));
}

static enum ox_err table_commit_changes(struct table_commit *c)
{
    enum ox_err err = OX_OK;
    for (size_t i = 0; err == OX_OK && i < c->changes->row_count; i++)
        err = table_row_change(c, &c->changes->rows[i]);
    if (err == OX_OK && c->changes->segment)
        err = table_segment_add(c);
    if (err == OX_OK)
        err = table_live_write(c);
    return err == OX_OK ? table_meta_write(c) : err;
}

static enum ox_err table_commit_work(struct table_job *j)
{
    struct table_commit c = {.kv = j->table->kv, .changes = j->ret};
    enum ox_err err = c.kv->body->begin(c.kv, true);
    if (err != OX_OK)
        return err;
    err = table_commit_changes(&c);
    if (err == OX_OK)
        err = c.kv->body->commit(c.kv);
    else
        c.kv->body->abort(c.kv);
    if (err == OX_OK) {
        c.changes->live = c.live;
        c.changes->live_count = c.live_count;
    } else {
        ox_free(c.live);
    }
    return err;
}

void ox_table_commit(struct ox_table *t, struct ox_op *op, struct ox_table_changes *changes)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_commit_work);
    changes->live = NULL;
    changes->live_count = 0;
    j->ret = changes;
    ox_job_submit(t->loop, &j->job);
}

// Reading.

static enum ox_err table_find_read(struct table_job *j, struct ox_table_kv *kv)
{
    return table_row_get(kv, j->id, j->ret);
}

static enum ox_err table_find_work(struct table_job *j)
{
    return table_reading(j, table_find_read);
}

void ox_table_find(struct ox_table *t, struct ox_op *op, int64_t id, struct ox_table_row *ret)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_find_work);
    j->id = id;
    j->ret = ret;
    ox_job_submit(t->loop, &j->job);
}

static enum ox_err table_extent_read(struct table_job *j, struct ox_table_kv *kv)
{
    return table_extent_seek(kv, j->id, j->entry, j->ret);
}

static enum ox_err table_extent_work(struct table_job *j)
{
    return table_reading(j, table_extent_read);
}

void ox_table_extent(struct ox_table *t, struct ox_op *op, int64_t id, int64_t entry, struct ox_table_extent *ret)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_extent_work);
    j->id = id;
    j->entry = entry;
    j->ret = ret;
    ox_job_submit(t->loop, &j->job);
}

static enum ox_err table_list_read(struct table_job *j, struct ox_table_kv *kv)
{
    struct ox_table_row **rows = j->ret;
    size_t *count = j->ret2;
    struct ox_buf k, v;
    enum ox_err err = OX_OK;
    int64_t next = j->id + 1;
    while (*count < j->max) {
        struct table_key key = table_key1('L', (uint64_t)next);
        err = kv->body->seek(kv, table_buf(&key), &k, &v);
        if (err != OX_OK || k.len != 9 || k.data[0] != 'L')
            break;
        int64_t id = (int64_t)ox_get_be64(k.data + 1);
        *rows = ox_realloc(*rows, *count + 1, sizeof **rows);
        err = table_row_decode(id, v, &(*rows)[*count]);
        if (err != OX_OK)
            return err;
        ++*count;
        next = id + 1;
    }
    return err == OX_E_NOT_FOUND ? OX_OK : err;
}

static enum ox_err table_list_work(struct table_job *j)
{
    return table_reading(j, table_list_read);
}

void ox_table_list(struct ox_table *t, struct ox_op *op, int64_t after, size_t max, struct ox_table_row **ret_rows,
                   size_t *ret_count)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_list_work);
    *ret_rows = NULL;
    *ret_count = 0;
    j->id = OX_MAX(after, -1);
    j->max = max;
    j->ret = ret_rows;
    j->ret2 = ret_count;
    ox_job_submit(t->loop, &j->job);
}

static enum ox_err table_close_work(struct table_job *j)
{
    j->table->kv->body->close(j->table->kv);
    j->table->kv = NULL;
    return OX_OK;
}

static void table_close_done(struct ox_op *op)
{
    struct table_job *j = CONTAINER_OF(op, struct table_job, job.op);
    if (j->table->kv)
        (void)table_close_work(j); // the process is dead, the job never ran
    ox_free(j->table);
    table_job_done(op);
}

void ox_table_close(struct ox_table *t, struct ox_op *op)
{
    struct table_job *j = table_job_new(t->loop, t, op, table_close_work);
    ox_op_init(&j->job.op, t->loop, table_close_done, "close ledger table");
    ox_job_submit(t->loop, &j->job);
}
