// live.c - settings in force: given ones, those on record above them, and what has changed.
#include "oxbowd/live.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "oxbowd/settings.h"

void live_init(struct live *l)
{
    ox_config_init(&l->given);
    ox_config_copy(&l->given, l->config);
}

void live_fini(struct live *l)
{
    ox_config_fini(&l->given);
    ox_kv_fini(&l->dynamic);
}

// A value that was set over REST. As in Pulsar a switch is off with every word but "true".
static enum ox_err live_set(struct ox_config *c, const struct ox_config_key *key, const char *value, struct ox_str *why)
{
    if (key->type == OX_CONFIG_BOOL)
        value = strcasecmp(value, "true") == 0 ? "true" : "false";
    return ox_config_set(c, key->name, value, why);
}

static const struct ox_config_key *live_key(const char *name)
{
    const struct ox_config_key *key = ox_config_find(name);
    return key && key->live ? key : NULL;
}

// Sets one key, if that is allowed beside the others.
static enum ox_err live_try(struct ox_config *c, const struct ox_config_key *key, const char *value, struct ox_str *why)
{
    struct ox_config next;
    ox_config_init(&next);
    ox_config_copy(&next, c);
    enum ox_err err = live_set(&next, key, value, why);
    if (err == OX_OK)
        err = settings_check(&next, why);
    if (err == OX_OK)
        ox_config_take(c, &next, key);
    ox_config_fini(&next);
    return err;
}

// One that is not allowed, say since the segments are smaller now, leaves the others on record in force.
static void live_lay(struct live *l, struct ox_config *next, const struct ox_kv *dynamic)
{
    for (size_t i = 0; i < dynamic->count; i++) {
        const struct ox_kv_pair *p = &dynamic->pairs[i];
        const struct ox_config_key *key = live_key(p->key);
        struct ox_str why = {0}, quoted = {0};
        if (!key)
            ox_str_addf(&why, "%s is no key that can be changed here", p->key);
        if (!key || live_try(next, key, p->value, &why) != OX_OK) {
            ox_log_quote(&quoted, ox_str_get(&why));
            ox_warn(l->log, "settings.record.ignored", "why=%s", ox_str_get(&quoted));
        }
        ox_str_fini(&why);
        ox_str_fini(&quoted);
    }
}

// What would be in force without the record: keys that are not live as they are.
static void live_next(struct live *l, struct ox_config *next, const struct ox_config *given)
{
    ox_config_init(next);
    ox_config_copy(next, l->config);
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (ox_config_keys[i].live)
            ox_config_take(next, given, &ox_config_keys[i]);
}

static void live_log_change(struct live *l, const struct ox_config *next, const struct ox_config_key *key)
{
    struct ox_str from = {0}, to = {0};
    ox_config_text(l->config, key, &from);
    ox_config_text(next, key, &to);
    ox_info(l->log, "settings.changed", "key=%s from=" OX_LOG_Q " to=" OX_LOG_Q, key->name, ox_str_get(&from),
            ox_str_get(&to));
    ox_str_fini(&from);
    ox_str_fini(&to);
}

static void live_take(struct live *l, const struct ox_config *next)
{
    struct ox_config before;
    bool any = false;
    ox_config_init(&before);
    ox_config_copy(&before, l->config);
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        const struct ox_config_key *key = &ox_config_keys[i];
        if (ox_config_same(l->config, next, key))
            continue;
        live_log_change(l, next, key);
        ox_config_take(l->config, next, key);
        any = true;
    }
    if (any && l->changed)
        l->changed(l, &before);
    ox_config_fini(&before);
}

static enum ox_err live_go(struct live *l, const struct ox_config *given, const struct ox_kv *dynamic)
{
    struct ox_config next;
    struct ox_str why = {0}, quoted = {0};
    live_next(l, &next, given);
    enum ox_err err = settings_check(&next, &why);
    if (err == OX_OK) {
        live_lay(l, &next, dynamic);
        live_take(l, &next);
    } else {
        ox_log_quote(&quoted, ox_str_get(&why));
        ox_error(l->log, "settings.contradiction", "why=%s hint=\"nothing has changed\"", ox_str_get(&quoted));
    }
    ox_str_fini(&quoted);
    ox_str_fini(&why);
    ox_config_fini(&next);
    return err;
}

// The start's value against the one that is given now.
static void live_log_restarts(struct live *l, const struct ox_config *given)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        const struct ox_config_key *key = &ox_config_keys[i];
        if (key->live || ox_config_same(l->config, given, key))
            continue;
        struct ox_str from = {0}, to = {0};
        ox_config_text(l->config, key, &from);
        ox_config_text(given, key, &to);
        ox_warn(l->log, "settings.needs_restart", "key=%s in_force=" OX_LOG_Q " given=" OX_LOG_Q, key->name,
                ox_str_get(&from), ox_str_get(&to));
        ox_str_fini(&from);
        ox_str_fini(&to);
    }
}

enum ox_err live_give(struct live *l, const struct ox_config *given)
{
    enum ox_err err = live_go(l, given, &l->dynamic);
    if (err != OX_OK)
        return err;
    ox_config_copy(&l->given, given);
    live_log_restarts(l, given);
    return OX_OK;
}

void live_record(struct live *l, const struct ox_kv *dynamic)
{
    (void)!live_go(l, &l->given, dynamic); // a contradiction is logged
    ox_kv_copy(&l->dynamic, dynamic);
}

enum ox_err live_check(const struct live *l, const char *name, const char *value, struct ox_str *why)
{
    const struct ox_config_key *key = live_key(name);
    if (!key) {
        ox_str_addf(why, ox_config_find(name) ? "%s changes with a restart only" : "there is no key %s", name);
        return OX_E_NOT_FOUND;
    }
    struct ox_config next;
    ox_config_init(&next);
    ox_config_copy(&next, l->config);
    enum ox_err err = live_try(&next, key, value, why);
    ox_config_fini(&next);
    return err;
}
