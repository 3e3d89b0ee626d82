// notify.c - what a service manager is told: datagrams to the socket that NOTIFY_SOCKET names (the protocol of sd_notify(3)).
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "io/posix/posix_int.h"

struct ox_posix_notify {
    int fd;
    struct sockaddr_un address;
    socklen_t address_len;
};

// A path, or '@' and an abstract name, which then begins with a zero byte and has no end of its own.
static bool notify_address(struct ox_posix_notify *n, const char *name)
{
    size_t len = strlen(name);
    if ((*name != '/' && *name != '@') || len < 2 || len >= sizeof n->address.sun_path)
        return false;
    n->address.sun_family = AF_UNIX;
    memcpy(n->address.sun_path, name, len);
    if (*name == '@')
        n->address.sun_path[0] = 0;
    n->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/'));
    return true;
}

struct ox_posix_notify *ox_posix_notify_new(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct ox_posix_notify *n = ox_malloc(sizeof *n);
    n->fd = -1;
    if (name && notify_address(n, name))
        n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->fd >= 0)
        return n;
    ox_free(n);
    return NULL;
}

bool ox_posix_notify(struct ox_posix_notify *n, const char *lines)
{
    size_t len = strlen(lines);
    return n && sendto(n->fd, lines, len, MSG_NOSIGNAL, (const struct sockaddr *)&n->address, n->address_len) == (ssize_t)len;
}

void ox_posix_notify_free(struct ox_posix_notify *n)
{
    if (n)
        close(n->fd);
    ox_free(n);
}

bool ox_posix_is_service(void)
{
    return getenv("INVOCATION_ID") != NULL;
}

uint64_t ox_posix_watchdog_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us = 0, whose = getpid();
    if (!usec || ox_parse_i64(usec, 1, INT64_MAX / 1000, &us) != OX_OK)
        return 0;
    if (pid && ox_parse_i64(pid, 1, INT64_MAX, &whose) != OX_OK)
        return 0;
    return whose == getpid() ? (uint64_t)us * 1000 : 0;
}
