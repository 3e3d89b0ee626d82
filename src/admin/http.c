// http.c - heads of requests, chunked bodies and heads of answers as bytes.
#include "admin/http.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"

#define CHUNK_DIGITS_MAX 8
#define CHUNK_TRAILER_MAX 8192u

const char *http_reason(unsigned status)
{
    switch ((enum http_status)status) {
    case HTTP_CONTINUE: return "Continue";
    case HTTP_OK: return "OK";
    case HTTP_ACCEPTED: return "Accepted";
    case HTTP_NO_CONTENT: return "No Content";
    case HTTP_TEMPORARY_REDIRECT: return "Temporary Redirect";
    case HTTP_BAD_REQUEST: return "Bad Request";
    case HTTP_UNAUTHORIZED: return "Unauthorized";
    case HTTP_FORBIDDEN: return "Forbidden";
    case HTTP_NOT_FOUND: return "Not Found";
    case HTTP_METHOD_NOT_ALLOWED: return "Method Not Allowed";
    case HTTP_NOT_ACCEPTABLE: return "Not Acceptable";
    case HTTP_REQUEST_TIMEOUT: return "Request Timeout";
    case HTTP_CONFLICT: return "Conflict";
    case HTTP_PRECONDITION_FAILED: return "Precondition Failed";
    case HTTP_CONTENT_TOO_LARGE: return "Content Too Large";
    case HTTP_URI_TOO_LONG: return "URI Too Long";
    case HTTP_UNSUPPORTED_MEDIA_TYPE: return "Unsupported Media Type";
    case HTTP_EXPECTATION_FAILED: return "Expectation Failed";
    case HTTP_UNPROCESSABLE_CONTENT: return "Unprocessable Content";
    case HTTP_UPGRADE_REQUIRED: return "Upgrade Required";
    case HTTP_TOO_MANY_REQUESTS: return "Too Many Requests";
    case HTTP_HEADERS_TOO_LARGE: return "Request Header Fields Too Large";
    case HTTP_INTERNAL_SERVER_ERROR: return "Internal Server Error";
    case HTTP_NOT_IMPLEMENTED: return "Not Implemented";
    case HTTP_SERVICE_UNAVAILABLE: return "Service Unavailable";
    case HTTP_GATEWAY_TIMEOUT: return "Gateway Timeout";
    case HTTP_VERSION_NOT_SUPPORTED: return "HTTP Version Not Supported";
    }
    return "Unknown";
}

// ---- heads of requests

size_t http_head_end(const char *data, size_t len, size_t *scanned)
{
    size_t at = *scanned;
    while (at < len) {
        const char *feed = memchr(data + at, '\n', len - at);
        if (!feed)
            break;
        size_t next = (size_t)(feed - data) + 1;
        if (next < len && data[next] == '\n')
            return next + 1;
        if (next + 1 < len && data[next] == '\r' && data[next + 1] == '\n')
            return next + 2;
        if (next + 1 >= len) {
            *scanned = next - 1;
            return 0;
        }
        at = next;
    }
    *scanned = len;
    return 0;
}

static bool head_fail(struct http_head *h, unsigned status, const char *why)
{
    h->status = status;
    h->why = why;
    return false;
}

static bool is_token(const char *text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    const char *c = text;
    while ((*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z') || (*c && strchr(marks, *c)))
        c++;
    return c > text && !*c;
}

// The next line, ended by a zero byte; *text stands behind it. NULL: no more.
static char *head_line(char **text, const char *end)
{
    char *line = *text, *feed = memchr(line, '\n', (size_t)(end - line));
    if (!feed)
        return NULL;
    *text = feed + 1;
    *feed = 0;
    if (feed > line && feed[-1] == '\r')
        *--feed = 0;
    return strlen(line) == (size_t)(feed - line) ? line : NULL;
}

// "http://host/path" is what proxies are sent.
static char *target_path(char *target)
{
    if (strncasecmp(target, "http://", 7) != 0 && strncasecmp(target, "https://", 8) != 0)
        return target;
    char *host = strstr(target, "://") + 3, *path = host + strcspn(host, "/?");
    if (*path == '/')
        return path;
    *--path = '/'; // over the last letter of the host, which nobody asks for
    return path;
}

static bool head_target(struct http_head *h, char *target)
{
    for (const char *c = target; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return head_fail(h, HTTP_BAD_REQUEST, "the request's target holds a control character");
    }
    char *path = target_path(target), *query = strchr(path, '?'), *fragment = strchr(path, '#');
    if (*path != '/' && strcmp(path, "*") != 0)
        return head_fail(h, HTTP_BAD_REQUEST, "the request's target does not begin with a slash");
    if (fragment)
        *fragment = 0;
    if (query && (!fragment || query < fragment)) {
        *query = 0;
        h->query = query + 1;
    }
    h->path = path;
    return true;
}

static bool head_version(struct http_head *h, const char *version)
{
    if (strcmp(version, "HTTP/2.0") == 0)
        return head_fail(h, HTTP_UPGRADE_REQUIRED, "HTTP/2 is not spoken here, use HTTP/1.1");
    if (strncmp(version, "HTTP/1.", 7) != 0 || (version[7] != '0' && version[7] != '1') || version[8])
        return head_fail(h, HTTP_VERSION_NOT_SUPPORTED, "the request's version is neither HTTP/1.0 nor HTTP/1.1");
    h->minor = version[7] - '0';
    h->keep_alive = h->minor == 1;
    return true;
}

static bool head_first(struct http_head *h, char *line)
{
    char *target = strchr(line, ' ');
    if (!target)
        return head_fail(h, HTTP_BAD_REQUEST, "the first line is not of the form METHOD TARGET VERSION");
    *target++ = 0;
    if (!is_token(line))
        return head_fail(h, HTTP_BAD_REQUEST, "the method holds a character that is not allowed");
    char *version = strchr(target, ' ');
    if (!version)
        return head_fail(h, HTTP_VERSION_NOT_SUPPORTED, "HTTP/0.9 is not supported");
    *version++ = 0;
    h->method = line;
    return head_version(h, version) && head_target(h, target);
}

static bool header_length(struct http_head *h, const char *value)
{
    int64_t length;
    if (h->has_length)
        return head_fail(h, HTTP_BAD_REQUEST, "Content-Length is given more than once");
    if (*value < '0' || *value > '9' || ox_parse_i64(value, 0, INT64_MAX, &length) != OX_OK)
        return head_fail(h, HTTP_BAD_REQUEST, "Content-Length is no number that is allowed");
    h->has_length = true;
    h->length = (uint64_t)length;
    return true;
}

static bool header_encoding(struct http_head *h, const char *value)
{
    if (h->chunked || strcasecmp(value, "chunked") != 0)
        return head_fail(h, HTTP_BAD_REQUEST, "Transfer-Encoding is not chunked, which is the only one that is known");
    h->chunked = true;
    return true;
}

static void header_connection(struct http_head *h, const char *value)
{
    while (*value) {
        size_t len = strcspn(value, ", \t");
        h->closes |= len == 5 && strncasecmp(value, "close", 5) == 0;
        h->keep_alive |= len == 10 && strncasecmp(value, "keep-alive", 10) == 0;
        value += len + strspn(value + len, ", \t");
    }
    h->keep_alive &= !h->closes;
}

static bool header_expect(struct http_head *h, const char *value)
{
    if (strcasecmp(value, "100-continue") != 0)
        return head_fail(h, HTTP_EXPECTATION_FAILED, "Expect asks for something other than 100-continue");
    h->expects_continue = h->minor == 1;
    return true;
}

static bool header_host(struct http_head *h)
{
    if (h->has_host)
        return head_fail(h, HTTP_BAD_REQUEST, "Host is given more than once");
    h->has_host = true;
    return true;
}

static bool head_header(struct http_head *h, const char *name, const char *value)
{
    if (strcasecmp(name, "Content-Length") == 0)
        return header_length(h, value);
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        return header_encoding(h, value);
    if (strcasecmp(name, "Expect") == 0)
        return header_expect(h, value);
    if (strcasecmp(name, "Connection") == 0)
        header_connection(h, value);
    return strcasecmp(name, "Host") != 0 || header_host(h);
}

static bool head_header_line(struct http_head *h, char *line)
{
    if (*line == ' ' || *line == '\t')
        return head_fail(h, HTTP_BAD_REQUEST, "a header is folded over two lines");
    char *value = strchr(line, ':');
    if (!value)
        return head_fail(h, HTTP_BAD_REQUEST, "a header has no colon");
    *value++ = 0;
    if (!is_token(line))
        return head_fail(h, HTTP_BAD_REQUEST, "a header's name holds a character that is not allowed");
    value += strspn(value, " \t");
    size_t len = strlen(value);
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        value[--len] = 0;
    for (const char *c = value; *c; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return head_fail(h, HTTP_BAD_REQUEST, "a header holds a control character");
    }
    return head_header(h, line, value);
}

static bool head_sound(struct http_head *h)
{
    if (h->chunked && h->has_length)
        return head_fail(h, HTTP_BAD_REQUEST, "both Transfer-Encoding and Content-Length are given");
    if (h->chunked && h->minor == 0)
        return head_fail(h, HTTP_BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding");
    if (h->minor == 1 && !h->has_host)
        return head_fail(h, HTTP_BAD_REQUEST, "the header Host is missing");
    return true;
}

void http_head_parse(struct http_head *ret, char *text, size_t len)
{
    const char *end = text + len;
    *ret = (struct http_head){0};
    char *line = head_line(&text, end);
    bool good = line ? head_first(ret, line) : head_fail(ret, HTTP_BAD_REQUEST, "the first line holds a zero byte");
    while (good) {
        line = head_line(&text, end);
        if (!line) {
            head_fail(ret, HTTP_BAD_REQUEST, "a header holds a zero byte");
            return;
        }
        if (!*line)
            break;
        good = head_header_line(ret, line);
    }
    if (good)
        head_sound(ret);
}

const char *http_query_find(const char *query, const char *name, size_t *ret_len)
{
    size_t name_len = strlen(name);
    while (query && *query) {
        size_t len = strcspn(query, "&");
        if (len > name_len && query[name_len] == '=' && strncmp(query, name, name_len) == 0) {
            *ret_len = len - name_len - 1;
            return query + name_len + 1;
        }
        query += len;
        query += *query == '&';
    }
    return NULL;
}

// ---- chunked bodies: size [;extension] CRLF data CRLF ... 0 CRLF [trailers] CRLF. A line feed alone ends no line here: whoever forwards requests may read on.

enum {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_START,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
    CHUNK_END_LF
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 32);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool chunk_size_byte(struct http_chunks *c, char byte)
{
    int digit = hex_digit(byte);
    if (digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        return ++c->digits <= CHUNK_DIGITS_MAX;
    }
    c->state = byte == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    return c->digits > 0 && byte && strchr(" \t;\r", byte);
}

// A byte of an extension or a trailer, which nobody reads, up to the carriage return behind which `next` stands.
static bool chunk_text_byte(struct http_chunks *c, char byte, int next)
{
    if (byte == '\r')
        c->state = next;
    else if (((unsigned char)byte < ' ' && byte != '\t') || byte == 0x7f)
        return false;
    return ++c->trailer < CHUNK_TRAILER_MAX;
}

static bool chunk_size_over(struct http_chunks *c, char byte)
{
    c->state = c->left ? CHUNK_DATA : CHUNK_TRAILER_START;
    c->digits = 0;
    return byte == '\n';
}

static bool chunk_trailer_first(struct http_chunks *c, char byte)
{
    c->state = CHUNK_TRAILER;
    return chunk_text_byte(c, byte, CHUNK_END_LF);
}

// What stands where one byte alone is right.
static bool chunk_mark(struct http_chunks *c, char byte, char right, int next)
{
    c->state = next;
    return byte == right;
}

// One byte that is not data. False: it may not stand there.
static bool chunk_byte(struct http_chunks *c, char byte)
{
    switch (c->state) {
    case CHUNK_SIZE: return chunk_size_byte(c, byte);
    case CHUNK_EXTENSION: return chunk_text_byte(c, byte, CHUNK_SIZE_LF);
    case CHUNK_SIZE_LF: return chunk_size_over(c, byte);
    case CHUNK_DATA_CR: return chunk_mark(c, byte, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF: return chunk_mark(c, byte, '\n', CHUNK_SIZE);
    case CHUNK_TRAILER_START: return chunk_trailer_first(c, byte);
    case CHUNK_TRAILER: return chunk_text_byte(c, byte, CHUNK_TRAILER_LF);
    case CHUNK_TRAILER_LF: return chunk_mark(c, byte, '\n', CHUNK_TRAILER_START);
    default: return byte == '\n';
    }
}

enum http_part http_chunks_take(struct http_chunks *c, const char *data, size_t len, size_t *ret_used,
                                struct ox_str *body, size_t body_max)
{
    size_t at = 0;
    while (at < len) {
        if (c->state == CHUNK_DATA) {
            size_t n = (size_t)OX_MIN(c->left, (uint64_t)(len - at));
            if (body->len + n > body_max)
                return HTTP_PART_TOO_BIG;
            ox_str_add(body, data + at, n);
            at += n;
            c->left -= n;
            c->state = c->left ? CHUNK_DATA : CHUNK_DATA_CR;
            continue;
        }
        bool last = c->state == CHUNK_END_LF;
        if (!chunk_byte(c, data[at++]))
            return HTTP_PART_BAD;
        if (c->left > body_max)
            return HTTP_PART_TOO_BIG;
        if (last) {
            *ret_used = at;
            return HTTP_PART_DONE;
        }
    }
    *ret_used = at;
    return HTTP_PART_MORE;
}

// ---- heads of answers

static void answer_date(struct ox_str *out, uint64_t now_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    ox_str_addf(out, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
                tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

// Its value may be what a client once sent; a line's end in it would begin another header.
static bool header_is_plain(const struct ox_kv_pair *header)
{
    return !strpbrk(header->key, "\r\n") && !strpbrk(header->value, "\r\n");
}

void http_answer_head(struct ox_str *out, const struct http_answer *a)
{
    ox_str_addf(out, "HTTP/1.1 %u %s\r\n", a->status, http_reason(a->status));
    answer_date(out, a->now_ms);
    if (a->type)
        ox_str_addf(out, "Content-Type: %s\r\n", a->type);
    for (size_t i = 0; a->headers && i < a->headers->count; i++) {
        if (header_is_plain(&a->headers->pairs[i]))
            ox_str_addf(out, "%s: %s\r\n", a->headers->pairs[i].key, a->headers->pairs[i].value);
    }
    if (a->streamed && a->minor > 0)
        ox_str_adds(out, "Transfer-Encoding: chunked\r\n");
    else if (!a->streamed && a->status != HTTP_NO_CONTENT)
        ox_str_addf(out, "Content-Length: %llu\r\n", (unsigned long long)a->length);
    if (a->close)
        ox_str_adds(out, "Connection: close\r\n");
    else if (a->minor == 0)
        ox_str_adds(out, "Connection: keep-alive\r\n");
    ox_str_adds(out, "\r\n");
}
