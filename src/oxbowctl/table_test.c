// table_test.c - each row of the table holds: its example is right, its help tells what there is, its request can be made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/capture_test.h"
#include "oxbowctl/ctl.h"

#define WORDS_MAX 40

// Takes an example apart as a shell does, in place: words, and texts in single quotes.
static int split(char *line, char **words)
{
    int count = 0;
    for (char *at = line; *at;) {
        at += strspn(at, " ");
        if (!*at)
            break;
        char end = *at == '\'' ? '\'' : ' ';
        at += end == '\'';
        assert_true(count < WORDS_MAX);
        words[count++] = at;
        at = strchrnul(at, end);
        if (*at)
            *at++ = '\0';
    }
    return count;
}

static void example_holds(const struct ctl_noun *noun, const struct ctl_row *row)
{
    OX_CLEANUP(ox_free_ptr)
    char *line = ox_strdup(row->example);
    char *words[WORDS_MAX];
    int count = split(line, words);
    struct ctl ctl = {.print_request = true};
    struct ctl_request request = {0};
    if (!ctl_parse(&ctl, count - 1, words + 1))
        fail_msg("the example is refused: %s", row->example);
    if (ctl.noun != noun || ctl.row != row)
        fail_msg("the example is of another verb: %s", row->example);
    if (!row->run && ctl_request_make(&ctl, &request) != CTL_DONE)
        fail_msg("no request can be made of: %s", row->example);
    if (!row->run && strchr(ox_str_get(&request.path), '{'))
        fail_msg("%s: a name is left in %s", row->example, ox_str_get(&request.path));
    ctl_request_fini(&request);
    ctl_fini(&ctl);
}

static void help_holds(const struct ctl_noun *noun, const struct ctl_row *row)
{
    struct ctl ctl = {.noun = noun, .row = row};
    struct capture c;
    capture_begin(&c, &stdout);
    ctl_help(&ctl);
    capture_end(&c);
    if (!strstr(c.text, row->example) || !strstr(c.text, row->summary))
        fail_msg("the help of %s %s lacks its summary or example", noun->noun, row->verb);
    for (size_t i = 0; i < row->word_count; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *label = ctl_word_label(&row->words[i]);
        if (!strstr(c.text, label) || !strstr(c.text, row->words[i].help))
            fail_msg("the help of %s %s lacks %s", noun->noun, row->verb, label);
    }
    free(c.text);
}

static void each_row(void (*holds)(const struct ctl_noun *noun, const struct ctl_row *row))
{
    size_t count;
    const struct ctl_noun *nouns = ctl_nouns(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < nouns[i].row_count; j++)
            holds(&nouns[i], &nouns[i].rows[j]);
}

static void test_each_example_is_right(void **state)
{
    (void)state;
    each_row(example_holds);
}

static void test_each_help_tells_all(void **state)
{
    (void)state;
    each_row(help_holds);
}

static void test_overviews_name_what_there_is(void **state)
{
    (void)state;
    size_t count;
    const struct ctl_noun *nouns = ctl_nouns(&count);
    struct capture c;
    capture_begin(&c, &stdout);
    ctl_help(&(struct ctl){0});
    for (size_t i = 0; i < count; i++)
        ctl_help(&(struct ctl){.noun = &nouns[i]});
    capture_end(&c);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(strstr(c.text, nouns[i].about));
        for (size_t j = 0; j < nouns[i].row_count; j++)
            assert_non_null(strstr(c.text, nouns[i].rows[j].summary));
    }
    free(c.text);
}

static void test_names_and_aliases(void **state)
{
    (void)state;
    assert_true(ctl_names_have("-s --subscription", ' ', "--subscription", 14));
    assert_true(ctl_names_have("-s --subscription", ' ', "-s=x", 2));
    assert_false(ctl_names_have("-s --subscription", ' ', "--sub", 5));
    assert_false(ctl_names_have(NULL, ' ', "-s", 2));
    const struct ctl_noun *brokers = ctl_noun_find("brokers");
    assert_non_null(brokers);
    assert_ptr_equal(ctl_row_find(brokers, "healthcheck"), ctl_row_find(brokers, "health"));
    assert_null(ctl_noun_find("broker"));
    assert_null(ctl_row_find(brokers, "healthy"));
}

static void nearest(const char *typed, const char *names, const char *hint)
{
    struct ctl_nearest n = {.typed = typed};
    ctl_nearest_look(&n, names, ' ');
    OX_CLEANUP(ox_free_ptr)
    char *text = ctl_nearest_hint(&n);
    assert_string_equal(text, hint);
}

static void test_the_nearest_name_is_offered(void **state)
{
    (void)state;
    nearest("unlod", "list unload delete", " (did you mean 'unload'?)");
    nearest("set-ret", "set-rate set-retention", " (did you mean 'set-retention'?)");
    nearest("--includ", "--include-system-topic", " (did you mean '--include-system-topic'?)");
    nearest("--incude", "--include-system-topic", " (did you mean '--include-system-topic'?)");
    nearest("xyz", "list unload delete", "");
    nearest("ls", "list get", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_example_is_right), cmocka_unit_test(test_each_help_tells_all),
        cmocka_unit_test(test_overviews_name_what_there_is), cmocka_unit_test(test_names_and_aliases),
        cmocka_unit_test(test_the_nearest_name_is_offered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
