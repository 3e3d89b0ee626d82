// reports.c - finds crash reports: crash-<UTC time>-<pid>.txt, so that the order of names is that of times.
#include "oxbowd/reports.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

// Nothing else that begins like one, such as an operator's notes about it.
static int reports_match(const struct dirent *entry)
{
    int end = 0;
    (void)sscanf(entry->d_name, "crash-%*8[0-9]T%*6[0-9]Z-%*[0-9].txt%n", &end);
    return end > 0 && !entry->d_name[end];
}

static int reports_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void reports_delete(const char *dir, const char *name)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/%s", dir, name);
    (void)unlink(path);
}

void reports_tell(struct ox_log *log, const char *dir)
{
    struct dirent **names = NULL;
    int found = scandir(dir, &names, reports_match, reports_order), kept = (int)REPORTS_KEPT;
    if (found > 0)
        ox_warn(log, "oxbowd.crash_reports",
                "count=%d newest=\"%s/%s\" hint=\"an earlier process has crashed: read it, report it, then delete it\"",
                found, dir, names[found - 1]->d_name);
    for (int i = 0; i < found; i++) {
        if (i < found - kept)
            reports_delete(dir, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}
