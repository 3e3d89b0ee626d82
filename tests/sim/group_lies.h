// group_lies.h - what a consumer says that is not true.
#ifndef TESTS_SIM_GROUP_LIES_H
#define TESTS_SIM_GROUP_LIES_H

#include "group.h"

// One lie at random: permits out of nowhere, acknowledgements of entries it never got or that never were, sets that are garbage, redelivery of what it does not hold.
void group_lie(struct load_member *x);

// For group_lies.c: the member has asked for messages again.
void member_asked(struct load_member *x);

#endif
