// rate.c - rates over the last statistics interval.
#include "broker/rate.h"

void ox_rate_tick(struct ox_rate *r, double seconds)
{
    r->messages_per_s = (double)(r->messages - r->mark_messages) / seconds;
    r->bytes_per_s = (double)(r->bytes - r->mark_bytes) / seconds;
    r->entries_per_s = (double)(r->entries - r->mark_entries) / seconds;
    r->mark_messages = r->messages;
    r->mark_bytes = r->bytes;
    r->mark_entries = r->entries;
}

double ox_rate_mean_bytes(const struct ox_rate *r)
{
    return r->messages ? (double)r->bytes / (double)r->messages : 0;
}
