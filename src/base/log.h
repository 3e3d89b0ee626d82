// log.h - one line per event: time, level, event name, key=value pairs.
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ox_log_level { OX_LOG_DEBUG, OX_LOG_INFO, OX_LOG_WARN, OX_LOG_ERROR };

// The last lines of a log, those below its level too, so that a crash can show them: fixed memory that a signal handler can read. Zeroed memory is an empty ring.
#define OX_LOG_RING_LINES 128u
#define OX_LOG_RING_BYTES 320u
struct ox_log_ring {
    uint64_t count; // lines written so far; the oldest kept one is at count % OX_LOG_RING_LINES, once it has been full
    char lines[OX_LOG_RING_LINES][OX_LOG_RING_BYTES]; // each ends with its newline and a zero; long ones are cut
};

// Where lines go. Public members are set by the program that makes the log.
struct ox_log {
    enum ox_log_level level;                                  // lines below it are dropped
    void (*write)(void *ctx, const char *line, unsigned len); // gets whole lines with their newline
    uint64_t (*wall_ms)(void *ctx);                           // ms since 1970, for the line's time
    void *ctx;
    struct ox_log_ring *ring; // gets every line; NULL: none is kept
    bool priorities; // each line begins with syslog's priority, "<6>", as systemd's journal takes it (sd-daemon(3)); not in the ring
};

// For a value that may hold spaces but no quotes: `"reason=" OX_LOG_Q`.
#define OX_LOG_Q "\"%s\""

struct ox_str;
// Appends `text` in double quotes with quotes and backslashes escaped: for values that peers chose.
void ox_log_quote(struct ox_str *out, const char *text);

// Writes one line: event is a fixed name in dotted lower case, greppable to one place ("store.segment.sealed"); then key, printf format and arguments
// in one format string such as "ledger=%lld reason=%s". Values with spaces or quotes are the caller's to quote with OX_LOG_Q or ox_log_quote.
// Control bytes are written as \n or \xNN, so that a value can never begin a line of its own. An empty format is allowed.
void ox_log_line(struct ox_log *log, enum ox_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// True if lines of a level are written or kept; log may be NULL.
static inline bool ox_log_on(const struct ox_log *log, enum ox_log_level level)
{
    return log && (level >= log->level || log->ring);
}
#define ox_debug(log, event, ...) \
    ((void)(ox_log_on(log, OX_LOG_DEBUG) && (ox_log_line(log, OX_LOG_DEBUG, event, __VA_ARGS__), 1)))
#define ox_info(log, event, ...) \
    ((void)(ox_log_on(log, OX_LOG_INFO) && (ox_log_line(log, OX_LOG_INFO, event, __VA_ARGS__), 1)))
#define ox_warn(log, event, ...) \
    ((void)(ox_log_on(log, OX_LOG_WARN) && (ox_log_line(log, OX_LOG_WARN, event, __VA_ARGS__), 1)))
#define ox_error(log, event, ...) \
    ((void)(ox_log_on(log, OX_LOG_ERROR) && (ox_log_line(log, OX_LOG_ERROR, event, __VA_ARGS__), 1)))

#endif
