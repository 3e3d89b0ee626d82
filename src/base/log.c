// log.c - formats one log line and hands it to the log's writer.
#include "base/log.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

static void log_add_time(struct ox_str *line, uint64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    ox_str_addf(line, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                tm.tm_min, tm.tm_sec, (unsigned)(wall_ms % 1000));
}

static void log_add_escaped(struct ox_str *line, const char *text)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '\n')
            ox_str_adds(line, "\\n");
        else if (c < 0x20 || c == 0x7f)
            ox_str_addf(line, "\\x%02x", c);
        else
            ox_str_add(line, p, 1);
    }
}

void ox_log_quote(struct ox_str *out, const char *text)
{
    ox_str_add(out, "\"", 1);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            ox_str_add(out, "\\", 1);
        ox_str_add(out, p, 1);
    }
    ox_str_add(out, "\"", 1);
}

static void log_keep(struct ox_log_ring *ring, const char *line, size_t line_len)
{
    char *to = ring->lines[ring->count % OX_LOG_RING_LINES];
    size_t len = OX_MIN(line_len, (size_t)OX_LOG_RING_BYTES - 1);
    memcpy(to, line, len);
    to[len - 1] = '\n';
    to[len] = 0;
    ring->count++;
}

static void str_cleanup(struct ox_str *s)
{
    ox_str_fini(s);
}

void ox_log_line(struct ox_log *log, enum ox_log_level level, const char *event, const char *format, ...)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    static const char *const priorities[] = {"<7>", "<6>", "<4>", "<3>"};
    OX_CLEANUP(str_cleanup)
    struct ox_str line = {0}, pairs = {0};
    if (log->priorities)
        ox_str_adds(&line, priorities[level]);
    size_t begin = line.len;
    log_add_time(&line, log->wall_ms(log->ctx));
    ox_str_addf(&line, " %s %s", names[level], event);
    va_list args;
    va_start(args, format);
    ox_str_addv(&pairs, format, args);
    va_end(args);
    if (pairs.len) {
        ox_str_add(&line, " ", 1);
        log_add_escaped(&line, pairs.data);
    }
    ox_str_add(&line, "\n", 1);
    if (log->ring)
        log_keep(log->ring, line.data + begin, line.len - begin);
    if (level >= log->level)
        log->write(log->ctx, line.data, (unsigned)line.len);
}
