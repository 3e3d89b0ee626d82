// metrics_test.c - the metrics page.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/metrics.h"

static void test_metrics_of_one_name_stand_together(void **state)
{
    (void)state;
    struct ox_metrics registry = {0};
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

static void test_metrics_of_pulsars_name_the_cluster(void **state)
{
    (void)state;
    struct ox_metrics registry = {0};
    struct ox_metric a = {0}, b = {0}, c = {0};
    struct ox_str out = {0};
    ox_metrics_init(&registry);
    registry.cluster = "c\"1";
    ox_metric_init(&a, &registry, OX_METRIC_GAUGE, "pulsar_x", "X.", NULL);
    ox_metric_init(&b, &registry, OX_METRIC_GAUGE, "pulsar_y", "Y.", "k=\"v\"");
    ox_metric_init(&c, &registry, OX_METRIC_GAUGE, "oxbow_z", "Z.", NULL);
    ox_metrics_print(&registry, &out);
    assert_non_null(strstr(out.data, "pulsar_x{cluster=\"c\\\"1\"} 0\n"));
    assert_non_null(strstr(out.data, "pulsar_y{cluster=\"c\\\"1\",k=\"v\"} 0\n"));
    assert_non_null(strstr(out.data, "oxbow_z 0\n"));
    ox_metric_fini(&a);
    ox_metric_fini(&b);
    ox_metric_fini(&c);
    ox_str_fini(&out);
}

static void summary_expect(const struct ox_metrics *registry, const char *text)
{
    struct ox_str out = {0};
    ox_metrics_print(registry, &out);
    assert_string_equal(ox_str_get(&out), text);
    ox_str_fini(&out);
}

static void test_summary_forgets_quantiles_after_two_intervals_and_counts_on(void **state)
{
    (void)state;
    static const char *const quantiles[] = {"0.5", "1.0", NULL};
    struct ox_metrics registry = {0};
    struct ox_summary s = {0};
    ox_metrics_init(&registry);
    ox_summary_init(&s, &registry, "t", "Times.", quantiles);
    summary_expect(&registry, "# HELP t Times.\n# TYPE t summary\nt{quantile=\"0.5\"} NaN\nt{quantile=\"1.0\"} "
                              "NaN\nt_count 0\nt_sum 0.000\n");
    ox_summary_add(&s, 10);
    ox_summary_add(&s, 20);
    ox_summary_add(&s, 30);
    ox_metrics_tick(&registry);
    summary_expect(&registry, "# HELP t Times.\n# TYPE t summary\nt{quantile=\"0.5\"} 0.020\nt{quantile=\"1.0\"} "
                              "0.030\nt_count 3\nt_sum 0.060\n");
    ox_metrics_tick(&registry);
    summary_expect(&registry, "# HELP t Times.\n# TYPE t summary\nt{quantile=\"0.5\"} NaN\nt{quantile=\"1.0\"} "
                              "NaN\nt_count 3\nt_sum 0.060\n");
    ox_summary_fini(&s);
}

static void test_labels_are_escaped(void **state)
{
    (void)state;
    struct ox_str out = {0};
    ox_metric_escape(&out, "a\"b\\c\nd\xc3\xa9");
    assert_string_equal(out.data, "a\\\"b\\\\c\\nd\xc3\xa9");
    ox_str_truncate(&out, 0);
    ox_metric_escape(&out, "x\xff\"");
    assert_string_equal(out.data, "x?\\\"");
    ox_str_fini(&out);
}

// ---- tables

static const struct ox_metric_column columns[] = {
    {"# HELP a A.\n# TYPE a gauge\n", "a", "", ""},
    {"# HELP b B.\n# TYPE b gauge\n", "b", "k=\"1\"", NULL},
    {NULL, "b", "k=\"2\"", NULL},
    {"# HELP c C.\n# TYPE c counter\n", "c", "", "r=\"local\""},
};

// The whole page in pieces of the least size.
static void table_print(const struct ox_metric_table *t, struct ox_str *out)
{
    static char piece[OX_METRIC_PIECE_MIN];
    struct ox_metric_place place = {0};
    for (size_t n = ox_metric_table_print(t, &place, piece, sizeof piece); n;
         n = ox_metric_table_print(t, &place, piece, sizeof piece)) {
        assert_int_equal(piece[n - 1], '\n');
        ox_str_add(out, piece, n);
    }
}

static void row_add(struct ox_metric_table *t, const char *labels, double a, double b1, double b2, double c)
{
    double *row = ox_metric_table_row(t, ox_metric_table_add(t, labels, strlen(labels)));
    row[0] = a;
    row[1] = b1;
    row[2] = b2;
    row[3] = c;
}

static void test_table_is_printed_by_families_and_leaves_out_what_is_not_there(void **state)
{
    (void)state;
    struct ox_metric_table t = {.columns = columns, .column_count = OX_COUNT(columns)};
    struct ox_str out = {0};
    row_add(&t, "x=\"1\"", 1, (double)NAN, 2.5, (double)NAN);
    row_add(&t, "", -3, (double)NAN, 1e18, (double)NAN);
    table_print(&t, &out);
    assert_string_equal(out.data, "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na -3\n"
                                  "# HELP b B.\n# TYPE b gauge\nb{x=\"1\",k=\"2\"} 2.5\nb{k=\"2\"} 1e+18\n");
    t.summed = true;
    ox_str_truncate(&out, 0);
    ox_metric_table_row(&t, 0)[3] = 0.000001;
    table_print(&t, &out);
    assert_string_equal(out.data, "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na -3\n"
                                  "# HELP c C.\n# TYPE c counter\nc{x=\"1\",r=\"local\"} 1e-06\n");
    ox_metric_table_fini(&t);
    ox_str_fini(&out);
}

static void test_table_of_many_rows_comes_in_whole_lines(void **state)
{
    (void)state;
    struct ox_metric_table t = {.columns = columns, .column_count = OX_COUNT(columns)};
    struct ox_str out = {0}, expected = {0};
    for (int i = 0; i < 5000; i++) {
        char labels[32];
        snprintf(labels, sizeof labels, "row=\"%d\"", i);
        row_add(&t, labels, i % 7 ? (double)NAN : i, (double)NAN, i == 4999 ? 1 : (double)NAN, i / 8.0);
    }
    ox_str_adds(&expected, columns[0].head);
    for (int i = 0; i < 5000; i += 7)
        ox_str_addf(&expected, "a{row=\"%d\"} %d\n", i, i);
    ox_str_addf(&expected, "%sb{row=\"4999\",k=\"2\"} 1\n%s", columns[1].head, columns[3].head);
    for (int i = 0; i < 5000; i++)
        ox_str_addf(&expected, "c{row=\"%d\"} %g\n", i, i / 8.0);
    table_print(&t, &out);
    assert_string_equal(out.data, expected.data);
    ox_metric_table_fini(&t);
    ox_str_fini(&out);
    ox_str_fini(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_of_one_name_stand_together),
        cmocka_unit_test(test_metrics_of_pulsars_name_the_cluster),
        cmocka_unit_test(test_summary_forgets_quantiles_after_two_intervals_and_counts_on),
        cmocka_unit_test(test_labels_are_escaped),
        cmocka_unit_test(test_table_is_printed_by_families_and_leaves_out_what_is_not_there),
        cmocka_unit_test(test_table_of_many_rows_comes_in_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
