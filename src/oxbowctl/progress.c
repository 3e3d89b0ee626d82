// progress.c - watching a move: asks for its status again and again, draws a bar for each stage, says how it ended and how to go on.
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

#define PROGRESS_POLL_NS 200000000L
#define PROGRESS_ASK_MS 5000L
#define PROGRESS_LINE_SECONDS 5.0      // without a terminal there is a line at least so often
#define PROGRESS_PATIENCE_SECONDS 60.0 // so long the broker may be away: it may be started again
#define PROGRESS_WIDTH 80              // of a terminal that does not say
#define PROGRESS_RATE_SECONDS 2.0      // what a rate is taken over

#define BAR_NAME 14    // columns of a stage's name
#define BAR_FIGURES 56 // columns of all but name and bar, with the brackets and gaps
#define BAR_MIN 8      // a shorter bar says nothing
#define BAR_MAX 40

static const char *const progress_stages[] = {"SWAPPED", "WRITES_MOVED", "METADATA_MOVED", "DATA_MOVED"};
#define STAGES OX_COUNT(progress_stages)

// ---- one stage ------------------------------------------------------------------------------------------------------

static const json_t *stage_find(const json_t *status, const char *name)
{
    const json_t *stages = json_object_get(json_object_get(status, "switch"), "stages");
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *stage = json_array_get(stages, i);
        if (strcmp(ctl_text_of(stage, "name"), name) == 0)
            return stage;
    }
    return NULL;
}

struct ctl_stage ctl_stage_read(const json_t *status, const char *name)
{
    const json_t *stage = stage_find(status, name), *eta = json_object_get(stage, "etaSeconds");
    bool data = strcmp(name, "DATA_MOVED") == 0;
    struct ctl_stage s = {.name = name, .known = stage != NULL, .left_seconds = -1};
    s.over = json_is_true(json_object_get(stage, "over"));
    s.asked = !data || json_is_true(json_object_get(json_object_get(status, "switch"), "moveData"));
    s.in_bytes = ctl_number_of(stage, "bytesTotal") > 0;
    s.done = ctl_number_of(stage, s.in_bytes ? "bytes" : "done");
    s.total = ctl_number_of(stage, s.in_bytes ? "bytesTotal" : "total");
    s.failures = ctl_number_of(stage, "failures");
    if (s.in_bytes)
        s.rate = ctl_number_of(stage, "bytesPerSecond");
    if (s.in_bytes && json_is_number(eta) && json_number_value(eta) >= 0)
        s.left_seconds = json_number_value(eta);
    return s;
}

// 100 only when it is over.
static int stage_percent(const struct ctl_stage *s)
{
    if (s->over)
        return 100;
    double share = s->total > 0 ? s->done / s->total : 0;
    return (int)OX_MIN(99.0, OX_MAX(0.0, share * 100));
}

static void stage_add_amount(struct ox_str *out, const struct ctl_stage *s)
{
    if (s->in_bytes)
        ctl_add_size_of(out, s->done, s->total);
    else
        ox_str_addf(out, "%.0f/%.0f", s->done, s->total);
}

static void stage_add_rate(struct ox_str *out, const struct ctl_stage *s)
{
    if (s->over || s->rate <= 0)
        return;
    if (s->in_bytes)
        ctl_add_size(out, s->rate);
    else
        ox_str_addf(out, "%.1f", s->rate);
    ox_str_adds(out, "/s");
}

static void stage_add_left(struct ox_str *out, const struct ctl_stage *s)
{
    if (s->failures > 0)
        ox_str_addf(out, "%.0f failed", s->failures);
    if (s->over || s->left_seconds < 0)
        return;
    ox_str_adds(out, s->failures > 0 ? ", " : "");
    ctl_add_time(out, s->left_seconds);
    ox_str_adds(out, " left");
}

static void stage_add_figures(struct ox_str *out, const struct ctl_stage *s, bool aligned)
{
    struct ox_str amount = {0}, rate = {0}, left = {0};
    stage_add_amount(&amount, s);
    stage_add_rate(&rate, s);
    stage_add_left(&left, s);
    ox_str_addf(out, aligned ? "%3d %% %-17s %-12s %s" : "%d %% %s %s %s", stage_percent(s), ox_str_get(&amount),
                ox_str_get(&rate), ox_str_get(&left));
    while (out->len && out->data[out->len - 1] == ' ')
        ox_str_truncate(out, out->len - 1);
    ox_str_fini(&amount);
    ox_str_fini(&rate);
    ox_str_fini(&left);
}

static void stage_add_bar(struct ox_str *out, const struct ctl_stage *s, size_t inner)
{
    size_t full = inner * (size_t)stage_percent(s) / 100;
    ox_str_adds(out, "[");
    for (size_t i = 0; i < inner; i++)
        ox_str_adds(out, i < full ? "#" : ".");
    ox_str_adds(out, "] ");
}

void ctl_stage_draw(struct ox_str *out, const struct ctl_stage *s, size_t width)
{
    size_t start = out->len, used = BAR_NAME + BAR_FIGURES;
    size_t inner = width > used + BAR_MIN ? OX_MIN(width - used, (size_t)BAR_MAX) : BAR_MIN;
    ox_str_addf(out, width ? "%-14s " : "%s ", s->name);
    if (!s->known)
        ox_str_adds(out, "not begun");
    else if (!s->asked && !s->over)
        ox_str_adds(out, "not asked for ('oxbowctl bookie-clusters move-data' does it)");
    else {
        if (width >= used) // figures say more than a bar
            stage_add_bar(out, s, inner);
        stage_add_figures(out, s, width > 0);
    }
    if (width && out->len - start > width)
        ox_str_truncate(out, start + width);
}

// ---- what a status means --------------------------------------------------------------------------------------------

enum ctl_verdict ctl_progress_judge(const json_t *status, const char *until, const char *switch_id)
{
    const json_t *sw = json_object_get(status, "switch");
    const char *state = ctl_text_of(sw, "state");
    if (switch_id && json_is_object(sw) && strcmp(ctl_text_of(sw, "switchId"), switch_id) != 0)
        return CTL_VERDICT_REPLACED;
    if (until && ctl_stage_read(status, until).over)
        return CTL_VERDICT_OVER;
    if (strcmp(state, "DONE") == 0)
        return CTL_VERDICT_OVER;
    if (strcmp(state, "DONE_WITH_FAILURES") == 0)
        return CTL_VERDICT_FAILED;
    if (strcmp(state, "ABORTED") == 0)
        return CTL_VERDICT_ABORTED;
    return strcmp(state, "RUNNING") == 0 || strcmp(state, "PAUSED") == 0 ? CTL_VERDICT_GO_ON : CTL_VERDICT_NOTHING;
}

// ---- drawing --------------------------------------------------------------------------------------------------------

// How fast a stage whose rate the broker does not say goes: measured here.
struct meter {
    double done, at, rate;
    bool begun;
};

struct progress {
    struct ctl *ctl;
    const char *until, *switch_id;
    bool terminal;
    sigset_t signals;
    int lines; // drawn, to be drawn over
    struct meter meters[STAGES];
    char *said[STAGES]; // what was last printed of each stage, without rate and time
    char *said_state;
    double said_at;      // the last line
    bool heard;          // the broker has answered: silence may pass
    double silent_since; // 0: the broker answers
};

static double progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void meter_add(struct meter *m, struct ctl_stage *s, double now)
{
    bool resting = m->rate <= 0 && s->done <= m->done; // the time before its first step does not count
    if (!m->begun || s->done < m->done || resting) {
        *m = (struct meter){.done = s->done, .at = now, .begun = true};
    } else if (now - m->at >= PROGRESS_RATE_SECONDS) {
        m->rate = (s->done - m->done) / (now - m->at);
        m->done = s->done;
        m->at = now;
    }
    if (s->rate <= 0)
        s->rate = m->rate;
    if (s->left_seconds < 0 && s->rate > 0 && s->total > s->done)
        s->left_seconds = (s->total - s->done) / s->rate;
}

static size_t progress_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return PROGRESS_WIDTH;
    return size.ws_col;
}

static void progress_add_head(struct ox_str *out, const json_t *status)
{
    const json_t *sw = json_object_get(status, "switch");
    ox_str_addf(out, "switch %s to %s: %s", ctl_text_of(sw, "switchId"), ctl_text_of(status, "active"),
                ctl_text_of(sw, "state"));
    if (strcmp(ctl_text_of(sw, "state"), "PAUSED") == 0)
        ox_str_adds(out, " ('oxbowctl bookie-clusters resume' goes on)");
}

// Draws over what was drawn before.
static void progress_draw_bars(struct progress *p, const json_t *status, const struct ctl_stage *stages)
{
    struct ox_str out = {0};
    size_t width = progress_width() - 1;
    if (p->lines)
        ox_str_addf(&out, "\033[%dA", p->lines);
    size_t start = out.len;
    progress_add_head(&out, status);
    if (out.len - start > width)
        ox_str_truncate(&out, start + width);
    ox_str_adds(&out, "\033[K\n");
    for (size_t i = 0; i < STAGES; i++) {
        ctl_stage_draw(&out, &stages[i], width);
        ox_str_adds(&out, "\033[K\n");
    }
    fwrite(out.data, 1, out.len, stdout);
    ox_str_fini(&out);
    p->lines = (int)STAGES + 1;
}

// True if a text is another one than last time.
static bool progress_news(char **said, const char *text)
{
    if (*said && strcmp(*said, text) == 0)
        return false;
    ox_free(*said);
    *said = ox_strdup(text);
    return true;
}

static void progress_print_stage(struct progress *p, const struct ctl_stage *stage, size_t i, bool due)
{
    struct ox_str key = {0}, line = {0};
    ox_str_addf(&key, "%d %d %d %.0f %.0f %.0f", stage->known, stage->over, stage->asked, stage->done, stage->total,
                stage->failures);
    if (progress_news(&p->said[i], ox_str_get(&key)) || (due && stage->asked && !stage->over)) {
        ctl_stage_draw(&line, stage, 0);
        printf("%s\n", ox_str_get(&line));
        p->said_at = progress_now();
    }
    ox_str_fini(&key);
    ox_str_fini(&line);
}

static void progress_print_lines(struct progress *p, const json_t *status, const struct ctl_stage *stages)
{
    struct ox_str head = {0};
    bool due = progress_now() - p->said_at >= PROGRESS_LINE_SECONDS;
    progress_add_head(&head, status);
    if (progress_news(&p->said_state, ox_str_get(&head)) || due) {
        printf("%s\n", ox_str_get(&head));
        p->said_at = progress_now();
    }
    ox_str_fini(&head);
    for (size_t i = 0; i < STAGES; i++)
        progress_print_stage(p, &stages[i], i, due);
}

// With -o json: the broker's own words, a line for each change and at least every 5 s.
static void progress_print_json(struct progress *p, const json_t *status)
{
    char *text = json_dumps(status, JSON_COMPACT);
    if (text && (progress_news(&p->said_state, text) || progress_now() - p->said_at >= PROGRESS_LINE_SECONDS)) {
        printf("%s\n", text);
        p->said_at = progress_now();
    }
    free(text);
}

static void progress_show(struct progress *p, const json_t *status)
{
    struct ctl_stage stages[STAGES];
    double now = progress_now();
    if (!json_is_object(json_object_get(status, "switch")) && !p->ctl->json)
        return;
    for (size_t i = 0; i < STAGES; i++) {
        stages[i] = ctl_stage_read(status, progress_stages[i]);
        meter_add(&p->meters[i], &stages[i], now);
    }
    if (p->ctl->json)
        progress_print_json(p, status);
    else if (p->terminal)
        progress_draw_bars(p, status, stages);
    else
        progress_print_lines(p, status, stages);
    fflush(stdout);
}

// ---- asking ---------------------------------------------------------------------------------------------------------

// No status came: true if it may come later, else a message was printed. A broker that was heard before may be starting again.
static bool progress_silent(struct progress *p, const struct ctl_answer *answer)
{
    double now = progress_now();
    bool passing = answer->trouble || answer->status / 100 == 5;
    if (!p->heard || !passing) {
        if (answer->trouble)
            ctl_fail("%s", answer->trouble);
        else
            ctl_rest_failed(p->ctl, answer, "status");
        return false;
    }
    const char *why = answer->trouble ? answer->trouble : "the broker starts or stops";
    if (p->silent_since > 0 && now - p->silent_since > PROGRESS_PATIENCE_SECONDS) {
        ctl_fail("%s; the move goes on when the broker runs again: 'oxbowctl bookie-clusters watch' shows it", why);
        return false;
    }
    if (p->silent_since <= 0) {
        ctl_fail("%s; asking again for %.0f s", why, PROGRESS_PATIENCE_SECONDS);
        p->silent_since = now;
        p->lines = 0;
    }
    return true;
}

// The status, or NULL; then *ret_again says whether to ask again, else a message was printed.
static json_t *progress_ask(struct progress *p, bool *ret_again)
{
    struct ctl_answer answer;
    const struct ctl_ask ask = {.method = "GET", .path = "/admin/v2/bookie-clusters/status", .timeout_ms = PROGRESS_ASK_MS};
    json_t *status = NULL;
    *ret_again = false;
    if (!ctl_rest_send(p->ctl, &ask, &answer) || answer.status != 200) {
        *ret_again = progress_silent(p, &answer);
    } else if (!(status = json_loadb(ox_str_get(&answer.body), answer.body.len, 0, NULL))) {
        ctl_fail("the broker's answer is no JSON: %.200s", ox_str_get(&answer.body));
    } else {
        p->silent_since = 0;
        p->heard = true;
    }
    ctl_answer_fini(&answer);
    return status;
}

// Waits for the next turn; false after Ctrl-C.
static bool progress_wait(struct progress *p)
{
    const struct timespec pause = {.tv_nsec = PROGRESS_POLL_NS};
    return sigtimedwait(&p->signals, NULL, &pause) < 0;
}

static void progress_end_failed(struct progress *p, const json_t *status)
{
    json_t *failures;
    if (ctl_clusters_ask(p->ctl, "/failures", "failures", &failures) != CTL_DONE)
        return;
    if (p->ctl->json)
        ctl_print_json(failures);
    else
        ctl_show_failures(failures);
    ctl_fail("%zu could not be moved and stay readable where they are; remove the cause, then "
             "'oxbowctl bookie-clusters switch %s --wait' tries them again",
             json_array_size(failures), ctl_text_of(status, "active"));
    json_decref(failures);
}

static void progress_end_over(const struct progress *p, const json_t *status)
{
    const json_t *sw = json_object_get(status, "switch");
    const char *active = ctl_text_of(status, "active"), *previous = ctl_text_of(status, "previous");
    if (p->ctl->json)
        return;
    if (ctl_stage_read(status, "DATA_MOVED").over && json_is_true(json_object_get(sw, "moveData")))
        printf("all data is in %s; 'oxbowctl bookie-clusters safe-to-release %s' says when the old one can go\n",
               active, previous);
    else
        printf("new data goes to %s; older data stays readable where it is: 'oxbowctl bookie-clusters move-data %s "
               "--wait' moves it, "
               "'oxbowctl bookie-clusters rollback' goes back\n",
               active, active);
}

static int progress_end(struct progress *p, const json_t *status, enum ctl_verdict verdict)
{
    const json_t *sw = json_object_get(status, "switch");
    switch (verdict) {
    case CTL_VERDICT_GO_ON: break;
    case CTL_VERDICT_OVER: progress_end_over(p, status); return CTL_DONE;
    case CTL_VERDICT_FAILED: progress_end_failed(p, status); return CTL_FAILED;
    case CTL_VERDICT_ABORTED:
        return ctl_fail("the switch was aborted: everything stays readable where it is; 'oxbowctl bookie-clusters "
                        "switch %s' begins "
                        "again, 'oxbowctl bookie-clusters rollback' goes back",
                        ctl_text_of(status, "active"));
    case CTL_VERDICT_REPLACED:
        return ctl_fail("switch %s was replaced by %s, to %s: 'oxbowctl bookie-clusters watch' shows that one",
                        p->switch_id, ctl_text_of(sw, "switchId"), ctl_text_of(status, "active"));
    case CTL_VERDICT_NOTHING:
        if (!p->ctl->json)
            printf("no switch is known: %s is the active bookie cluster; 'oxbowctl bookie-clusters switch NAME' begins "
                   "one\n",
                   ctl_text_of(status, "active"));
        return p->switch_id ? CTL_FAILED : CTL_DONE;
    }
    OX_UNREACHABLE("verdict");
}

static int progress_loop(struct progress *p)
{
    for (bool again;;) {
        json_t *status = progress_ask(p, &again);
        if (!status && !again)
            return CTL_FAILED;
        if (status)
            progress_show(p, status);
        enum ctl_verdict verdict = status ? ctl_progress_judge(status, p->until, p->switch_id) : CTL_VERDICT_GO_ON;
        int exit_status = verdict == CTL_VERDICT_GO_ON ? CTL_DONE : progress_end(p, status, verdict);
        json_decref(status);
        if (verdict != CTL_VERDICT_GO_ON)
            return exit_status;
        if (!progress_wait(p))
            return ctl_fail(
                "the move goes on without this command: 'oxbowctl bookie-clusters watch' shows it again, 'pause' or "
                "'abort' stops it");
    }
}

int ctl_progress_run(struct ctl *ctl, const char *until, const char *switch_id)
{
    struct progress p = {
        .ctl = ctl, .until = until, .switch_id = switch_id, .terminal = isatty(STDOUT_FILENO) == 1, .heard = switch_id != NULL};
    sigset_t before;
    sigemptyset(&p.signals);
    sigaddset(&p.signals, SIGINT);
    sigaddset(&p.signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &p.signals, &before); // they are taken in progress_wait
    p.said_at = progress_now();
    int status = progress_loop(&p);
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < STAGES; i++)
        ox_free(p.said[i]);
    ox_free(p.said_state);
    return status;
}
