// metrics_test.c - the metrics page.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"

static void test_metrics_of_one_name_stand_together(void **state)
{
    (void)state;
    struct ox_metrics registry;
    struct ox_metric a = {0}, b = {0}, c = {0};
    struct ox_str out = {0};
    ox_metrics_init(&registry);
    ox_metric_init(&a, &registry, OX_METRIC_COUNTER, "x_total", "Things.", "topic=\"a\"");
    ox_metric_init(&b, &registry, OX_METRIC_GAUGE, "y", "Level.", NULL);
    ox_metric_init(&c, &registry, OX_METRIC_COUNTER, "x_total", "Things.", "topic=\"b\"");
    a.value = 3;
    b.value = -1;
    ox_metrics_print(&registry, &out);
    assert_string_equal(
        out.data, "# HELP x_total Things.\n# TYPE x_total counter\nx_total{topic=\"a\"} 3\nx_total{topic=\"b\"} 0\n"
                  "# HELP y Level.\n# TYPE y gauge\ny -1\n");
    ox_metric_fini(&b);
    ox_metric_fini(&a);
    ox_str_truncate(&out, 0);
    ox_metrics_print(&registry, &out);
    assert_string_equal(out.data, "# HELP x_total Things.\n# TYPE x_total counter\nx_total{topic=\"b\"} 0\n");
    ox_metric_fini(&c);
    ox_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_of_one_name_stand_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
