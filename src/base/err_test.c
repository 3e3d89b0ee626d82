// err_test.c - the error list is complete and consistent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"

static void test_err_every_error_has_name_text_and_class(void **state)
{
    (void)state;
    for (int i = 0; i < OX_ERR_COUNT; i++) {
        assert_true(strlen(ox_err_name((enum ox_err)i)) > 0);
        assert_true(strlen(ox_err_text((enum ox_err)i)) > 0);
        assert_int_equal(ox_err_class((enum ox_err)i) == OX_CLASS_OK, i == OX_OK);
    }
    assert_string_equal(ox_err_name(OX_E_NOT_FOUND), "NOT_FOUND");
    assert_int_equal(ox_err_class(OX_E_FENCED), OX_CLASS_FENCED);
}

static void test_err_errno_values_keep_their_meaning(void **state)
{
    (void)state;
    assert_int_equal(ox_err_from_errno(0), OX_OK);
    assert_int_equal(ox_err_from_errno(ENOSPC), OX_E_NO_SPACE);
    assert_int_equal(ox_err_from_errno(ENOENT), OX_E_NOT_FOUND);
    assert_int_equal(ox_err_from_errno(EADDRINUSE), OX_E_ADDRESS_IN_USE);
    assert_int_equal(ox_err_from_errno(EIO), OX_E_IO);
    assert_int_equal(ox_err_from_errno(ELOOP), OX_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_every_error_has_name_text_and_class),
        cmocka_unit_test(test_err_errno_values_keep_their_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
