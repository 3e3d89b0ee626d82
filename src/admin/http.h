// http.h - the bytes of HTTP/1.x as a server sees them: heads of requests, chunked bodies, heads of answers. Pure functions. Source: RFC 9110, RFC 9112.
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kv.h"
#include "base/str.h"

enum http_status {
    HTTP_CONTINUE = 100,
    HTTP_OK = 200,
    HTTP_ACCEPTED = 202,
    HTTP_NO_CONTENT = 204,
    HTTP_TEMPORARY_REDIRECT = 307,
    HTTP_BAD_REQUEST = 400,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
    HTTP_NOT_ACCEPTABLE = 406,
    HTTP_REQUEST_TIMEOUT = 408,
    HTTP_CONFLICT = 409,
    HTTP_PRECONDITION_FAILED = 412,
    HTTP_CONTENT_TOO_LARGE = 413,
    HTTP_URI_TOO_LONG = 414,
    HTTP_UNSUPPORTED_MEDIA_TYPE = 415,
    HTTP_EXPECTATION_FAILED = 417,
    HTTP_UNPROCESSABLE_CONTENT = 422,
    HTTP_UPGRADE_REQUIRED = 426,
    HTTP_TOO_MANY_REQUESTS = 429,
    HTTP_HEADERS_TOO_LARGE = 431,
    HTTP_INTERNAL_SERVER_ERROR = 500,
    HTTP_NOT_IMPLEMENTED = 501,
    HTTP_SERVICE_UNAVAILABLE = 503,
    HTTP_GATEWAY_TIMEOUT = 504,
    HTTP_VERSION_NOT_SUPPORTED = 505,
};

// The words behind a status in an answer's first line.
const char *http_reason(unsigned status);

// A request's head, taken apart. The strings lie in the text that was parsed.
struct http_head {
    const char *method;
    const char *path;  // what a client sent, from its first slash to the query; "*" for the whole server
    const char *query; // behind the question mark, NULL without one
    int minor;         // of the version: 0 or 1
    bool has_host;
    bool has_length;
    bool chunked;
    bool keep_alive;       // the connection serves another request afterwards
    bool closes;           // private: "Connection: close" was said
    bool expects_continue; // the body comes when 100 has been answered
    uint64_t length;       // of the body, where it is known
    unsigned status;       // 0: a request that can be served; else what is answered to it, and the connection ends
    const char *why;       // the reason, static
};

// How long a head is: bytes up to and with its empty line; 0: it does not end in there. *scanned is kept between calls, 0 at first.
size_t http_head_end(const char *data, size_t len, size_t *scanned);
// Takes a head of http_head_end apart. The text is changed; it must be followed by a zero byte.
void http_head_parse(struct http_head *ret, char *text, size_t len);

// A parameter of a query as it was sent; *ret_len bytes, NULL if it is not there or has no value. Borrowed from the query.
const char *http_query_find(const char *query, const char *name, size_t *ret_len);

enum http_part {
    HTTP_PART_MORE,    // all of the bytes were used, the body goes on
    HTTP_PART_DONE,    // the body has ended
    HTTP_PART_BAD,     // that is no chunked body
    HTTP_PART_TOO_BIG, // it is longer than body_max
};
// A chunked body on its way. Zeroed memory stands before its first byte.
struct http_chunks {
    int state;       // private
    unsigned digits; // private: of the size
    uint64_t left;   // private: of the chunk
    size_t trailer;  // private: bytes behind the last chunk, or of an extension
};
// Takes len bytes of a chunked body and appends what they carry; *ret_used is how many belonged to it.
enum http_part http_chunks_take(struct http_chunks *c, const char *data, size_t len, size_t *ret_used,
                                struct ox_str *body, size_t body_max);

// An answer's head.
struct http_answer {
    unsigned status;
    const char *type; // of the content; NULL: none
    uint64_t length;  // of the content
    bool streamed;    // that is not known: the content comes in chunks, for HTTP/1.0 up to the end of the connection
    const struct ox_kv *headers;
    bool close; // the connection ends with it
    int minor;  // of the request
    uint64_t now_ms;
};
void http_answer_head(struct ox_str *out, const struct http_answer *a);

#endif
