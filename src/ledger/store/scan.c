// scan.c - walks the batches of a segment; tells damage below a durable mark from the end.
#include "ledger/store/scan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"

struct scanner {
    const uint8_t *data;
    size_t len;
    uint32_t salt;
    uint32_t durable;
    struct ox_scan *out;
};

static struct ox_scan_batch *scan_add_batch(struct ox_scan *s)
{
    if (s->batch_count == s->batch_cap) {
        s->batch_cap = s->batch_cap ? s->batch_cap * 2 : 64;
        s->batches = ox_realloc(s->batches, s->batch_cap, sizeof *s->batches);
    }
    struct ox_scan_batch *b = &s->batches[s->batch_count++];
    *b = (struct ox_scan_batch){.first_record = (uint32_t)s->record_count, .intact = true};
    return b;
}

static void scan_add_record(struct ox_scan *s, struct ox_scan_batch *b, const struct ox_segment_record *r,
                            uint32_t offset, bool damaged)
{
    if (s->record_count == s->record_cap) {
        s->record_cap = s->record_cap ? s->record_cap * 2 : 256;
        s->records = ox_realloc(s->records, s->record_cap, sizeof *s->records);
    }
    s->records[s->record_count++] = (struct ox_scan_record){*r, offset, damaged};
    b->records++;
    if (damaged)
        b->intact = false;
}

// Finds whole records in from..to, where no directory helps.
static void scan_salvage(struct scanner *sc, struct ox_scan_batch *b, uint32_t from, uint32_t to)
{
    b->intact = false;
    for (uint32_t at = from; at + OX_RECORD_HEADER_BYTES <= to;) {
        struct ox_segment_record r;
        if (ox_segment_record_decode(sc->data + at, to - at, sc->salt, sc->out->number, &r) == OX_OK) {
            scan_add_record(sc->out, b, &r, at, false);
            at += ox_align8(OX_RECORD_HEADER_BYTES + r.length);
        } else {
            at += 8;
        }
    }
}

static bool scan_same_record(const struct ox_segment_record *a, const struct ox_segment_record *b)
{
    return a->type == b->type && a->length == b->length && a->ledger == b->ledger && a->entry == b->entry && a->arg == b->arg;
}

// One directory item and the record it names. False: the item makes no sense.
static bool scan_dir_item(struct scanner *sc, struct ox_scan_batch *b, const struct ox_batch_header *h, uint32_t i)
{
    struct ox_segment_record named, found;
    uint32_t offset;
    const uint8_t *item = sc->data + h->offset + h->directory + (size_t)i * OX_DIR_ITEM_BYTES;
    if (ox_dir_item_decode(item, h->number, &offset, &named) != OX_OK)
        return false;
    if (offset < OX_BATCH_HEADER_BYTES || offset > h->directory ||
        h->directory - offset < OX_RECORD_HEADER_BYTES + (uint64_t)named.length)
        return false;
    size_t avail = OX_RECORD_HEADER_BYTES + (size_t)named.length;
    bool good = ox_segment_record_decode(sc->data + h->offset + offset, avail, sc->salt, h->number, &found) == OX_OK &&
                scan_same_record(&named, &found);
    scan_add_record(sc->out, b, &named, h->offset + offset, !good);
    return true;
}

static void scan_batch(struct scanner *sc, const struct ox_batch_header *h)
{
    struct ox_scan_batch *b = scan_add_batch(sc->out);
    b->offset = h->offset;
    b->bytes = h->bytes;
    b->mark = h->mark;
    b->sequence = h->sequence;
    b->flags = h->flags;
    const uint8_t *directory = sc->data + h->offset + h->directory;
    if (ox_crc32c(sc->salt, directory, (size_t)h->records * OX_DIR_ITEM_BYTES) != h->directory_crc) {
        scan_salvage(sc, b, h->offset + OX_BATCH_HEADER_BYTES, h->offset + h->directory);
        return;
    }
    for (uint32_t i = 0; i < h->records; i++) {
        if (!scan_dir_item(sc, b, h, i))
            b->intact = false;
    }
}

// The next header behind a bad one at `at` that proves `at` was durable: a batch with a mark above it, or the footer. 0: none.
static uint32_t scan_proof(struct scanner *sc, uint32_t at)
{
    for (uint64_t q = (uint64_t)at + OX_SEG_BLOCK; q + OX_SEG_BLOCK <= sc->len; q += OX_SEG_BLOCK) {
        struct ox_batch_header h;
        struct ox_footer_header f;
        struct ox_journal_pos bad = {sc->out->number, at};
        uint32_t offset = (uint32_t)q;
        if (ox_batch_header_decode(sc->data, sc->len, sc->salt, sc->out->number, offset, &h) &&
            ox_journal_pos_cmp(h.mark, bad) > 0)
            return offset;
        if (ox_footer_header_decode(sc->data + q, sc->len - q, sc->salt, sc->out->number, offset, &f))
            return offset;
    }
    return 0;
}

// The first header of a batch behind `at` and below `limit`, or limit.
static uint32_t scan_next_header(struct scanner *sc, uint32_t at, uint32_t limit)
{
    struct ox_batch_header h;
    for (uint32_t q = at + OX_SEG_BLOCK; q < limit; q += OX_SEG_BLOCK) {
        if (ox_batch_header_decode(sc->data, sc->len, sc->salt, sc->out->number, q, &h))
            return q;
    }
    return limit;
}

// A bad header at `at`: skips over the damage and returns where to go on, or `at` if this is the end.
static uint32_t scan_damage(struct scanner *sc, uint32_t at)
{
    uint32_t limit = scan_proof(sc, at);
    if (limit == 0 && at < sc->durable)
        limit = sc->durable;
    if (limit == 0)
        return at;
    uint32_t to = scan_next_header(sc, at, limit);
    struct ox_scan_batch *b = scan_add_batch(sc->out);
    b->offset = at;
    b->bytes = to - at;
    b->salvaged = true;
    scan_salvage(sc, b, at, to);
    return to;
}

// True while there is more behind *at.
static bool scan_step(struct scanner *sc, uint32_t *at)
{
    struct ox_batch_header h;
    struct ox_footer_header f;
    if (ox_batch_header_decode(sc->data, sc->len, sc->salt, sc->out->number, *at, &h)) {
        scan_batch(sc, &h);
        *at += h.bytes;
        return true;
    }
    if (ox_footer_header_decode(sc->data + *at, sc->len - *at, sc->salt, sc->out->number, *at, &f)) {
        sc->out->sealed = true;
        return false;
    }
    uint32_t to = scan_damage(sc, *at);
    bool more = to != *at;
    *at = to;
    return more;
}

void ox_scan_segment(const uint8_t *data, size_t len, uint32_t salt, uint64_t number, uint32_t durable, struct ox_scan *ret)
{
    *ret = (struct ox_scan){.number = number};
    struct scanner sc = {data, OX_MIN(len, (size_t)UINT32_MAX), salt, 0, ret};
    sc.durable = (uint32_t)OX_MIN((size_t)durable, sc.len) & ~(OX_SEG_BLOCK - 1u);
    uint32_t at = OX_SEG_BLOCK;
    while (at + (uint64_t)OX_SEG_BLOCK <= sc.len && scan_step(&sc, &at)) {}
    ret->end = at;
}

void ox_scan_fini(struct ox_scan *s)
{
    ox_free(s->batches);
    ox_free(s->records);
    *s = (struct ox_scan){0};
}
