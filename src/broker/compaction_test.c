// compaction_test.c - what compaction leaves, for whom, and what a crash or a fault at any step leaves: traps P06 and the reader's end of the topic.
#include "broker/compaction.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/compaction_entry.h"
#include "broker/fixture.h"
#include "mledger/mledger.h"
#include "mledger/places.h"
#include "wire/compress.h"
#include "wire/message_build.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

struct world {
    struct rig r;
    struct ox_topic *t;
    uint64_t sequence;
};

static void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    rig_init(&w->r);
    w->t = rig_topic(&w->r, "t");
}

static void world_fini(struct world *w)
{
    ox_topic_put(w->t);
    rig_fini(&w->r);
}

static void world_crash(struct world *w)
{
    ox_topic_put(w->t);
    rig_crash(&w->r);
    w->t = rig_topic(&w->r, "t");
    rig_settle(&w->r);
}

// ---- writing: "k=v" a message, "k" a null value, "=v" one without a key

static void put_entry(struct world *w, struct ox_buf take_entry, uint32_t messages)
{
    struct ox_ml_append a = {.body = take_entry, .messages = messages};
    rig_op(&w->r, &a.op);
    ox_mledger_append(w->t->ml, &a);
    assert_int_equal(rig_wait(&w->r, &a.op), OX_OK);
    ox_buf_unref(&take_entry);
}

static bool spec_next(const char **at, char key[32], char value[512], bool *ret_null)
{
    size_t n = strcspn(*at, " ");
    if (n == 0)
        return false;
    const char *eq = memchr(*at, '=', n);
    *ret_null = !eq;
    snprintf(key, 32, "%.*s", eq ? (int)(eq - *at) : (int)n, *at);
    snprintf(value, 512, "%.*s", eq ? (int)(n - (size_t)(eq - *at) - 1) : 0, eq ? eq + 1 : "");
    *at += n + (*(*at + n) == ' ');
    return true;
}

static Oxpb__MessageMetadata metadata(struct world *w)
{
    static char producer[] = "p";
    Oxpb__MessageMetadata m = OXPB__MESSAGE_METADATA__INIT;
    m.producer_name = producer;
    m.sequence_id = w->sequence++;
    m.publish_time = 1000;
    return m;
}

static void put(struct world *w, const char *spec)
{
    char key[32], value[512];
    bool null;
    Oxpb__MessageMetadata m = metadata(w);
    assert_true(spec_next(&spec, key, value, &null));
    m.partition_key = *key ? key : NULL;
    m.has_null_value = m.null_value = null;
    put_entry(w, ox_entry_build(&m, value, strlen(value)), 1);
}

static void put_batch(struct world *w, const char *spec, uint32_t compression, bool encrypted)
{
    char key[32], value[512];
    bool null;
    struct ox_str batch = {0};
    Oxpb__MessageMetadata m = metadata(w);
    for (; spec_next(&spec, key, value, &null); m.num_messages_in_batch++) {
        Oxpb__SingleMessageMetadata one = OXPB__SINGLE_MESSAGE_METADATA__INIT;
        one.partition_key = *key ? key : NULL;
        one.has_null_value = one.null_value = null;
        ox_batch_add(&batch, &one, value, strlen(value));
    }
    m.num_messages_in_batch--; // it begins with the protocol's default, 1
    m.has_num_messages_in_batch = 1;
    m.has_compression = compression != 0;
    m.compression = (Oxpb__CompressionType)compression;
    m.has_uncompressed_size = 1;
    m.uncompressed_size = (uint32_t)batch.len;
    Oxpb__EncryptionKeys keys = OXPB__ENCRYPTION_KEYS__INIT, *list = &keys;
    keys.key = key;
    keys.value = (ProtobufCBinaryData){1, (uint8_t *)value};
    m.n_encryption_keys = encrypted;
    m.encryption_keys = &list;
    struct ox_buf payload;
    assert_int_equal(ox_compress(compression, batch.data, batch.len, &payload), OX_OK);
    put_entry(w, ox_entry_build(&m, payload.data, payload.len), (uint32_t)m.num_messages_in_batch);
    ox_buf_unref(&payload);
    ox_str_fini(&batch);
}

// ---- reading

struct reader {
    struct rig_consumer owner;
    struct ox_consumer *consumer;
    struct ox_str got; // "k=v " a message, "[...]@entry " a batch, in it "-" for what was taken out
    struct ox_pos last;
};

static void reader_text(struct reader *d, const struct compaction_entry *e)
{
    struct compaction_message m;
    struct ox_batch_message b;
    size_t at = 0, offset = 0;
    if (e->kind == COMPACTION_KEEP)
        ox_str_adds(&d->got, "?");
    if (e->kind == COMPACTION_BATCH)
        ox_str_adds(&d->got, "[");
    while (compaction_entry_next(e, &at, &m)) {
        struct ox_span payload = {e->payload.data, e->payload.len};
        if (e->kind == COMPACTION_BATCH) {
            assert_int_equal(ox_batch_next(e->plain.data, e->plain.len, &offset, &b), OX_OK);
            payload = b.payload;
        }
        if (m.index > 0)
            ox_str_adds(&d->got, ",");
        if (m.gone)
            ox_str_adds(&d->got, "-");
        else
            ox_str_addf(&d->got, "%.*s=%.*s", (int)m.key.len, m.key.data ? (const char *)m.key.data : "",
                        (int)OX_MIN(payload.len, 20u), (const char *)payload.data);
    }
    if (e->kind == COMPACTION_BATCH)
        ox_str_adds(&d->got, "]");
    ox_str_adds(&d->got, " ");
}

static void reader_deliver(struct ox_consumer *c, const struct ox_dispatch *dispatch)
{
    struct reader *d = c->owner;
    struct compaction_entry e;
    struct ox_message_view view;
    struct ox_buf plain = ox_buf_empty();
    assert_int_equal(ox_message_parse(dispatch->entry, true, &view), OX_OK); // the checksum is right
    compaction_entry_scan(&e, dispatch->entry);
    if (compaction_entry_is_packed(&e))
        assert_int_equal(
            ox_decompress(e.meta.compression, e.payload.data, e.payload.len, e.meta.uncompressed_size, 1 << 20, &plain),
            OX_OK);
    compaction_entry_open(&e, plain);
    d->last = dispatch->pos;
    reader_text(d, &e);
    compaction_entry_fini(&e);
}

static bool reader_ready(struct ox_consumer *c)
{
    (void)c;
    return true;
}

static void reader_closed(struct ox_consumer *c, enum ox_err err)
{
    (void)err;
    ((struct reader *)c->owner)->consumer = NULL;
}

static void reader_active(struct ox_consumer *c, bool active)
{
    (void)c, (void)active;
}

static void reader_end(struct ox_consumer *c)
{
    (void)c;
}

static const struct ox_consumer_events reader_events = {
    .deliver = reader_deliver, .ready = reader_ready, .closed = reader_closed, .active = reader_active, .end_of_topic = reader_end};

// A reader of the compacted topic behind a position.
static void read_open(struct world *w, struct reader *d, const char *name, struct ox_pos start, bool durable)
{
    memset(d, 0, sizeof *d);
    struct ox_subscribe o = {.subscription = name,
                             .name = "c",
                             .durable = durable,
                             .from_earliest = true,
                             .has_start = !durable,
                             .start = start,
                             .read_compacted = true,
                             .connection = d,
                             .events = &reader_events,
                             .owner = d};
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    d->consumer = o.consumer;
}

static void read_some(struct world *w, struct reader *d, uint32_t permits)
{
    assert_int_equal(ox_consumer_flow(d->consumer, permits), OX_OK);
    rig_settle(&w->r);
}

static void read_close(struct world *w, struct reader *d)
{
    if (d->consumer)
        ox_consumer_close(d->consumer);
    ox_str_fini(&d->got);
    rig_settle(&w->r);
}

static void assert_reads(struct world *w, const char *want)
{
    struct reader d;
    read_open(w, &d, "r", OX_POS_EARLIEST, false);
    read_some(w, &d, 10000);
    assert_string_equal(ox_str_get(&d.got), want);
    read_close(w, &d);
}

static enum ox_err compact(struct world *w)
{
    struct ox_op op;
    rig_op(&w->r, &op);
    assert_int_equal(ox_compaction_start(w->t, &op), OX_OK);
    enum ox_err err = rig_wait(&w->r, &op);
    rig_settle(&w->r);
    return err;
}

static struct ox_compaction_info info(struct world *w)
{
    struct ox_compaction_info i;
    ox_compaction_info(w->t, &i);
    return i;
}

static void roll(struct world *w)
{
    struct ox_op op;
    rig_op(&w->r, &op);
    ox_mledger_roll(w->t->ml, &op);
    assert_int_equal(rig_wait(&w->r, &op), OX_OK);
    rig_settle(&w->r);
}

static struct ox_pos last_id_of(struct world *w, bool read_compacted, int32_t *ret_index)
{
    struct ox_last_id o = {.read_compacted = read_compacted};
    rig_op(&w->r, &o.op);
    ox_topic_last_id(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    *ret_index = o.batch_index;
    return o.pos;
}

static struct ox_pos last_id(struct world *w, int32_t *ret_index)
{
    return last_id_of(w, true, ret_index);
}

// Ledgers in the place that carry a component.
static size_t ledgers_of(struct world *w, const char *component)
{
    struct ox_ledger_list list = {.after = -1, .max = 100};
    size_t n = 0;
    rig_op(&w->r, &list.op);
    ox_ledger_list(ox_router_place(&w->r.router, 0), &list);
    assert_int_equal(rig_wait(&w->r, &list.op), OX_OK);
    for (size_t i = 0; i < list.count; i++)
        n += strcmp(ox_kv_find(&list.items[i].custom, "component"), component) == 0;
    ox_ledger_list_fini(&list);
    return n;
}

// ---- tests

static void test_compaction_leaves_the_last_message_of_each_key(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_int_equal(info(&w).status, OX_COMPACTION_NOT_RUN);
    put(&w, "k1=a");
    put(&w, "k2=b");
    put(&w, "k1=c");
    put(&w, "=nokey");
    put_batch(&w, "b1=x b2=y b1=z =n b3=", 0, false);
    assert_int_equal(compact(&w), OX_OK);
    assert_int_equal(info(&w).status, OX_COMPACTION_SUCCESS);
    assert_int_equal(info(&w).entries, 3);
    assert_int_equal(info(&w).removed, 5);
    assert_reads(&w, "k2=b k1=c [-,b2=y,b1=z,-,-] ");
    put(&w, "k2=later");
    assert_reads(&w, "k2=b k1=c [-,b2=y,b1=z,-,-] k2=later "); // behind the horizon: as it comes
    world_fini(&w);
}

static void test_compaction_a_second_run_builds_on_the_first(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    put(&w, "k1=a");
    put_batch(&w, "k2=b k3=c k4=d", 0, false);
    assert_int_equal(compact(&w), OX_OK);
    int64_t first = info(&w).ledger;
    assert_int_equal(compact(&w), OX_OK); // nothing new: nothing is done
    assert_int_equal(info(&w).ledger, first);
    assert_int_equal(info(&w).status, OX_COMPACTION_SUCCESS);
    put(&w, "k3=e");
    put(&w, "k1");
    assert_int_equal(compact(&w), OX_OK);
    assert_true(info(&w).ledger > first);
    assert_reads(&w, "[k2=b,-,k4=d] k3=e ");
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1); // the old one is gone
    world_fini(&w);
}

// fault: P06
static void test_trap_p06_a_null_value_takes_only_its_own_key(void **state)
{
    (void)state;
    struct world w;
    int32_t index;
    world_init(&w);
    put_batch(&w, "k1=a k2 k3=c =d", 0, false);
    struct ox_pos batch = w.t->ml->last;
    put(&w, "k1=a2");
    struct ox_pos value = w.t->ml->last;
    put(&w, "k9");
    assert_int_equal(compact(&w), OX_OK);
    assert_int_equal(info(&w).status, OX_COMPACTION_SUCCESS);
    assert_reads(&w, "[-,-,k3=c,-] k1=a2 ");
    struct reader d;
    read_open(&w, &d, "r", OX_POS_EARLIEST, false);
    read_some(&w, &d, 4);
    assert_true(ox_pos_equal(d.last, batch)); // ids are what they were
    read_close(&w, &d);
    assert_true(ox_pos_equal(last_id(&w, &index), value)); // what a reader can expect, not the tombstone
    assert_int_equal(index, -1);
    int64_t ledger = info(&w).ledger;
    assert_int_equal(compact(&w), OX_OK);
    assert_int_equal(info(&w).ledger, ledger);
    world_fini(&w);
}

static void test_compaction_can_keep_messages_without_a_key(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.r.shard.config.compaction_retain_null_key = true;
    put_batch(&w, "k1=a k2 k3=c =d", 0, false);
    put(&w, "=e");
    put(&w, "k1=a2");
    assert_int_equal(compact(&w), OX_OK);
    assert_reads(&w, "[-,-,k3=c,=d] =e k1=a2 ");
    world_fini(&w);
}

static void test_compaction_of_compressed_and_encrypted_batches(void **state)
{
    (void)state;
    struct world w;
    char big[600], want[64];
    world_init(&w);
    memset(big, 'x', sizeof big);
    memcpy(big, "k2=", 3);
    big[500] = 0;
    struct ox_str spec = {0};
    for (int i = 0; i < 40; i++)
        ox_str_addf(&spec, "k1=v%d %s ", i, big); // big enough for a helper thread
    put_batch(&w, ox_str_get(&spec), OX_COMPRESSION_ZSTD, false);
    put_batch(&w, "k3=a k4=b", OX_COMPRESSION_LZ4, false);
    put_batch(&w, "k3=c", OX_COMPRESSION_ZLIB, false);
    put_batch(&w, "k4=secret", 0, true); // nobody can look into it
    assert_int_equal(compact(&w), OX_OK);
    struct reader d;
    read_open(&w, &d, "r", OX_POS_EARLIEST, false);
    read_some(&w, &d, 1000);
    snprintf(want, sizeof want, ",k1=v39,k2=%.20s] [-,k4=b] [k3=c] ? ", big + 3);
    const char *got = ox_str_get(&d.got);
    assert_string_equal(got + strlen(got) - strlen(want), want);
    read_close(&w, &d);
    ox_str_fini(&spec);
    world_fini(&w);
}

static void test_compaction_chunks_stay_together(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int message = 0; message < 2; message++)
        for (int chunk = 0; chunk < 3; chunk++) {
            char key[] = "k", uuid[16], text[32];
            Oxpb__MessageMetadata m = metadata(&w);
            snprintf(uuid, sizeof uuid, "u%d", message);
            snprintf(text, sizeof text, "%d%d", message, chunk);
            m.partition_key = key;
            m.uuid = uuid;
            m.has_chunk_id = m.has_num_chunks_from_msg = m.has_total_chunk_msg_size = 1;
            m.chunk_id = chunk;
            m.num_chunks_from_msg = 3;
            m.total_chunk_msg_size = 6;
            put_entry(&w, ox_entry_build(&m, text, 2), 1);
        }
    assert_int_equal(compact(&w), OX_OK);
    assert_reads(&w, "k=10 k=11 k=12 ");
    world_fini(&w);
}

static void test_compaction_everything_gone(void **state) // all that is left is the horizon
{
    (void)state;
    struct world w;
    int32_t index;
    world_init(&w);
    put(&w, "k1=a");
    put(&w, "k1");
    assert_int_equal(compact(&w), OX_OK);
    assert_reads(&w, "");
    assert_int_equal(last_id(&w, &index).entry, -1);
    put(&w, "k1=b");
    assert_reads(&w, "k1=b ");
    world_fini(&w);
}

// Else they would take a topic for empty whose messages they can all read.
static void test_last_id_is_the_logs_for_those_who_do_not_read_compacted(void **state)
{
    (void)state;
    struct world w;
    int32_t index;
    world_init(&w);
    ox_mledger_set_retention(w.t->ml, -1, -1);
    put(&w, "k1=a");
    struct ox_pos value = w.t->ml->last;
    put(&w, "k2");
    struct ox_pos removal = w.t->ml->last;
    assert_int_equal(compact(&w), OX_OK);
    assert_true(ox_pos_equal(last_id_of(&w, true, &index), value));
    assert_true(ox_pos_equal(last_id_of(&w, false, &index), removal));
    roll(&w);
    ox_mledger_set_retention(w.t->ml, 0, 0);
    rig_settle(&w.r);
    assert_true(ox_pos_equal(last_id_of(&w, true, &index), value));
    assert_int_equal(last_id_of(&w, false, &index).entry, -1);
    world_fini(&w);
}

// ---- readers

static void test_readers_begin_before_what_the_log_still_holds(void **state)
{
    (void)state;
    struct world w;
    struct reader d;
    world_init(&w);
    ox_mledger_set_retention(w.t->ml, -1, -1);
    for (int i = 0; i < 3; i++) {
        put(&w, i == 0 ? "k0=a" : i == 1 ? "k1=a" : "k2=a");
        put(&w, "k9=x");
        roll(&w);
    }
    struct ox_pos second = {w.t->ml->ledgers[1]->where.id, 0};
    assert_int_equal(compact(&w), OX_OK);
    ox_mledger_set_retention(w.t->ml, 0, 0);
    rig_settle(&w.r);
    assert_int_equal(w.t->ml->ledger_count, 1); // the log itself has let go of all
    assert_reads(&w, "k0=a k1=a k2=a k9=x ");
    read_open(&w, &d, "r", second, false); // a reader that comes back with an id
    read_some(&w, &d, 1);
    assert_string_equal(ox_str_get(&d.got), "k1=a ");
    read_some(&w, &d, 10);
    assert_string_equal(ox_str_get(&d.got), "k1=a k2=a k9=x ");
    put(&w, "k5=new");
    rig_settle(&w.r);
    assert_string_equal(ox_str_get(&d.got), "k1=a k2=a k9=x k5=new ");
    read_close(&w, &d);
    world_crash(&w);
    assert_reads(&w, "k0=a k1=a k2=a k9=x k5=new ");
    read_open(&w, &d, "durable", OX_POS_EARLIEST, true);
    read_some(&w, &d, 10);
    assert_string_equal(ox_str_get(&d.got), "k0=a k1=a k2=a k9=x k5=new ");
    read_close(&w, &d);
    world_fini(&w);
}

static void test_readers_in_a_ledger_that_is_replaced(void **state)
{
    (void)state;
    struct world w;
    struct reader d;
    char spec[16];
    world_init(&w);
    for (int i = 0; i < 300; i++) {
        snprintf(spec, sizeof spec, "k%d=a", i);
        put(&w, spec);
    }
    assert_int_equal(compact(&w), OX_OK);
    read_open(&w, &d, "r", OX_POS_EARLIEST, false);
    read_some(&w, &d, 100);
    put(&w, "k250=b");
    put(&w, "k10");
    assert_int_equal(compact(&w), OX_OK);
    read_some(&w, &d, 1000);
    const char *got = ox_str_get(&d.got);
    assert_non_null(strstr(got, "k99=a k100=a k101=a "));
    assert_null(strstr(got, "k250=a"));
    assert_non_null(strstr(got, "k299=a k250=b "));
    read_close(&w, &d);
    world_fini(&w);
}

static void test_readers_acknowledge_and_go_back(void **state)
{
    (void)state;
    struct world w;
    struct reader d;
    world_init(&w);
    put(&w, "k1=a");
    put(&w, "k2=b");
    put(&w, "k1=c");
    assert_int_equal(compact(&w), OX_OK);
    read_open(&w, &d, "s", OX_POS_EARLIEST, true);
    read_some(&w, &d, 1);
    struct ox_ack_id id = {.pos = d.last};
    ox_consumer_ack(d.consumer, NULL, true, &id, 1);
    ox_consumer_redeliver(d.consumer, false, 0, NULL, 0);
    read_some(&w, &d, 10);
    assert_string_equal(ox_str_get(&d.got), "k2=b k1=c ");
    read_close(&w, &d);
    world_fini(&w);
}

// ---- bounds, faults, crashes

static void test_compaction_memory_is_bounded(void **state) // what does not fit waits for another run; the keys of the ledger itself must fit
{
    (void)state;
    struct world w;
    char spec[16];
    world_init(&w);
    w.r.shard.config.compaction_keys_bytes = 5000;
    for (int i = 0; i < 60; i++) {
        snprintf(spec, sizeof spec, "k%d=a", i / 2);
        put(&w, spec);
    }
    assert_int_equal(compact(&w), OX_OK);
    struct ox_pos horizon = info(&w).horizon;
    assert_true(ox_pos_cmp(horizon, w.t->ml->last) < 0);
    struct reader d;
    read_open(&w, &d, "r", OX_POS_EARLIEST, false);
    read_some(&w, &d, 1000);
    assert_non_null(strstr(ox_str_get(&d.got), "k29=a k29=a ")); // all is there, the end not compacted
    read_close(&w, &d);
    assert_int_equal(compact(&w), OX_E_TOO_BIG);
    assert_int_equal(info(&w).status, OX_COMPACTION_ERROR);
    assert_true(*info(&w).error && ox_pos_equal(info(&w).horizon, horizon));
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1);
    world_fini(&w);
}

static void test_compaction_one_at_a_time(void **state)
{
    (void)state;
    struct world w;
    struct ox_op first, other;
    world_init(&w);
    struct ox_topic *u = rig_topic(&w.r, "u");
    put(&w, "k=a");
    rig_op(&w.r, &first);
    rig_op(&w.r, &other);
    assert_int_equal(ox_compaction_start(w.t, &first), OX_OK);
    assert_int_equal(ox_compaction_start(w.t, NULL), OX_E_BUSY);
    assert_int_equal(ox_compaction_start(u, &other), OX_OK); // waits for its turn
    assert_int_equal(rig_wait(&w.r, &first), OX_OK);
    assert_int_equal(rig_wait(&w.r, &other), OX_OK);
    ox_topic_put(u);
    world_fini(&w);
}

static void test_compaction_ends_with_its_topic(void **state)
{
    (void)state;
    struct world w;
    struct ox_op op, close;
    world_init(&w);
    put(&w, "k=a");
    rig_op(&w.r, &op);
    rig_op(&w.r, &close);
    assert_int_equal(ox_compaction_start(w.t, &op), OX_OK);
    ox_topic_unload(&w.r.shard, &close, "persistent://public/default/t");
    assert_int_equal(rig_wait(&w.r, &op), OX_E_CANCELED);
    assert_int_equal(rig_wait(&w.r, &close), OX_OK);
    ox_topic_put(w.t);
    w.t = rig_topic(&w.r, "t");
    assert_reads(&w, "k=a ");
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 0);
    world_fini(&w);
}

static void test_compaction_by_threshold(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    put(&w, "k=a");
    put(&w, "k=b");
    w.t->policies.compaction_threshold = 1000000;
    for (int i = 0; i < 70; i++)
        rig_settle(&w.r);
    assert_int_equal(info(&w).ledger, -1);
    assert_non_null(ox_cursor_find(w.t->ml, "__compaction")); // nothing is trimmed before the first run
    w.t->policies.compaction_threshold = 10;
    for (int i = 0; i < 70; i++)
        rig_settle(&w.r);
    assert_true(info(&w).ledger > 0);
    assert_reads(&w, "k=b ");
    world_fini(&w);
}

static void fail_appends(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)entry;
    if (call == OX_SIM_CALL_APPEND && ledger > *(int64_t *)r->ctx)
        fault->err = OX_E_PLACE_FAILED;
}

static void test_compaction_that_fails_leaves_the_former_ledger(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    put(&w, "k=a");
    assert_int_equal(compact(&w), OX_OK);
    int64_t former = info(&w).ledger, newest = former + 1;
    put(&w, "k=b");
    w.r.ctx = &newest;
    w.r.on_place = fail_appends;
    assert_int_equal(compact(&w), OX_E_PLACE_FAILED);
    w.r.on_place = NULL;
    assert_int_equal(info(&w).ledger, former);
    assert_int_equal(info(&w).status, OX_COMPACTION_ERROR);
    assert_reads(&w, "k=a k=b ");
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1);
    assert_int_equal(compact(&w), OX_OK);
    assert_reads(&w, "k=b ");
    world_fini(&w);
}

static void sweep(struct world *w)
{
    struct ox_op op;
    rig_op(&w->r, &op);
    ox_ml_orphans_sweep(&w->r.factory, &op);
    assert_int_equal(rig_wait(&w->r, &op), OX_OK);
}

// fault: killed at each step of a compaction
static void crash_at(const char *point)
{
    struct world w;
    struct ox_op op;
    world_init(&w);
    put(&w, "k1=a");
    put(&w, "k2=b");
    assert_int_equal(compact(&w), OX_OK);
    put(&w, "k1=c");
    ox_sim_arm(w.r.node, point, 1, OX_SIM_CRASH_PROCESS);
    rig_op(&w.r, &op);
    assert_int_equal(ox_compaction_start(w.t, &op), OX_OK);
    (void)rig_wait(&w.r, &op);
    assert_false(ox_sim_node_alive(w.r.node));
    world_crash(&w);
    struct reader d;
    read_open(&w, &d, "r", OX_POS_EARLIEST, false);
    read_some(&w, &d, 100);
    const char *got = ox_str_get(&d.got);
    bool old = strcmp(got, "k1=a k2=b k1=c ") == 0, fresh = strcmp(got, "k2=b k1=c ") == 0;
    assert_true(old || fresh);
    read_close(&w, &d);
    sweep(&w);
    rig_settle(&w.r);
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1);
    assert_int_equal(compact(&w), OX_OK);
    assert_reads(&w, "k2=b k1=c ");
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1);
    world_fini(&w);
}

static void test_compaction_crash_at_every_arrow(void **state)
{
    (void)state;
    static const char *const points[] = {"compaction.after_create", "compaction.after_note", "compaction.after_close",
                                         "compaction.after_switch", "compaction.after_forget"};
    for (size_t i = 0; i < OX_COUNT(points); i++)
        crash_at(points[i]);
}

static void test_compacted_ledger_goes_with_its_topic(void **state)
{
    (void)state;
    struct world w;
    struct ox_topic_delete del = {0};
    world_init(&w);
    put(&w, "k1=a");
    assert_int_equal(compact(&w), OX_OK);
    sweep(&w);
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1); // a live one is no orphan
    rig_op(&w.r, &del.op);
    ox_topic_delete(&w.r.shard, &del, &w.t->name);
    assert_int_equal(rig_wait(&w.r, &del.op), OX_OK);
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 0);
    assert_int_equal(ledgers_of(&w, "managed-ledger"), 0);
    world_fini(&w);
}

static void test_compacted_ledger_follows_the_active_place(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct ox_sim_store *store = ox_sim_store_new(2);
    w.r.factory.settings.stamps = true;
    uint32_t other = ox_router_add(&w.r.router, ox_sim_place_new(w.r.loop, store, "other", &w.r.faults));
    put(&w, "k1=a");
    put_batch(&w, "k1=b k2=c", 0, false);
    assert_int_equal(compact(&w), OX_OK);
    put(&w, "k2=d");
    ox_router_activate(&w.r.router, other);
    ox_ml_follow(&w.r.factory);
    for (int i = 0; i < 70; i++)
        rig_settle(&w.r); // by itself, at the next look
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 0);
    assert_int_equal(info(&w).status, OX_COMPACTION_SUCCESS);
    assert_int_equal(info(&w).entries, 1);
    assert_reads(&w, "[k1=b,k2=c] k2=d ");
    struct ox_ml_walk walk = {0};
    size_t found = 0;
    ox_ml_walk_begin(&w.r.factory, &walk, true);
    do {
        rig_op(&w.r, &walk.op);
        ox_ml_walk_next(&walk);
        assert_int_equal(rig_wait(&w.r, &walk.op), OX_OK);
        for (size_t i = 0; i < walk.count; i++)
            if (walk.found[i].kind == OX_ML_KIND_COMPACTED && ++found)
                assert_string_equal(walk.found[i].place, "other");
    } while (walk.log);
    assert_int_equal(found, 1);
    ox_ml_walk_end(&walk);
    struct ox_op op;
    rig_op(&w.r, &op); // a topic that is not loaded is loaded for it, and goes again
    ox_topic_unload(&w.r.shard, &op, w.t->name.full);
    assert_int_equal(rig_wait(&w.r, &op), OX_OK);
    ox_topic_put(w.t);
    ox_router_activate(&w.r.router, 0);
    rig_op(&w.r, &op);
    w.r.factory.compacted(w.r.factory.compacted_ctx, &op, "public/default/persistent/t");
    assert_int_equal(rig_wait(&w.r, &op), OX_OK);
    rig_settle(&w.r);
    assert_int_equal(ledgers_of(&w, "compacted-ledger"), 1);
    assert_null(ox_topic_find(&w.r.shard, "persistent://public/default/t"));
    rig_op(&w.r, &op);
    w.r.factory.compacted(w.r.factory.compacted_ctx, &op, "public/default/persistent/none");
    assert_int_equal(rig_wait(&w.r, &op), OX_E_NOT_FOUND);
    w.t = rig_topic(&w.r, "t");
    assert_reads(&w, "[k1=b,k2=c] k2=d ");
    world_fini(&w);
    ox_sim_store_free(store);
}

// ---- bytes

static void test_compacted_entry_bytes_are_pulsars(void **state) // as a standalone 4.0.7 wrote them
{
    (void)state;
    static const uint8_t want[] = {0,    0,    0,    0x10, 0x08, 0xbb, 0x01, 0x10, 0x01, 0x18, 0xff, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0,    0,    0,    0x32};
    uint8_t head[COMPACTION_HEAD_BYTES_MAX];
    struct ox_pos pos = {0};
    struct ox_buf entry;
    assert_int_equal(compaction_head_put(head, (struct ox_pos){187, 1}, -1, 0x32), sizeof want);
    assert_memory_equal(head, want, sizeof want);
    uint8_t stored[sizeof want + 0x32] = {0};
    memcpy(stored, want, sizeof want);
    assert_int_equal(compaction_stored_parse(ox_buf_static(stored, sizeof stored), &pos, &entry), OX_OK);
    assert_true(pos.ledger == 187 && pos.entry == 1 && entry.len == 0x32);
    for (size_t n = 0; n < sizeof stored; n++)
        assert_int_equal(compaction_stored_parse(ox_buf_static(stored, n), &pos, &entry), OX_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compaction_leaves_the_last_message_of_each_key),
        cmocka_unit_test(test_compaction_a_second_run_builds_on_the_first),
        cmocka_unit_test(test_trap_p06_a_null_value_takes_only_its_own_key),
        cmocka_unit_test(test_compaction_can_keep_messages_without_a_key),
        cmocka_unit_test(test_compaction_of_compressed_and_encrypted_batches),
        cmocka_unit_test(test_compaction_chunks_stay_together),
        cmocka_unit_test(test_compaction_everything_gone),
        cmocka_unit_test(test_last_id_is_the_logs_for_those_who_do_not_read_compacted),
        cmocka_unit_test(test_readers_begin_before_what_the_log_still_holds),
        cmocka_unit_test(test_readers_in_a_ledger_that_is_replaced),
        cmocka_unit_test(test_readers_acknowledge_and_go_back),
        cmocka_unit_test(test_compaction_memory_is_bounded),
        cmocka_unit_test(test_compaction_one_at_a_time),
        cmocka_unit_test(test_compaction_ends_with_its_topic),
        cmocka_unit_test(test_compaction_by_threshold),
        cmocka_unit_test(test_compaction_that_fails_leaves_the_former_ledger),
        cmocka_unit_test(test_compaction_crash_at_every_arrow),
        cmocka_unit_test(test_compacted_ledger_goes_with_its_topic),
        cmocka_unit_test(test_compacted_ledger_follows_the_active_place),
        cmocka_unit_test(test_compacted_entry_bytes_are_pulsars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
