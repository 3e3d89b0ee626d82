// sources.c - settings from file, environment and command line, at the start and again.
#include "oxbowd/sources.h"

#include <string.h>

#include "base/mem.h"
#include "oxbowd/settings.h"

static void sources_note(enum ox_err *err, enum ox_err next)
{
    if (*err == OX_OK)
        *err = next;
}

static enum ox_err sources_set(struct ox_config *c, const char *pair, struct ox_config_trouble *t)
{
    struct ox_str why = {0};
    enum ox_err err = ox_config_set_pair(c, pair, &why);
    if (err != OX_OK)
        ox_config_complain(&t->errors, "%s", ox_str_get(&why));
    ox_str_fini(&why);
    return err;
}

static enum ox_err sources_check(const struct ox_config *c, struct ox_config_trouble *t)
{
    struct ox_str why = {0};
    enum ox_err err = settings_check(c, &why);
    if (err != OX_OK)
        ox_config_complain(&t->errors, "%s", ox_str_get(&why));
    ox_str_fini(&why);
    return err;
}

enum ox_err sources_read(const struct sources *s, struct ox_config *c, struct ox_config_trouble *t)
{
    enum ox_err err = OX_OK;
    t->lenient = s->lenient;
    if (s->file)
        sources_note(&err, ox_config_load(c, s->file, t));
    sources_note(&err, ox_config_environment(c, s->environment, t));
    for (int i = 0; i < s->set_count; i++)
        sources_note(&err, sources_set(c, s->sets[i], t));
    sources_note(&err, sources_check(c, t));
    return err;
}

// ---- again

static void reload_read(struct ox_job *job)
{
    struct reload *r = CONTAINER_OF(job, struct reload, job);
    r->err = sources_read(r->sources, &r->config, &r->trouble);
}

// Each line of what is wrong is a line of the log.
static void reload_log_errors(struct reload *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *lines = ox_strdup(ox_str_get(&r->trouble.errors));
    for (char *line = lines, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        struct ox_str quoted = {0};
        ox_log_quote(&quoted, line);
        ox_error(r->log, "settings.reload.bad", "why=%s hint=\"nothing has changed\"", ox_str_get(&quoted));
        ox_str_fini(&quoted);
    }
}

static void reload_done(struct ox_op *op)
{
    struct reload *r = CONTAINER_OF(op, struct reload, job.op);
    if (r->err != OX_OK)
        reload_log_errors(r);
    else if (op->err == OX_OK && live_give(r->live, &r->config) == OX_OK)
        ox_info(r->log, "settings.reloaded", "file=" OX_LOG_Q, r->sources->file ? r->sources->file : "");
    ox_config_fini(&r->config);
    ox_config_trouble_fini(&r->trouble);
    r->over(r);
    if (r->again)
        reload_start(r);
}

bool reload_busy(const struct reload *r)
{
    return ox_op_pending(&r->job.op);
}

void reload_start(struct reload *r)
{
    r->again = reload_busy(r);
    if (r->again)
        return;
    ox_config_init(&r->config);
    r->trouble = (struct ox_config_trouble){0};
    r->job.run = reload_read;
    r->job.lane = OX_LANE_POOL;
    ox_op_init(&r->job.op, r->loop, reload_done, "settings.reload");
    ox_job_submit(r->loop, &r->job);
}
