// live.h - the settings while the broker runs: which are in force, where they come from, and that the parts follow when they change.
//
// Strength, rising: default, file, environment, --set (these four are "given"), then what was set over REST ("dynamic", kept in the metadata).
// Keys that are not live keep the value of the start; so parts may borrow their strings.
#ifndef OXBOWD_LIVE_H
#define OXBOWD_LIVE_H

#include "base/kv.h"
#include "base/log.h"
#include "oxbowd/config.h"

// Zero it, set the public members, then live_init.
struct live {
    struct ox_log *log;       // public
    struct ox_config *config; // public: in force; changed in place, live keys only
    // public: live keys of config have changed; `before` is how it was. NULL: nobody follows yet
    void (*changed)(struct live *l, const struct ox_config *before);

    struct ox_kv dynamic;   // read-only: names and values on record, as they were written
    struct ox_config given; // private: file, environment and command line
};

// What is in force counts as given.
void live_init(struct live *l);
// Frees it; the config stays the caller's.
void live_fini(struct live *l);
// The settings were read again. Errors: INVALID (they contradict each other; nothing has changed, and that is logged). A changed key that is not live is named in the log.
enum ox_err live_give(struct live *l, const struct ox_config *given) OX_CHECKED;
// What is on record has changed: `dynamic` is copied. A name that is none of a live key, or a value that is not allowed, is logged and has no effect.
void live_record(struct live *l, const struct ox_kv *dynamic);
// Whether a live key may be set to that. Errors: NOT_FOUND (no live key), INVALID; `why` says why.
enum ox_err live_check(const struct live *l, const char *name, const char *value, struct ox_str *why) OX_CHECKED;

#endif
