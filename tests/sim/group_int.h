// group_int.h - between group.c, group_check.c and group_lies.c.
#ifndef TESTS_SIM_GROUP_INT_H
#define TESTS_SIM_GROUP_INT_H

#include "group.h"

struct world *group_world(const struct load_group *g);
// What the group knows of a message.
struct group_message *group_message_of(struct load_group *g, const struct load_message *m);
// Checks a message that a member gets, before it is noted.
void member_check(struct load_member *x, struct load_message *m, const struct ox_received *r);
// One lie at random: permits out of nowhere, acknowledgements of entries it never got or that never were, sets that are garbage,
// redelivery of what it does not hold.
void group_lie(struct load_member *x);
// The member has asked for messages again.
void member_asked(struct load_member *x);

#endif
