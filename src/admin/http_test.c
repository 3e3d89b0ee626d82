// http_test.c - heads of requests, chunked bodies and heads of answers, byte by byte.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/http.h"
#include "base/mem.h"

static struct http_head parse(char *text, size_t len)
{
    struct http_head head;
    size_t scanned = 0;
    assert_int_equal(http_head_end(text, len, &scanned), len);
    http_head_parse(&head, text, len);
    return head;
}

#define PARSE(literal)     \
    char text[] = literal; \
    struct http_head head = parse(text, sizeof text - 1)

static void expect_status(const char *request, unsigned status)
{
    char text[512];
    size_t len = strlen(request);
    memcpy(text, request, len + 1);
    struct http_head head = parse(text, len);
    if (head.status != status)
        fail_msg("%s: %u instead of %u (%s)", request, head.status, status, head.why ? head.why : "");
    assert_true((head.status == 0) == (head.why == NULL));
}

static void test_head_is_taken_apart(void **state)
{
    (void)state;
    PARSE("PUT /a/b%2Fc?x=1&y=a%20b#z HTTP/1.1\r\nHost: h\r\nContent-Length: 12 \r\nExpect: 100-Continue\r\n\r\n");
    assert_int_equal(head.status, 0);
    assert_string_equal(head.method, "PUT");
    assert_string_equal(head.path, "/a/b%2Fc");
    assert_string_equal(head.query, "x=1&y=a%20b");
    assert_true(head.length == 12 && head.has_length && head.expects_continue && head.keep_alive && !head.chunked);
}

static void test_head_end_is_found_however_it_comes(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\nHost: h\r\n\r\nrest\n\n";
    size_t scanned = 0, end = 0, sent = 0;
    while (!end && sent < sizeof text - 1)
        end = http_head_end(text, ++sent, &scanned);
    assert_int_equal(end, strlen("GET / HTTP/1.1\nHost: h\r\n\r\n"));
    assert_int_equal(sent, end);
    scanned = 0;
    assert_int_equal(http_head_end("GET / HTTP/1.1\n\nx", 17, &scanned), 16);
    scanned = 0;
    assert_int_equal(http_head_end("GET / HTTP/1.1\r\nA: b\r\n", 22, &scanned), 0);
}

static void test_target_of_a_proxy_is_a_path(void **state)
{
    (void)state;
    PARSE("GET http://host:80/a?b=c HTTP/1.0\r\n\r\n");
    assert_string_equal(head.path, "/a");
    assert_string_equal(head.query, "b=c");
    assert_false(head.keep_alive);
    char bare[] = "GET http://host HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_string_equal(parse(bare, sizeof bare - 1).path, "/");
}

static void test_connection_header_decides(void **state)
{
    (void)state;
    PARSE("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    assert_true(head.keep_alive);
    char close[] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, close\r\n\r\n";
    assert_false(parse(close, sizeof close - 1).keep_alive);
    char both[] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n";
    assert_false(parse(both, sizeof both - 1).keep_alive);
}

static void test_bad_heads_get_the_status_that_pulsar_gives(void **state)
{
    (void)state;
    expect_status("GET /\r\n\r\n", 505);
    expect_status("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505);
    expect_status("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 426);
    expect_status("GET / HTTP/1.1\r\n\r\n", 400);
    expect_status("GET\r\n\r\n", 400);
    expect_status("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    expect_status("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    expect_status("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\r\nXa\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nExpect: beer\r\n\r\n", 417);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    expect_status("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400);
    expect_status("PUT / HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n", 0);
    expect_status("GET / HTTP/1.1\nHost: a\n\n", 0);
}

static void test_zero_bytes_are_refused(void **state)
{
    (void)state;
    PARSE("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n");
    assert_int_equal(head.status, 400);
    char first[] = "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(parse(first, sizeof first - 1).status, 400);
}

static void test_query_is_searched_by_whole_names(void **state)
{
    (void)state;
    size_t len;
    const char *query = "forced=1&force=&a=b=c&flag&z=%41";
    assert_string_equal(http_query_find(query, "force", &len), "&a=b=c&flag&z=%41");
    assert_int_equal(len, 0);
    assert_memory_equal(http_query_find(query, "a", &len), "b=c", 3);
    assert_int_equal(len, 3);
    assert_null(http_query_find(query, "flag", &len));
    assert_null(http_query_find(query, "forc", &len));
    assert_null(http_query_find(NULL, "a", &len));
    assert_string_equal(http_query_find(query, "z", &len), "%41");
}

// In pieces of `step` bytes.
static enum http_part chunks(const char *text, size_t step, size_t max, struct ox_str *body, size_t *ret_used)
{
    struct http_chunks c = {0};
    size_t len = strlen(text), used;
    *ret_used = 0;
    for (size_t at = 0; at < len; at += step) {
        enum http_part part = http_chunks_take(&c, text + at, OX_MIN(step, len - at), &used, body, max);
        if (part != HTTP_PART_MORE && part != HTTP_PART_DONE)
            return part;
        *ret_used += used;
        if (part == HTTP_PART_DONE)
            return part;
    }
    return HTTP_PART_MORE;
}

static void test_chunks_in_pieces_of_any_size(void **state)
{
    (void)state;
    static const char text[] = "4;a=\"b\"\r\nWiki\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET";
    for (size_t step = 1; step < sizeof text; step++) {
        struct ox_str body = {0};
        size_t used;
        assert_int_equal(chunks(text, step, 100, &body, &used), HTTP_PART_DONE);
        assert_int_equal(used, sizeof text - 1 - 3);
        assert_string_equal(ox_str_get(&body), "Wiki0123456789");
        ox_str_fini(&body);
    }
}

static void test_chunks_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"zz\r\n",        "\r\n",        "3\r\nabcd\r\n", "-1\r\n",
                                      "000000001\r\n", "3\r\nabc\rx", "0\r\n\rx",      "3\nabc",
                                      "3;a\nabc",      "3\rx",        "3;a\rb\r\nabc", "3;\x01\r\n",
                                      "3\r\nabc\n",    "0\r\n\n",     "0\r\nX: y\n",   "0\r\nX: y\rz"};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        struct ox_str body = {0};
        size_t used;
        assert_int_equal(chunks(bad[i], 1, 1000, &body, &used), HTTP_PART_BAD);
        ox_str_fini(&body);
    }
}

static void test_chunks_are_bounded(void **state)
{
    (void)state;
    struct ox_str body = {0};
    size_t used;
    assert_int_equal(chunks("5\r\nabcde\r\n5\r\nabcde\r\n0\r\n\r\n", 3, 9, &body, &used), HTTP_PART_TOO_BIG);
    assert_true(body.len <= 9);
    ox_str_truncate(&body, 0);
    assert_int_equal(chunks("ffffff\r\n", 3, 9, &body, &used), HTTP_PART_TOO_BIG);
    ox_str_fini(&body);
}

static void test_answer_head(void **state)
{
    (void)state;
    struct ox_str text = {0};
    struct ox_kv headers = {0};
    ox_kv_set(&headers, "X-A", "b");
    ox_kv_set(&headers, "X-B", "c\r\nX-C: d");
    http_answer_head(
        &text,
        &(struct http_answer){
            .status = 200, .type = "text/plain", .length = 3, .headers = &headers, .minor = 1, .now_ms = 784111777000});
    assert_string_equal(ox_str_get(&text),
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
                        "X-A: b\r\nContent-Length: 3\r\n\r\n");
    ox_str_truncate(&text, 0);
    http_answer_head(&text, &(struct http_answer){.status = 204, .close = true, .now_ms = 784111777000});
    assert_string_equal(ox_str_get(&text),
                        "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n");
    ox_str_truncate(&text, 0);
    http_answer_head(&text, &(struct http_answer){.status = 200, .streamed = true, .minor = 1, .now_ms = 784111777000});
    assert_string_equal(ox_str_get(&text),
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n\r\n");
    ox_str_truncate(&text, 0);
    http_answer_head(&text, &(struct http_answer){.status = 200, .streamed = true, .close = true, .now_ms = 784111777000});
    assert_string_equal(ox_str_get(&text),
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n");
    ox_str_fini(&text);
    ox_kv_fini(&headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_is_taken_apart),
        cmocka_unit_test(test_head_end_is_found_however_it_comes),
        cmocka_unit_test(test_target_of_a_proxy_is_a_path),
        cmocka_unit_test(test_connection_header_decides),
        cmocka_unit_test(test_bad_heads_get_the_status_that_pulsar_gives),
        cmocka_unit_test(test_zero_bytes_are_refused),
        cmocka_unit_test(test_query_is_searched_by_whole_names),
        cmocka_unit_test(test_chunks_in_pieces_of_any_size),
        cmocka_unit_test(test_chunks_that_are_none),
        cmocka_unit_test(test_chunks_are_bounded),
        cmocka_unit_test(test_answer_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
