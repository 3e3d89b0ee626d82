// topic_round.c - visiting all topics, a few in a turn.
#include "broker/topic_round.h"

#include "broker/topic.h"

#define ROUND_TOPICS_A_TURN 128u
#define ROUND_PAUSE_NS OX_MS

static void round_end(struct topic_round *r)
{
    ox_timer_stop(&r->timer);
    if (ox_link_linked(&r->link))
        ox_list_remove(&r->shard->rounds, &r->link);
}

static void round_go(struct ox_timer *timer)
{
    struct topic_round *r = CONTAINER_OF(timer, struct topic_round, timer);
    for (unsigned n = 0; r->next && n < ROUND_TOPICS_A_TURN; n++) {
        struct ox_topic *t = CONTAINER_OF(r->next, struct ox_topic, by_name);
        r->next = ox_map_next(r->next);
        r->visit(r, t);
    }
    if (r->next) {
        ox_timer_start(timer, ROUND_PAUSE_NS);
        return;
    }
    round_end(r);
    if (r->over)
        r->over(r);
}

void topic_round_start(struct topic_round *r)
{
    topic_round_stop(r);
    r->next = ox_map_first(&r->shard->topics);
    ox_list_push_back(&r->shard->rounds, &r->link);
    ox_timer_init(&r->timer, r->shard->loop, round_go);
    ox_timer_start(&r->timer, 0);
}

void topic_round_stop(struct topic_round *r)
{
    if (ox_link_linked(&r->link))
        round_end(r);
}

void topic_rounds_pass(struct ox_shard *sh, const struct ox_topic *t)
{
    OX_LIST_EACH(&sh->rounds, link) {
        struct topic_round *r = CONTAINER_OF(link, struct topic_round, link);
        if (r->next == &t->by_name)
            r->next = ox_map_next(&t->by_name);
    }
}
