// topic_pattern.h - patterns of topic names as clients write them: regular expressions (PCRE2), with bounded work.
#ifndef BROKER_TOPIC_PATTERN_H
#define BROKER_TOPIC_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OX_TOPIC_PATTERN_BYTES_MAX 4096u // longer ones are refused

struct ox_topic_pattern;

// Compiles a pattern. It has to match whole names; a domain ("persistent://") in front is left out of pattern and names, as Pulsar does.
// Errors: INVALID (not a regular expression, or too long; a sentence about it in `why` of n bytes).
enum ox_err ox_topic_pattern_new(const char *text, struct ox_topic_pattern **ret, char *why, size_t n) OX_CHECKED;
// Frees a pattern; NULL is allowed.
void ox_topic_pattern_free(struct ox_topic_pattern *p);
// True if the pattern matches the whole full name. What would take too many steps does not match.
bool ox_topic_pattern_matches(struct ox_topic_pattern *p, const char *full_name);
// True if a name has taken too many steps so far: whether it matches is not known.
bool ox_topic_pattern_gave_up(const struct ox_topic_pattern *p);

#endif
