// dispatcher.c - which body serves which kind of subscription.
#include "broker/dispatcher.h"

#include "broker/limits.h"
#include "broker/nonpersistent.h"
#include "broker/subscription_int.h"

struct ox_dispatcher *ox_dispatcher_new(struct ox_subscription *s, enum ox_sub_type type)
{
    dispatch_limits_refresh(s);
    if (!s->topic->ml)
        return ox_dispatcher_nonpersistent_new(s, type);
    if (type == OX_SUB_SHARED || type == OX_SUB_KEY_SHARED)
        return ox_dispatcher_shared_new(s, type);
    return ox_dispatcher_single_new(s, type);
}
