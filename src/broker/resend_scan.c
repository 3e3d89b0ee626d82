// resend_scan.c - reads the end of a log, newest entries first, into the table of re-sends.
#include "base/crc32c.h"
#include "broker/resend_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

#define CHUNK_ENTRIES 256u
#define CHUNK_BYTES (1024u * 1024)

static void scan_chunk(struct ox_resend_scan *scan);
static void scan_read(struct ox_resend_scan *scan);

static bool scan_topic_serves(const struct ox_topic *t)
{
    return t->state == OX_TOPIC_LOADING || t->state == OX_TOPIC_OPEN;
}

static void scan_finish(struct ox_resend_scan *scan, enum ox_err err)
{
    struct ox_topic *t = scan->topic;
    struct ox_resend *r = t->resend;
    if (scan->damaged)
        ox_warn(t->shard->log, "topic.resend.damaged", "topic=%s entries=%llu", t->name.full,
                (unsigned long long)scan->damaged);
    if (r) {
        t->shard->resend_bytes += ox_resend_bytes(r) - r->charged;
        r->charged = ox_resend_bytes(r);
        r->scanned_ns = ox_now_ns(t->shard->loop);
        r->upto = err ? r->upto : scan->end;
    }
    if (r && r->count == 0 && err == OX_OK)
        ox_resend_drop(t); // after a failure the log's end must stay: the next producer's scan reads it
    ox_op_finish(&scan->op, err);
}

static void scan_note(struct ox_resend_scan *scan, const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    scan->entries++;
    scan->bytes += entry->data.len;
    if (ox_message_parse(entry->data, false, &view) != OX_OK ||
        ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta) != OX_OK)
        return;
    uint32_t crc = view.has_checksum ? view.checksum : ox_crc32c(0, view.plain.data, view.plain.len);
    struct ox_resend_key key = {meta.producer_name.data, meta.producer_name.len, meta.sequence_id, crc, view.plain.len};
    ox_resend_add(scan->topic->resend, &key, entry->pos);
    scan->chunk_ms = OX_MAX(scan->chunk_ms, meta.publish_time_ms);
}

// A read that failed at a damaged or lost entry is tried again entry by entry; one that fails alone is passed.
static void scan_failed(struct ox_resend_scan *scan, enum ox_err err)
{
    if (err != OX_E_CORRUPT && err != OX_E_NO_LEDGER && err != OX_E_NO_ENTRY) {
        scan_finish(scan, err);
        return;
    }
    if (scan->step == 1) {
        scan->damaged++;
        scan->low++;
    }
    scan->step = 1;
    scan_read(scan);
}

static void scan_read_done(struct ox_op *op)
{
    struct ox_resend_scan *scan = CONTAINER_OF(op, struct ox_resend_scan, read.op);
    if (op->err) {
        scan_failed(scan, op->err);
        return;
    }
    scan->low = scan->high + 1; // unless less came
    for (size_t i = 0; scan->topic->resend && i < scan->read.count; i++) {
        const struct ox_entry *entry = &scan->read.entries[i];
        if (entry->pos.ledger == scan->ledger && entry->pos.entry <= scan->high)
            scan_note(scan, entry);
    }
    if (scan->read.next.ledger == scan->ledger)
        scan->low = scan->read.next.entry;
    ox_ml_read_fini(&scan->read);
    scan->step = CHUNK_ENTRIES;
    scan_read(scan);
}

// Reads on within the chunk low..high, then goes to the one before it.
static void scan_read(struct ox_resend_scan *scan)
{
    struct ox_topic *t = scan->topic;
    if (!scan_topic_serves(t) || !t->resend) {
        scan_finish(scan, scan_topic_serves(t) ? OX_OK : OX_E_TOPIC_FENCED);
        return;
    }
    if (scan->low > scan->high) {
        scan_chunk(scan);
        return;
    }
    uint64_t most = OX_MIN((uint64_t)(scan->high - scan->low + 1), (uint64_t)scan->step);
    scan->read =
        (struct ox_ml_read){.from = {scan->ledger, scan->low}, .entries_max = (uint32_t)most, .bytes_max = CHUNK_BYTES};
    ox_op_init(&scan->read.op, t->shard->loop, scan_read_done, "resend.read");
    ox_mledger_read(t->ml, &scan->read);
}

// The newest ledger that has entries and an id below `below`, or NULL.
static const struct ox_ml_ledger *scan_ledger_before(const struct ox_mledger *ml, int64_t below)
{
    for (size_t i = ml->ledger_count; i-- > 0;)
        if (ml->ledgers[i]->where.id < below && ml->ledgers[i]->entries > 0 && !ml->ledgers[i]->lost)
            return ml->ledgers[i];
    return NULL;
}

static bool scan_is_enough(const struct ox_resend_scan *scan)
{
    bool old = scan->entries >= OX_RESEND_ENTRIES_MIN && scan->chunk_ms &&
               scan->chunk_ms + OX_RESEND_WINDOW_MS < scan->newest_ms;
    return old || scan->entries >= OX_RESEND_ENTRIES_MAX || scan->bytes >= OX_RESEND_BYTES_MAX;
}

// The next chunk: what stands before the one that was read.
static void scan_chunk(struct ox_resend_scan *scan)
{
    const struct ox_mledger *ml = scan->topic->ml;
    scan->newest_ms = OX_MAX(scan->newest_ms, scan->chunk_ms);
    int64_t end = scan->first; // of what is left in the ledger
    const struct ox_ml_ledger *l = ox_ml_ledger(ml, scan->ledger);
    if (!l || end == 0) {
        l = scan_ledger_before(ml, scan->ledger);
        end = l ? l->entries : 0;
    }
    int64_t stop = l && l->where.id == scan->stop.ledger ? scan->stop.entry + 1 : 0;
    if (!l || l->where.id < scan->stop.ledger || end <= stop || scan_is_enough(scan)) {
        scan_finish(scan, OX_OK);
        return;
    }
    uint64_t mean = l->entries ? l->bytes / (uint64_t)l->entries + 1 : 1;
    uint64_t fits = OX_MIN((uint64_t)CHUNK_ENTRIES, CHUNK_BYTES / mean + 1);
    scan->ledger = l->where.id;
    scan->high = end - 1;
    scan->low = scan->first = OX_MAX(stop, end - (int64_t)fits);
    scan->chunk_ms = 0;
    scan->step = CHUNK_ENTRIES;
    scan_read(scan);
}

static void resend_begin(struct ox_topic *t)
{
    t->resend = ox_resend_new();
    t->resend->scanned_ns = ox_now_ns(t->shard->loop);
    t->resend->holds = !t->ml->full; // on a full disk what is consumed must go
    if (t->resend->holds)
        ox_mledger_hold_trim(t->ml);
}

void ox_resend_expect(struct ox_topic *t)
{
    if (t->resend || t->state != OX_TOPIC_OPEN || !t->ml || t->shard->config.resend_ns == 0 || t->ml->total_entries == 0)
        return;
    resend_begin(t);
}

void ox_resend_scan(struct ox_topic *t, struct ox_resend_scan *scan)
{
    ox_op_begin(&scan->op);
    scan->topic = t;
    scan->damaged = scan->entries = scan->bytes = scan->newest_ms = scan->chunk_ms = 0;
    scan->end = t->ml->last;
    scan->ledger = scan->end.ledger + 1;
    scan->first = 0;
    if (t->shard->config.resend_ns == 0) {
        ox_op_finish(&scan->op, OX_OK);
        return;
    }
    bool fresh = !t->resend || t->resend->count == 0;
    if (fresh && (t->shard->resend_bytes > OX_RESEND_TOTAL_BYTES_MAX || t->ml->total_entries == 0)) {
        if (t->ml->total_entries)
            ox_warn(t->shard->log, "topic.resend.skipped", "topic=%s reason=memory bytes=%llu", t->name.full,
                    (unsigned long long)t->shard->resend_bytes);
        ox_op_finish(&scan->op, OX_OK);
        return;
    }
    if (!t->resend)
        resend_begin(t);
    t->resend->scanned_ns = ox_now_ns(t->shard->loop); // it does not expire under the scan
    scan->stop = t->resend->upto;
    scan_chunk(scan);
}

void ox_resend_drop(struct ox_topic *t)
{
    struct ox_resend *r = t->resend;
    if (!r)
        return;
    t->shard->resend_bytes -= r->charged;
    if (r->holds && t->ml)
        ox_mledger_release_trim(t->ml);
    t->resend = NULL;
    ox_resend_free(r);
}

void ox_resend_expire(struct ox_topic *t)
{
    if (t->resend && ox_now_ns(t->shard->loop) - t->resend->scanned_ns > t->shard->config.resend_ns)
        ox_resend_drop(t);
}
