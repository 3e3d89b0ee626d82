// names.c - what a place may be called.
#include <string.h>

#include "move/storage/records.h"

// Siblings of a place's node in the store, and siblings of its name in the REST paths.
static const char *const names_reserved[] = {
    "switch-target", "bootstrap",      "orchestrator",    "acks",     "switch",     "status",    "read-mode",
    "precheck",      "cleanup",        "cleanup-targets", "internal", "plan",       "inventory", "failures",
    "close-client",  "move-data",      "throttle",        "pause",    "resume",     "abort",     "rollback",
    "verify",        "promote-cursor", "safe-to-release", "targets",  "namespaces", "topics",
};

static bool name_chars_valid(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return name[strspn(name, allowed)] == 0;
}

bool storage_name_valid(const char *name, const char **ret_why)
{
    const char *why = NULL;
    size_t len = strlen(name);
    if (len == 0 || len > STORAGE_NAME_MAX)
        why = "a name has 1 to 64 characters";
    else if (!name_chars_valid(name))
        why = "a name consists of letters, digits, '.', '_' and '-'";
    else if (!strcmp(name, ".") || !strcmp(name, ".."))
        why = "a name is not \".\" or \"..\"";
    for (size_t i = 0; i < OX_COUNT(names_reserved) && !why; i++)
        if (!strcmp(name, names_reserved[i]))
            why = "this word is reserved for the switch itself";
    if (why)
        *ret_why = why;
    return !why;
}
