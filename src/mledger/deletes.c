// deletes.c - intents: written when a place can't be reached, done when it can.
#include "mledger/deletes.h"

#include <string.h>

#include "base/crc32c.h"
#include "mledger/named.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#define INTENT_TRIES 20
#define INTENT_OWNER "owner." // before the keys of custom metadata

bool ml_place_is_away(enum ox_err err)
{
    return err == OX_E_PLACE_CLOSED || err == OX_E_PLACE_CHANGED || err == OX_E_NO_PLACE;
}

// ---- text ------------------------------------------------------------------------------------------------------------

static void intent_line(struct ox_str *out, const char *prefix, const char *key, const char *value)
{
    ox_str_adds(out, prefix);
    ox_name_encode(out, key);
    ox_str_adds(out, "=");
    ox_name_encode(out, value);
    ox_str_adds(out, "\n");
}

static void intent_number(struct ox_str *out, const char *key, uint64_t value)
{
    ox_str_addf(out, "%s=%llu\n", key, (unsigned long long)value);
}

// Decodes one side of a line into a fresh string.
static enum ox_err intent_decode(const char *encoded, char **ret)
{
    struct ox_str text = {0};
    enum ox_err err = ox_name_decode(&text, encoded);
    *ret = ox_str_take(&text);
    return err;
}

static enum ox_err intent_take_line(struct ox_kv *ret, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return OX_E_CORRUPT;
    *equals = 0;
    OX_CLEANUP(ox_free_ptr)
    char *key = NULL, *value = NULL;
    enum ox_err err = intent_decode(line, &key);
    if (err == OX_OK)
        err = intent_decode(equals + 1, &value);
    if (err == OX_OK)
        ox_kv_set(ret, key, value);
    return err == OX_OK ? OX_OK : OX_E_CORRUPT;
}

static enum ox_err intent_lines(struct ox_kv *ret, struct ox_buf value)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_strndup((const char *)value.data, value.len);
    enum ox_err err = OX_OK;
    for (char *at = text, *end; *at && err == OX_OK; at = end) {
        end = strchr(at, '\n');
        if (!end)
            return OX_E_CORRUPT;
        *end++ = 0;
        err = intent_take_line(ret, at);
    }
    return err;
}

// What an intent says.
struct intent {
    int64_t id, physical;
    struct ox_kv owner;
};

static enum ox_err intent_parse(struct intent *ret, struct ox_buf value)
{
    struct ox_kv all = {0};
    enum ox_err err = intent_lines(&all, value);
    const char *id = ox_kv_find(&all, "ledger"), *physical = ox_kv_find(&all, "physical");
    if (err == OX_OK && (!id || !physical || ox_parse_i64(id, 0, INT64_MAX, &ret->id) != OX_OK ||
                         ox_parse_i64(physical, 0, INT64_MAX, &ret->physical) != OX_OK))
        err = OX_E_CORRUPT;
    for (size_t i = 0; i < all.count && err == OX_OK; i++)
        if (strncmp(all.pairs[i].key, INTENT_OWNER, strlen(INTENT_OWNER)) == 0)
            ox_kv_set(&ret->owner, all.pairs[i].key + strlen(INTENT_OWNER), all.pairs[i].value);
    if (err == OX_OK && !ox_kv_find(&ret->owner, "pulsar/managed-ledger"))
        err = OX_E_CORRUPT; // nothing is deleted without an owner
    ox_kv_fini(&all);
    return err;
}

static char *intent_folder(const char *place)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/oxbow/deletes/");
    ox_name_encode(&path, place);
    return ox_str_take(&path);
}

// ---- writing ---------------------------------------------------------------------------------------------------------

// The owner's part of an intent's text, and the node's path, which depends on that.
static char *intent_path(const char *place, int64_t physical, const struct ox_kv *owner, struct ox_str *ret_text)
{
    OX_CLEANUP(ox_free_ptr)
    char *folder = intent_folder(place);
    for (size_t k = 0; k < owner->count; k++)
        intent_line(ret_text, INTENT_OWNER, owner->pairs[k].key, owner->pairs[k].value);
    uint32_t checksum = ox_crc32c(0, ret_text->data, ret_text->len);
    return ox_asprintf("%s/%lld-%08x", folder, (long long)physical, (unsigned)checksum);
}

static void intent_put(struct ml_intent *i)
{
    ox_meta_put(i->factory->meta, &i->put, i->path, i->value, OX_META_ABSENT, 0);
}

static void intent_put_done(struct ox_op *op)
{
    struct ml_intent *i = CONTAINER_OF(op, struct ml_intent, put.op);
    enum ox_err err = op->err;
    if (err == OX_OK)
        ox_free(i->put.path);
    if (err == OX_E_UNKNOWN_OUTCOME && i->tries++ < INTENT_TRIES) {
        intent_put(i); // if it is there by now, that is what was wanted
        return;
    }
    if (err == OX_E_BAD_VERSION)
        err = OX_OK;
    if (err == OX_OK)
        OX_CRASHPOINT(i->factory->loop, "deletes.after_intent");
    ox_free(i->path);
    ox_buf_unref(&i->value);
    ox_op_finish(&i->op, err);
}

void ml_intent_write(struct ox_ml_factory *f, struct ml_intent *i, const char *place, int64_t id, int64_t physical,
                     const struct ox_kv *owner)
{
    struct ox_str text = {0};
    ox_op_begin(&i->op);
    i->path = intent_path(place, physical, owner, &text);
    intent_number(&text, "ledger", (uint64_t)id);
    intent_number(&text, "physical", (uint64_t)physical);
    intent_number(&text, "since", ox_wall_ms(f->loop));
    i->factory = f;
    i->tries = 0;
    i->value = ox_buf_copy(text.data, text.len);
    ox_str_fini(&text);
    ox_info(f->log, "mledger.deletes.kept", "place=%s ledger=%lld physical=%lld log=%s", place, (long long)id,
            (long long)physical, ox_kv_find(owner, "pulsar/managed-ledger"));
    ox_op_init(&i->put.op, f->loop, intent_put_done, "mledger.deletes.put");
    intent_put(i);
}

void ml_intent_forget(struct ox_ml_factory *f, struct ox_meta_del *del, const char *place, int64_t physical,
                      const struct ox_kv *owner)
{
    struct ox_str text = {0};
    OX_CLEANUP(ox_free_ptr)
    char *path = intent_path(place, physical, owner, &text);
    ox_meta_del(f->meta, del, path, OX_META_ANY);
    ox_str_fini(&text);
}

void ml_intent_get(struct ox_ml_factory *f, struct ox_meta_get *get, const char *place, int64_t physical,
                   const struct ox_kv *owner)
{
    struct ox_str text = {0};
    OX_CLEANUP(ox_free_ptr)
    char *path = intent_path(place, physical, owner, &text);
    ox_meta_get(f->meta, get, path);
    ox_str_fini(&text);
}

// ---- doing -----------------------------------------------------------------------------------------------------------

struct deletes_retry {
    struct ox_seq seq;
    struct ox_ml_factory *factory;
    struct ox_op *op;
    uint32_t place;
    char *folder;
    struct ox_meta_children children;
    size_t at;  // in children
    char *path; // of the intent being looked at
    struct intent intent;
    struct ml_claim claim; // on the log whose ledger it was: between the look at the node and the delete nobody makes it primary
    bool claimed;
    char *owner_path; // node that may still name the ledger
    struct ox_meta_get get;
    int64_t version; // of the intent's node
    struct ox_ledger_delete del;
    struct ox_meta_del del_node;
    enum ox_err first; // error on the way
};

static ox_step retry_listed(struct ox_seq *s);
static ox_step retry_intent(struct ox_seq *s);
static ox_step retry_read(struct ox_seq *s);
static ox_step retry_claimed(struct ox_seq *s);
static ox_step retry_owner_read(struct ox_seq *s);
static ox_step retry_deleted(struct ox_seq *s);
static ox_step retry_forgotten(struct ox_seq *s);

static struct deletes_retry *retry_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct deletes_retry, seq);
}

static void retry_clear(struct deletes_retry *d)
{
    if (d->claimed)
        ml_claim_release(&d->claim);
    d->claimed = false;
    ox_kv_fini(&d->intent.owner);
    ox_free(d->path);
    ox_free(d->owner_path);
    d->path = d->owner_path = NULL;
}

static void retry_done(struct ox_seq *s, enum ox_err err)
{
    struct deletes_retry *d = retry_of(s);
    struct ox_op *op = d->op;
    retry_clear(d);
    ox_meta_names_free(d->children.names, d->children.count);
    ox_free(d->folder);
    ox_free(d);
    ox_op_finish(op, err);
}

static ox_step retry_list(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    ox_seq_bind(s, &d->children.op, "mledger.deletes.list");
    ox_meta_children(d->factory->meta, &d->children, d->folder);
    return OX_WAIT(s, retry_listed);
}

void ox_ml_deletes_retry(struct ox_ml_factory *f, struct ox_op *op, uint32_t place)
{
    struct deletes_retry *d = ox_malloc(sizeof *d);
    ox_op_begin(op);
    d->factory = f;
    d->op = op;
    d->place = place;
    d->folder = intent_folder(ox_router_name(f->router, place));
    ox_seq_start(&d->seq, f->loop, "mledger.deletes", retry_list, retry_done);
}

static ox_step retry_listed(struct ox_seq *s)
{
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
    return OX_GOTO(s, retry_intent);
}

// On to the next one; without the place, or without the metadata store, there is no use in going on.
static ox_step retry_next(struct ox_seq *s, enum ox_err err)
{
    struct deletes_retry *d = retry_of(s);
    if (d->first == OX_OK)
        d->first = err;
    d->at++;
    bool end = ml_place_is_away(err) || err == OX_E_SHUTDOWN || err == OX_E_DISCONNECTED || err == OX_E_SESSION_EXPIRED;
    return end ? OX_FINISH(s, d->first) : OX_GOTO(s, retry_intent);
}

static ox_step retry_intent(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    retry_clear(d);
    if (d->at == d->children.count)
        return OX_FINISH(s, d->first);
    d->path = ox_asprintf("%s/%s", d->folder, d->children.names[d->at]);
    ox_seq_bind(s, &d->get.op, "mledger.deletes.get");
    ox_meta_get(d->factory->meta, &d->get, d->path);
    return OX_WAIT(s, retry_read);
}

// Whose ledger it was: that node is looked at first, since an intent may have been written for a record that was never changed.
static ox_step retry_read(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    if (s->err != OX_OK)
        return retry_next(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
    d->version = d->get.stat.version;
    enum ox_err err = intent_parse(&d->intent, d->get.value);
    ox_buf_unref(&d->get.value);
    if (err != OX_OK) {
        ox_error(d->factory->log, "mledger.deletes.corrupt", "path=%s hint=" OX_LOG_Q, d->path,
                 "not understood: look at the ledger by hand, then remove the node");
        return retry_next(s, err);
    }
    ox_seq_bind(s, &d->claim.op, "mledger.deletes.claim");
    ml_claim(d->factory, &d->claim, ox_kv_find(&d->intent.owner, "pulsar/managed-ledger"));
    return OX_WAIT(s, retry_claimed);
}

static ox_step retry_claimed(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    d->claimed = true;
    const char *cursor = ox_kv_find(&d->intent.owner, "pulsar/cursor");
    d->owner_path = ox_asprintf("/managed-ledgers/%s%s%s", ox_kv_find(&d->intent.owner, "pulsar/managed-ledger"),
                                cursor ? "/" : "", cursor ? cursor : "");
    ox_seq_bind(s, &d->get.op, "mledger.deletes.owner");
    ox_meta_get(d->factory->meta, &d->get, d->owner_path);
    return OX_WAIT(s, retry_owner_read);
}

static ox_step retry_forget(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    ox_seq_bind(s, &d->del_node.op, "mledger.deletes.forget");
    ox_meta_del(d->factory->meta, &d->del_node, d->path, d->version);
    return OX_WAIT(s, retry_forgotten);
}

// What the owner's node says about the ledger.
static enum ml_named retry_named(struct deletes_retry *d, enum ox_err err)
{
    if (err == OX_E_NOT_FOUND)
        return ML_NOT_NAMED;
    const char *place = ox_router_name(d->factory->router, d->place);
    bool cursor = ox_kv_find(&d->intent.owner, "pulsar/cursor") != NULL;
    enum ml_named named = ml_node_names(d->factory, d->get.value, cursor, place, d->intent.physical);
    ox_buf_unref(&d->get.value);
    return named;
}

// An intent for what is still in use is void: the deletion that it was written for did not come about. Whoever drops the ledger one day writes it anew. (Were
// it kept, it would delete what may come to lie there later.)
static ox_step retry_owner_read(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return retry_next(s, s->err);
    enum ml_named named = retry_named(d, s->err);
    if (named != ML_NOT_NAMED)
        ox_warn(d->factory->log, "mledger.deletes.named", "path=%s by=%s outcome=%s", d->path, d->owner_path,
                named == ML_NAMED ? "forgotten" : "unreadable");
    if (named != ML_NOT_NAMED)
        return named == ML_NAMED ? OX_GOTO(s, retry_forget) : retry_next(s, OX_E_CORRUPT);
    ox_seq_bind(s, &d->del.op, "mledger.deletes.ledger");
    struct ox_location where = {d->place, d->intent.id, d->intent.physical};
    ox_router_delete(d->factory->router, &d->del, where, &d->intent.owner);
    return OX_WAIT(s, retry_deleted);
}

// Deleted, not there, or a stranger's by now: there is nothing left of ours. The place is the right one: its identity was checked when it was opened.
static ox_step retry_deleted(struct ox_seq *s)
{
    struct deletes_retry *d = retry_of(s);
    if (s->err != OX_OK && s->err != OX_E_NO_LEDGER && s->err != OX_E_IDENTITY_MISMATCH) {
        ox_warn(d->factory->log, "mledger.deletes.failed", "path=%s error=%s", d->path, ox_err_name(s->err));
        return retry_next(s, s->err);
    }
    OX_CRASHPOINT(s->loop, "deletes.after_delete");
    ox_info(d->factory->log, "mledger.deletes.done", "path=%s outcome=%s", d->path, ox_err_name(s->err));
    return OX_GOTO(s, retry_forget);
}

static ox_step retry_forgotten(struct ox_seq *s)
{
    OX_CRASHPOINT(s->loop, "deletes.after_node");
    return retry_next(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
}

// ---- counting --------------------------------------------------------------------------------------------------------

static void deletes_counted(struct ox_op *op)
{
    struct ox_ml_deletes_count *c = CONTAINER_OF(op, struct ox_ml_deletes_count, children.op);
    c->count = c->trying + (op->err == OX_OK ? c->children.count : 0);
    if (op->err == OX_OK)
        ox_meta_names_free(c->children.names, c->children.count);
    ox_op_finish(&c->op, op->err == OX_E_NOT_FOUND ? OX_OK : op->err);
}

void ox_ml_deletes_count(struct ox_ml_factory *f, struct ox_ml_deletes_count *c)
{
    OX_CLEANUP(ox_free_ptr)
    char *folder = intent_folder(c->place);
    ox_op_begin(&c->op);
    c->trying = ml_discard_count(f, c->place);
    ox_op_init(&c->children.op, f->loop, deletes_counted, "mledger.deletes.count");
    ox_meta_children(f->meta, &c->children, folder);
}
