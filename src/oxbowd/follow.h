// follow.h - the running parts take changed settings, in one turn.
#ifndef OXBOWD_FOLLOW_H
#define OXBOWD_FOLLOW_H

#include "oxbowd/broker.h"

// Fills the settings of each part that is there anew from b->config and tells the parts that keep something derived from them. `before`: how it was.
void follow_settings(struct oxbowd *b, const struct ox_config *before);

#endif
