// bookie_clusters_test.c - wrong arguments are found before anything is asked; without a broker nothing pretends to work.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

typedef int (*command_fn)(struct ctl *ctl);
#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})

// Runs a command against a port where nobody listens; returns its exit status and what it printed on standard error.
static int run(command_fn fn, char **args, char *ret_text, size_t size)
{
    const struct ctl_command command = {.noun = "bookie-clusters", .verb = "test", .synopsis = ""};
    struct ctl ctl = {.command = &command, .url = "http://127.0.0.1:1", .args = args};
    while (args[ctl.arg_count])
        ctl.arg_count++;
    FILE *file = tmpfile();
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    int status = fn(&ctl);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    size_t n = fread(ret_text, 1, size - 1, file);
    ret_text[n] = 0;
    fclose(file);
    return status;
}

static void expect(command_fn fn, char **args, int status, const char *says)
{
    char text[2000];
    assert_int_equal(run(fn, args, text, sizeof text), status);
    if (!strstr(text, says))
        fail_msg("\"%s\" is not in:\n%s", says, text);
}

static void test_wrong_arguments_are_named(void **state)
{
    (void)state;
    expect(ctl_clusters_get, ARGS(NULL), CTL_USAGE, "NAME is missing");
    expect(ctl_clusters_get, ARGS(""), CTL_USAGE, "NAME is missing");
    expect(ctl_clusters_get, ARGS("a", "b"), CTL_USAGE, "too many words: b");
    expect(ctl_clusters_get, ARGS("a", "--name", "b"), CTL_USAGE, "given twice: 'a' and 'b'");
    expect(ctl_clusters_register, ARGS("a"), CTL_USAGE, "--metadata-service-uri is missing");
    expect(ctl_clusters_register, ARGS("--metadata-service-uri", "embedded:/x"), CTL_USAGE, "NAME is missing");
    expect(ctl_clusters_register, ARGS("a", "--metadata-service-uri"), CTL_USAGE,
           "a value is missing after --metadata-service-uri");
    expect(ctl_clusters_register, ARGS("a", "--metadata-service-uri", "\xff"), CTL_USAGE, "not valid UTF-8");
    expect(ctl_clusters_switch, ARGS("a", "--wait=1"), CTL_USAGE, "no value is wanted after --wait");
    expect(ctl_clusters_switch, ARGS("\xff"), CTL_USAGE, "not valid UTF-8");
    expect(ctl_clusters_switch, ARGS("a", "--force"), CTL_USAGE, "unknown option --force");
    expect(ctl_clusters_read_mode, ARGS(NULL), CTL_USAGE, "NEW_CLUSTER_ONLY) is missing");
    expect(ctl_clusters_plan, ARGS("a", "--rate", "fast"), CTL_USAGE, "--rate wants a size such as 50M");
    expect(ctl_clusters_throttle, ARGS(NULL), CTL_USAGE, "what shall the limit be?");
    expect(ctl_clusters_throttle, ARGS("--bytes", "-5"), CTL_USAGE, "--bytes wants a size");
    expect(ctl_clusters_throttle, ARGS("--ops", "many"), CTL_USAGE, "a number is wanted after --ops");
    expect(ctl_clusters_get_target, ARGS(NULL), CTL_USAGE, "NAME is missing");
    expect(ctl_clusters_set_target, ARGS("a/b"), CTL_USAGE, "which bookie cluster? --target CLUSTER");
    expect(ctl_clusters_set_target, ARGS("--target", "b"), CTL_USAGE, "NAME is missing");
    expect(ctl_clusters_set_target, ARGS("a/b", "--target", "\xff"), CTL_USAGE, "not valid UTF-8");
    expect(ctl_clusters_remove_target, ARGS("a/"), CTL_USAGE, "'a/' is no topic");
    expect(ctl_clusters_remove_target, ARGS("mem://a/b"), CTL_USAGE, "'mem://a/b' is no topic");
    expect(ctl_clusters_cleanup, ARGS("a"), CTL_USAGE, "too many words: a");
    expect(ctl_clusters_cleanup, ARGS("--max-deletions", "-1"), CTL_USAGE, "a number is wanted after --max-deletions");
    expect(ctl_clusters_status, ARGS("-o", "xml"), CTL_USAGE, "-o wants table or json");
}

static void test_right_arguments_reach_for_the_broker(void **state)
{
    (void)state;
    const char *nobody = "no broker answers at http://127.0.0.1:1";
    expect(ctl_clusters_list, ARGS(NULL), CTL_FAILED, nobody);
    expect(ctl_clusters_get, ARGS("a"), CTL_FAILED, nobody);
    expect(ctl_clusters_get, ARGS("--name", "a"), CTL_FAILED, nobody);
    expect(ctl_clusters_get, ARGS("--", "-a"), CTL_FAILED, nobody);
    expect(ctl_clusters_register, ARGS("--name=a", "--metadata-service-uri=embedded:/x", "--status", "STANDBY"),
           CTL_FAILED, nobody);
    expect(ctl_clusters_switch, ARGS("--target", "a", "--wait", "--supersede"), CTL_FAILED, nobody);
    expect(ctl_clusters_read_mode, ARGS("--mode", "DUAL_READ"), CTL_FAILED, nobody);
    expect(ctl_clusters_plan, ARGS("a", "--rate", "100M"), CTL_FAILED, nobody);
    expect(ctl_clusters_move_data, ARGS("a"), CTL_FAILED, nobody);
    expect(ctl_clusters_throttle, ARGS("--bytes", "0"), CTL_FAILED, nobody);
    expect(ctl_clusters_cleanup, ARGS("--dry-run", "--src-cluster", "a", "--max-deletions", "3", "--force"), CTL_FAILED,
           nobody);
    expect(ctl_clusters_cleanup_targets, ARGS("--src-cluster", "a b"), CTL_FAILED, nobody);
    expect(ctl_clusters_safe_to_release, ARGS("a"), CTL_FAILED, nobody);
    expect(ctl_clusters_get_target, ARGS("public/default"), CTL_FAILED, nobody);
    expect(ctl_clusters_set_target, ARGS("public/default/t", "--target", "a"), CTL_FAILED, nobody);
    expect(ctl_clusters_remove_target, ARGS("--name=persistent://public/default/t"), CTL_FAILED, nobody);
    expect(ctl_clusters_watch, ARGS(NULL), CTL_FAILED, nobody); // at once: nobody was there before
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_arguments_are_named),
                                       cmocka_unit_test(test_right_arguments_reach_for_the_broker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
