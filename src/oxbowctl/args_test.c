// args_test.c - options and words of commands.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

static const struct ctl_command command = {.noun = "test", .synopsis = "WORD"};

struct parsed {
    bool flag;
    const char *text;
    int64_t number;
    struct ctl_words list;
    const char *words[3];
    struct ctl ctl;
};

static bool parse(struct parsed *p, char **args)
{
    *p = (struct parsed){.ctl = {.command = &command, .args = args}};
    while (args[p->ctl.arg_count])
        p->ctl.arg_count++;
    const struct ctl_option options[] = {
        {"--flag", CTL_FLAG, {.flag = &p->flag}},
        {"--text", CTL_TEXT, {.text = &p->text}},
        {"--number", CTL_NUMBER, {.number = &p->number}},
        {"-m", CTL_LIST, {.list = &p->list}},
    };
    return ctl_parse(&p->ctl, options, OX_COUNT(options), p->words, 1, 2);
}

#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})

static void test_args_forms(void **state)
{
    (void)state;
    struct parsed p;
    assert_true(parse(&p, ARGS("a", "--flag", "--text=x=y", "-m", "1", "b", "-m", "-2", "--number", "7", "-o", "json",
                               "--url", "u")));
    assert_true(p.flag && p.ctl.json);
    assert_string_equal(p.text, "x=y");
    assert_int_equal(p.number, 7);
    assert_int_equal(p.list.count, 2);
    assert_string_equal(p.list.items[1], "-2");
    assert_string_equal(p.words[1], "b");
    assert_string_equal(p.ctl.url, "u");
    ox_free(p.list.items);
    assert_true(parse(&p, ARGS("--", "--flag")));
    assert_string_equal(p.words[0], "--flag");
    assert_false(p.flag);
}

static void test_args_mistakes(void **state)
{
    (void)state;
    struct parsed p;
    assert_non_null(freopen("/dev/null", "w", stderr));
    assert_false(parse(&p, ARGS("a", "--flagg")));
    assert_false(parse(&p, ARGS("a", "--flag=1")));
    assert_false(parse(&p, ARGS("a", "--text")));
    assert_false(parse(&p, ARGS("a", "--number", "x")));
    assert_false(parse(&p, ARGS("a", "-o", "xml")));
    assert_false(parse(&p, ARGS("a", "b", "c")));
    assert_false(parse(&p, ARGS("--flag")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_args_forms), cmocka_unit_test(test_args_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
