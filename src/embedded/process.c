/* SPDX-License-Identifier: BSD-3-Clause */
#include "embedded/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child tells its parent when it cannot become the program. */
struct failure {
    const char *step; /* a literal: the parent has it at the same address */
    int error;
};

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int process_find(const char *name, char *out, size_t cap)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/') != NULL) {
        int n = snprintf(out, cap, "%s", name);
        return n > 0 && (size_t)n < cap && is_program(out) ? 0 : -1;
    }
    if (path == NULL || path[0] == '\0') {
        path = "/usr/local/bin:/usr/bin:/bin";
    }
    while (*path != '\0') {
        size_t len = strcspn(path, ":");
        int n = snprintf(out, cap, "%.*s/%s", (int)len, path, name);
        /* An empty part would mean the working directory, which is never wanted here. */
        if (len > 0 && n > 0 && (size_t)n < cap && is_program(out)) {
            return 0;
        }
        path += len + (path[len] == ':');
    }
    return -1;
}

static void child_fail(int fd, const char *step)
{
    struct failure failure = {step, errno};
    ssize_t ignored = write(fd, &failure, sizeof failure);
    (void)ignored;
    _exit(127);
}

static void restore_signals(void)
{
    static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
        (void)sigaction(handled[i], &standard, NULL);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Between fork and exec other threads' locks may be held for ever: system calls only. */
static void child_run(const struct process *process, pid_t parent, int report_fd)
    __attribute__((noreturn));

static void child_run(const struct process *process, pid_t parent, int report_fd)
{
    int null_fd = open("/dev/null", O_RDWR);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0) {
        child_fail(report_fd, "/dev/null");
    }
    (void)setpgid(0, 0);
    /* Once the daemon has become that user itself, there is nothing to change. */
    if (process->change_user && geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(process->gid) != 0 || setuid(process->uid) != 0)) {
        child_fail(report_fd, "cannot change the user");
    }
    /* After the change of user, which would clear it; exec keeps it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        child_fail(report_fd, "prctl");
    }
    /* The parent may have died before prctl. */
    if (getppid() != parent) {
        _exit(127);
    }
    restore_signals();
    /* No descriptor of ours is meant for the program. Kernels before 5.11 refuse; ours are
     * close-on-exec anyway. */
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execv(process->path, process->argv);
    child_fail(report_fd, "cannot be executed");
    abort();
}

pid_t process_start(const struct process *process, char error[CONFIG_ERROR_MAX])
{
    struct failure failure;
    int report[2];
    sigset_t all;
    sigset_t before;
    if (pipe2(report, O_CLOEXEC) != 0) {
        (void)snprintf(error, CONFIG_ERROR_MAX, "pipe: %s", strerror(errno));
        return -1;
    }
    pid_t parent = getpid();
    /* No handler of ours may run in the child: it would write to the event loop's descriptors. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        child_run(process, parent, report[1]);
    }
    int fork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        (void)snprintf(error, CONFIG_ERROR_MAX, "fork: %s", strerror(fork_error));
        return -1;
    }
    /* The end of the pipe without a word is the success of exec. */
    ssize_t n;
    do {
        n = read(report[0], &failure, sizeof failure);
    } while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof failure) {
        (void)waitpid(pid, NULL, 0);
        (void)snprintf(error, CONFIG_ERROR_MAX, "%s: %s: %s", process->path, failure.step,
                       strerror(failure.error));
        return -1;
    }
    return pid;
}
