// broker.c - oxbowd as a child: started in a fresh folder on free ports, ended, its folder removed.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

#define END_SECONDS 20

static void broker_log_path(const struct demo_broker *b, char *to, size_t size)
{
    snprintf(to, size, "%s/oxbowd.log", b->folder);
}

static bool broker_folder(struct demo_broker *b)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(b->folder, sizeof b->folder, "%s/oxbow-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n > 0 && (size_t)n < sizeof b->folder && mkdtemp(b->folder))
        return true;
    fprintf(stderr, "oxbow-demo: no fresh folder %s: %s; set TMPDIR to one that can be written\n", b->folder,
            strerror(errno));
    b->folder[0] = 0;
    return false;
}

// In the child: nobody else's keyboard, and it does not outlive the demo.
static void broker_exec(const struct demo_broker *b)
{
    char log[128], data[128];
    broker_log_path(b, log, sizeof log);
    snprintf(data, sizeof data, "%s/data", b->folder);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execl(b->binary, "oxbowd", "--data", data, "--set", "brokerServicePort=0", "--set", "webServicePort=0", "--set",
          "storeSegmentSizeMB=16", "--set", "defaultRetentionTimeInMinutes=-1", "--set", "defaultRetentionSizeInMB=-1",
          (char *)NULL);
    dprintf(STDERR_FILENO, "oxbow-demo: cannot run %s: %s\n", b->binary, strerror(errno));
    _exit(127);
}

bool broker_start(struct demo_broker *b, const char *own_path)
{
    char self[400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(b->binary, sizeof b->binary, "%s/oxbowd", dirname(n > 0 ? self : strdupa(own_path)));
    if (access(b->binary, X_OK) != 0) {
        fprintf(stderr, "oxbow-demo: %s: %s; build it first with make\n", b->binary, strerror(errno));
        return false;
    }
    if (!broker_folder(b))
        return false;
    b->pid = fork();
    if (b->pid == 0)
        broker_exec(b);
    return b->pid > 0;
}

bool broker_is_ready(struct demo_broker *b, bool *ret_gone)
{
    char path[128], line[1024];
    unsigned port, web;
    bool ready = false;
    broker_log_path(b, path, sizeof path);
    *ret_gone = waitpid(b->pid, NULL, WNOHANG) == b->pid;
    if (*ret_gone)
        b->pid = 0;
    FILE *f = fopen(path, "re");
    while (f && !ready && fgets(line, sizeof line, f)) {
        const char *p = strstr(line, "oxbowd.ready") ? strstr(line, "pulsar=pulsar://127.0.0.1:") : NULL;
        ready = p && sscanf(p, "pulsar=pulsar://127.0.0.1:%u web=http://127.0.0.1:%u", &port, &web) == 2;
    }
    if (f)
        fclose(f);
    if (!ready || *ret_gone)
        return false;
    b->port = (uint16_t)port;
    b->web_port = (uint16_t)web;
    return true;
}

void broker_print_log(const struct demo_broker *b)
{
    char path[128], text[4001];
    broker_log_path(b, path, sizeof path);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (fseek(f, -(long)(sizeof text - 1), SEEK_END) != 0)
        rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fprintf(stderr, "---- the end of the broker's log\n%s----\n", text);
    fclose(f);
}

static int folder_remove(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

// True if the process ended with status 0 in time.
static bool broker_wait(pid_t pid)
{
    int status = -1;
    for (int i = 0; i < END_SECONDS * 100; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}

bool broker_end(struct demo_broker *b)
{
    bool clean = b->pid > 0;
    if (b->pid > 0) {
        kill(b->pid, SIGTERM);
        clean = broker_wait(b->pid);
        b->pid = 0;
    }
    if (b->folder[0])
        nftw(b->folder, folder_remove, 16, FTW_DEPTH | FTW_PHYS);
    b->folder[0] = 0;
    return clean;
}
