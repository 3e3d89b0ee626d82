// reports.c - finds crash reports: crash-<UTC time>-<pid>.txt, so that the order of names is that of times.
#include "oxbowd/reports.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static int reports_match(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return strncmp(entry->d_name, "crash-", 6) == 0 && len > 10 && strcmp(entry->d_name + len - 4, ".txt") == 0;
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
