// sources.h - where settings come from when the program starts, and reading them again while it runs.
#ifndef OXBOWD_SOURCES_H
#define OXBOWD_SOURCES_H

#include "io/loop.h"
#include "oxbowd/live.h"

// File, environment and command line; borrowed for the program's life.
struct sources {
    const char *file; // NULL: none
    char *const *environment;
    const char *const *sets; // KEY=VALUE, in order
    int set_count;
    bool lenient; // as of struct ox_config_trouble
};
// Sets defaults, then what the sources say, the strongest last, and checks the whole. Looks at all of it, whatever is wrong. Errors: those of the file, INVALID; see `t`.
enum ox_err sources_read(const struct sources *s, struct ox_config *c, struct ox_config_trouble *t) OX_CHECKED;

// Reading them again. Zero it, set the public members.
struct reload {
    struct ox_loop *loop;           // public
    struct ox_log *log;             // public
    const struct sources *sources;  // public
    struct live *live;              // public: gets what was read, if all of it is good
    void (*over)(struct reload *r); // public: called after each; may clear `again`

    bool again; // read-only: asked for once more while one was under way
    // private
    struct ox_job job;
    struct ox_config config;
    struct ox_config_trouble trouble;
    enum ox_err err;
};
// Reads them on a helper thread, then changes what may change; what is wrong is logged, and nothing has changed then.
void reload_start(struct reload *r);
// True while one is under way.
bool reload_busy(const struct reload *r);

#endif
