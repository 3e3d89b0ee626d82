// follow.c - the running parts take changed settings: each one's struct is filled anew, as at the start, and what only the start knows is kept.
#include "oxbowd/follow.h"

#include "oxbowd/settings.h"

static void follow_places(struct oxbowd *b)
{
    struct ox_store_config config;
    ox_store_config_init(&config, b->data_dir);
    settings_store(b->config, &config);
    for (uint32_t i = 0; i < b->router.count; i++) {
        struct ox_place *place = ox_router_place(&b->router, i);
        if (place)
            ox_store_settings_changed(place, &config);
    }
}

static void follow_storage(struct oxbowd *b)
{
    struct ox_storage_config config;
    settings_storage(b->config, &config);
    ox_storage_settings_changed(b->storage, &config);
}

static void follow_mledgers(struct oxbowd *b)
{
    struct ox_ml_settings *s = &b->mledgers.settings, before = *s;
    settings_mledger(b->config, s);
    s->stamps = before.stamps;
    s->unstamped_max = before.unstamped_max;
    ox_ml_factory_resize(&b->mledgers, settings_cache_bytes(b->config));
}

static void follow_shard(struct oxbowd *b)
{
    struct ox_broker_config *c = &b->shard.config, before = *c;
    settings_broker(b->config, c);
    c->service_url = before.service_url;
    c->web_url = before.web_url;
    c->metadata_url = before.metadata_url;
    ox_shard_settings_changed(&b->shard, &before);
}

static void follow_pulsar(struct oxbowd *b)
{
    const char *advertised = b->pulsar.config.advertised;
    settings_pulsar(b->config, &b->pulsar.config);
    b->pulsar.config.advertised = advertised;
}

void follow_settings(struct oxbowd *b, const struct ox_config *before)
{
    if (b->config->logLevel != before->logLevel)
        b->log->level = (enum ox_log_level)b->config->logLevel;
    if (b->router_made)
        follow_places(b);
    if (b->storage)
        follow_storage(b);
    if (b->mledgers_made)
        follow_mledgers(b);
    if (b->shard_made) // after the logs: retention is theirs
        follow_shard(b);
    if (b->pulsar_made)
        follow_pulsar(b);
}
