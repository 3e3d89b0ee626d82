// main.c - oxbowctl: reads the command line by the table and does what it says.
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/version.h"
#include "oxbowctl/ctl.h"

static int run(struct ctl *ctl, int count, char *const *words)
{
    if (!ctl_parse(ctl, count, words))
        return CTL_USAGE;
    if (ctl->version)
        return printf("oxbowctl %s\n", OX_VERSION) > 0 ? CTL_DONE : CTL_FAILED;
    if (ctl->help) {
        ctl_help(ctl);
        return CTL_DONE;
    }
    return ctl_row_run(ctl);
}

// Who reads has seen enough ("| head"): silence, and the end that a shell expects.
static void end_like_others(void)
{
    signal(SIGPIPE, SIG_DFL); // the loop of produce and consume ignores it
    raise(SIGPIPE);
}

// The exit status when all is printed.
static int output_end(int status)
{
    struct stat out;
    if (ctl_flush())
        return status;
    if (fstat(STDOUT_FILENO, &out) == 0 && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode)))
        end_like_others();
    return ctl_fail("standard output: write failed");
}

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
    int status = run(&ctl, argc - 1, argv + 1);
    ctl_fini(&ctl);
    return output_end(status);
}
