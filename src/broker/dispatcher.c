// dispatcher.c - which body serves which kind of subscription.
#include "broker/dispatcher.h"

#include "broker/subscription_int.h"

struct ox_dispatcher *ox_dispatcher_new(struct ox_subscription *s, enum ox_sub_type type)
{
    return ox_dispatcher_single_new(s, type);
}
