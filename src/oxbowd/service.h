// service.h - what the service manager is told: ready, reloading, stopping, and that the loop still turns.
#ifndef OXBOWD_SERVICE_H
#define OXBOWD_SERVICE_H

#include "base/str.h"
#include "io/posix/posix.h"

// Zeroed before service_start. Without a service manager nothing happens.
struct service {
    struct ox_loop *loop;            // private
    struct ox_posix_notify *manager; // private; NULL: there is none
    struct ox_timer watchdog;        // private
    uint64_t watchdog_ns;            // private: between two signs of life
    struct ox_str unsent;  // private: what the service manager had no room for; what is said later is stronger
    struct ox_timer again; // private: tells it that
    unsigned tries;        // private
};
// Looks for it and begins with signs of life if they are wanted: sent by the loop's timer, so a loop that is stuck sends none.
void service_start(struct service *s, struct ox_loop *loop);
// It serves (again); a sentence for `systemctl status`.
void service_ready(struct service *s, const char *status);
// Settings are being read again.
void service_reloading(struct service *s);
// It ends, within that time.
void service_stopping(struct service *s, uint64_t within_ms);
// No more signs of life; frees it.
void service_fini(struct service *s);

#endif
