// outq_test.c - the queue gives back the very bytes it took, by any cuts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "io/outq.h"

static void test_outq_bytes_come_out_in_order_by_any_cuts(void **state)
{
    (void)state;
    struct ox_random r;
    ox_random_seed(&r, 3);
    struct ox_outq q = {0};
    uint8_t in = 0, out = 0;
    for (int round = 0; round < 500; round++) {
        uint8_t *data;
        struct ox_buf buf = ox_buf_new(ox_random_below(&r, 40), &data);
        for (size_t i = 0; i < buf.len; i++)
            data[i] = in++;
        ox_outq_add(&q, &buf, 1);
        ox_buf_unref(&buf);
        struct iovec iov[4];
        size_t seen = 0, parts = ox_outq_peek(&q, iov, 4), take = 0;
        for (size_t i = 0; i < parts; i++)
            seen += iov[i].iov_len;
        take = ox_random_below(&r, seen + 1);
        for (size_t i = 0, left = take; i < parts && left; i++) {
            size_t n = OX_MIN(left, iov[i].iov_len);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(((const uint8_t *)iov[i].iov_base)[k], out++);
            left -= n;
        }
        ox_outq_consume(&q, take);
    }
    assert_int_equal((uint8_t)(in - out), (uint8_t)q.bytes);
    ox_outq_fini(&q);
    assert_int_equal(q.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outq_bytes_come_out_in_order_by_any_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
