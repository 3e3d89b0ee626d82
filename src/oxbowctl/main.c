// main.c - oxbowctl: reads the command line by the table and does what it says.
#include <stdio.h>

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

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
    int status = run(&ctl, argc - 1, argv + 1);
    ctl_fini(&ctl);
    if (fflush(stdout) != 0 && status == CTL_DONE)
        status = ctl_fail("standard output: write failed");
    return status;
}
