// inspect.c - oxbowctl inspect: the metadata nodes and ledger entries of a stopped broker.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/seq.h"
#include "ledger/store/store.h"
#include "metastore/metastore.h"
#include "oxbowctl/ctl.h"

#define INSPECT_READ_BYTES (4u << 20)

struct inspect {
    struct ctl *ctl;
    struct ox_log log;
    struct ox_loop *loop;
    struct ox_seq seq;
    const char *dir, *prefix;
    int64_t ledger_id; // -1: metadata
    int status;
    char *url, *store_dir;
    // Metadata: paths still to be printed, the next one last.
    struct ox_meta *meta;
    struct ox_meta_get get;
    struct ox_meta_children children;
    char **paths;
    size_t path_count, path_cap;
    // Ledgers.
    struct ox_place *place;
    struct ox_ledger_open open;
    struct ox_ledger *ledger;
    struct ox_read read;
    struct ox_op op;
};

static struct inspect *inspect_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct inspect, seq);
}

static void inspect_push(struct inspect *i, char *give_path)
{
    if (i->path_count == i->path_cap) {
        i->path_cap = i->path_cap ? i->path_cap * 2 : 64;
        i->paths = ox_realloc(i->paths, i->path_cap, sizeof *i->paths);
    }
    i->paths[i->path_count++] = give_path;
}

static void inspect_print_hex(struct ox_str *line, struct ox_buf bytes)
{
    char *to = ox_str_reserve(line, 2 * bytes.len);
    for (size_t i = 0; i < bytes.len; i++) {
        to[2 * i] = "0123456789abcdef"[bytes.data[i] >> 4];
        to[2 * i + 1] = "0123456789abcdef"[bytes.data[i] & 15];
    }
    ox_str_grew(line, 2 * bytes.len);
    ox_str_adds(line, "\"}\n");
    fwrite(line->data, 1, line->len, stdout);
    ox_str_fini(line);
}

// The path is printed when it is the prefix or below it.
static bool inspect_is_below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);
    while (len && prefix[len - 1] == '/')
        len--;
    return strncmp(path, prefix, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

// A node above the prefix leads to it.
static bool inspect_leads(const char *path, const char *prefix)
{
    return inspect_is_below(path, prefix) || inspect_is_below(prefix, path);
}

static ox_step inspect_node(struct ox_seq *s);
static ox_step inspect_got_node(struct ox_seq *s);
static ox_step inspect_got_children(struct ox_seq *s);
static ox_step inspect_meta_closed(struct ox_seq *s);

static int inspect_open_failed(const char *what, enum ox_err err)
{
    if (err == OX_E_LOCKED)
        return ctl_fail("%s: a broker uses it: stop the broker first", what);
    if (err == OX_E_NOT_FOUND)
        return ctl_fail("%s: there is nothing here; DIR is the broker's data directory", what);
    return ctl_fail("%s: %s", what, ox_err_text(err));
}

static ox_step inspect_meta_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK) {
        i->status = inspect_open_failed(i->dir, s->err);
        return OX_FINISH(s, s->err);
    }
    inspect_push(i, ox_strdup("/"));
    return OX_GOTO(s, inspect_node);
}

static ox_step inspect_node(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (i->path_count == 0) {
        ox_seq_bind(s, &i->op, "inspect.close");
        ox_meta_close(i->meta, &i->op);
        return OX_WAIT(s, inspect_meta_closed);
    }
    ox_seq_bind(s, &i->get.op, "inspect.get");
    ox_meta_get(i->meta, &i->get, i->paths[i->path_count - 1]);
    return OX_WAIT(s, inspect_got_node);
}

static void inspect_print_node(struct inspect *i, const char *path)
{
    struct ox_str line = {0};
    ox_str_adds(&line, "{\"path\":");
    ctl_json_string(&line, path, strlen(path));
    ox_str_addf(&line, ",\"version\":%lld,\"hex\":\"", (long long)i->get.stat.version);
    inspect_print_hex(&line, i->get.value);
}

static ox_step inspect_got_node(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    const char *path = i->paths[i->path_count - 1];
    if (s->err != OX_OK) {
        i->status = ctl_fail("%s: %s", path, ox_err_text(s->err));
        ox_free(i->paths[--i->path_count]);
        return OX_GOTO(s, inspect_node);
    }
    if (path[1] && inspect_is_below(path, i->prefix))
        inspect_print_node(i, path);
    ox_buf_unref(&i->get.value);
    ox_seq_bind(s, &i->children.op, "inspect.children");
    ox_meta_children(i->meta, &i->children, path);
    return OX_WAIT(s, inspect_got_children);
}

static ox_step inspect_got_children(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = i->paths[--i->path_count];
    if (s->err != OX_OK) {
        i->status = ctl_fail("%s: %s", path, ox_err_text(s->err));
        return OX_GOTO(s, inspect_node);
    }
    for (size_t n = i->children.count; n-- > 0;) {
        char *child = ox_asprintf("%s/%s", path[1] ? path : "", i->children.names[n]);
        if (inspect_leads(child, i->prefix))
            inspect_push(i, child);
        else
            ox_free(child);
    }
    ox_meta_names_free(i->children.names, i->children.count);
    return OX_GOTO(s, inspect_node);
}

static ox_step inspect_meta_closed(struct ox_seq *s)
{
    return OX_FINISH(s, s->err);
}

static ox_step inspect_metadata(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    ox_seq_bind(s, &i->op, "inspect.open");
    ox_meta_open(i->loop, &i->op, i->url, &i->meta);
    return OX_WAIT(s, inspect_meta_opened);
}

// ---- ledgers

static ox_step inspect_store_listed(struct ox_seq *s);
static ox_step inspect_store_opened(struct ox_seq *s);
static ox_step inspect_ledger_opened(struct ox_seq *s);
static ox_step inspect_read(struct ox_seq *s);
static ox_step inspect_was_read(struct ox_seq *s);
static ox_step inspect_store_close(struct ox_seq *s);

static ox_step inspect_store(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct ox_dirlist *list = ox_malloc(sizeof *list);
    i->read.private_ = list;
    ox_seq_bind(s, &i->op, "inspect.list"); // opening makes what is missing: it must be there
    ox_fs_list(ox_posix_fs(i->loop), &i->op, i->store_dir, list);
    return OX_WAIT(s, inspect_store_listed);
}

static ox_step inspect_store_listed(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct ox_dirlist *list = i->read.private_;
    if (s->err == OX_OK)
        ox_dirlist_fini(list);
    ox_free(list);
    i->read.private_ = NULL;
    if (s->err != OX_OK) {
        i->status = inspect_open_failed(i->store_dir, s->err);
        return OX_FINISH(s, s->err);
    }
    struct ox_store_config config;
    ox_store_config_init(&config, i->store_dir);
    config.reserve_bytes = 0; // a full disk is no reason not to look
    ox_seq_bind(s, &i->op, "inspect.open");
    ox_store_open(i->loop, ox_posix_fs(i->loop), &i->op, &config, &i->place);
    return OX_WAIT(s, inspect_store_opened);
}

static ox_step inspect_store_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK) {
        i->status = inspect_open_failed(i->store_dir, s->err);
        return OX_FINISH(s, s->err);
    }
    ox_seq_bind(s, &i->open.op, "inspect.ledger");
    ox_ledger_open(i->place, &i->open, i->ledger_id, OX_OPEN_READ_ONLY, NULL);
    return OX_WAIT(s, inspect_ledger_opened);
}

static ox_step inspect_ledger_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK) {
        i->status = ctl_fail("ledger %lld: %s", (long long)i->ledger_id, ox_err_text(s->err));
        return OX_GOTO(s, inspect_store_close);
    }
    i->ledger = i->open.ledger;
    i->read.first = 0;
    return OX_GOTO(s, inspect_read);
}

static ox_step inspect_read(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (i->read.first > i->ledger->info.last_entry)
        return OX_GOTO(s, inspect_store_close);
    i->read.last = i->ledger->info.last_entry;
    i->read.bytes_max = INSPECT_READ_BYTES;
    ox_seq_bind(s, &i->read.op, "inspect.read");
    ox_ledger_read(i->ledger, &i->read);
    return OX_WAIT(s, inspect_was_read);
}

static void inspect_print_entry(struct inspect *i, int64_t entry, struct ox_buf bytes)
{
    struct ox_str line = {0};
    ox_str_addf(&line, "{\"ledger\":%lld,\"entry\":%lld,\"hex\":\"", (long long)i->ledger_id, (long long)entry);
    inspect_print_hex(&line, bytes);
}

static ox_step inspect_was_read(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK) { // one damaged entry: go on behind it
        i->status = ctl_fail("entry %lld:%lld: %s %s", (long long)i->ledger_id, (long long)i->read.first,
                             ox_err_text(s->err), s->err == OX_E_CORRUPT ? i->read.where : "");
        i->read.first++;
        return OX_GOTO(s, inspect_read);
    }
    for (size_t n = 0; n < i->read.count; n++)
        inspect_print_entry(i, i->read.first + (int64_t)n, i->read.entries[n]);
    i->read.first += (int64_t)i->read.count;
    ox_read_fini(&i->read);
    return OX_GOTO(s, inspect_read);
}

static ox_step inspect_store_close(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (i->ledger)
        ox_ledger_release(i->ledger);
    ox_seq_bind(s, &i->op, "inspect.close");
    ox_place_close(i->place, &i->op);
    return OX_WAIT(s, inspect_meta_closed);
}

static void inspect_done(struct ox_seq *s, enum ox_err err)
{
    struct inspect *i = inspect_of(s);
    if (err != OX_OK && i->status == CTL_DONE)
        i->status = ctl_fail("%s: %s", i->dir, ox_err_text(err));
    ox_posix_stop(i->loop);
}

static bool inspect_parse(struct inspect *i, struct ctl *ctl)
{
    i->prefix = "/";
    i->ledger_id = -1;
    const struct ctl_option options[] = {
        {"--path", CTL_TEXT, {.text = &i->prefix}},
        {"--ledger", CTL_NUMBER, {.number = &i->ledger_id}},
    };
    return ctl_parse(ctl, options, OX_COUNT(options), &i->dir, 1, 1);
}

int ctl_inspect(struct ctl *ctl)
{
    struct inspect i = {.ctl = ctl};
    if (!inspect_parse(&i, ctl))
        return CTL_USAGE;
    ox_posix_log_init(&i.log, OX_LOG_ERROR);
    i.log.level = (enum ox_log_level)(OX_LOG_ERROR + 1); // what fails is told below
    i.loop = ox_posix_loop_new(&i.log);
    i.url = ox_asprintf("lmdb:%s/metadata?readonly", i.dir);
    i.store_dir = ox_asprintf("%s/store", i.dir);
    ox_seq_start(&i.seq, i.loop, "inspect", i.ledger_id >= 0 ? inspect_store : inspect_metadata, inspect_done);
    ox_posix_run(i.loop);
    ox_posix_loop_free(i.loop);
    ox_free(i.url);
    ox_free(i.store_dir);
    ox_free(i.paths);
    return i.status;
}
