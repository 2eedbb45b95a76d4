/* Read a planted secret in ways that some evidence shows badly or not at all, or could have read it and did not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char key[512], buffer[4096];

static void drain(int fd) {
    while (fd >= 0 && read(fd, buffer, sizeof buffer) > 0) {
    }
    if (fd >= 0)
        close(fd);
}

/* The 32-bit table of calls: open is 5, read 3, close 6; every pointer must lie below 4 GiB. */
static long old(long number, long one, long two, long three) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(one), "c"(two), "d"(three) : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static void in_32_bits(void) {
    char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(low, key);
    long fd = old(5, (long)(uintptr_t)low, 0, 0);
    if (fd >= 0) {
        old(3, fd, (long)(uintptr_t)(low + 4096), 4096);
        old(6, fd, 0, 0);
    }
}

static void run_from_memory(void) {
    int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("payload", 0);
    while (sendfile(to, from, NULL, 1 << 20) > 0) {
    }
    close(from);
    char *arguments[] = {"[kworker/0:0]", "read", NULL};
    syscall(SYS_execveat, to, "", arguments, environ, AT_EMPTY_PATH);
    exit(4);
}

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        exit(5);
    close(fd);
}

static void bind_elsewhere(void) {
    char map[64];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        exit(6);
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_file("/proc/self/gid_map", map);
    drain(open("/tmp/notes.txt", O_WRONLY | O_CREAT, 0600));
    if (mount(key, "/tmp/notes.txt", NULL, MS_BIND, NULL) != 0)
        exit(7);
    drain(open("/tmp/notes.txt", O_RDONLY));
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "", *home = getenv("HOME");
    if (!home)
        return 2;
    snprintf(key, sizeof key, "%s/.ssh/id_ed25519", home);
    if (!strcmp(how, "read")) {
        drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "open-only")) {
        /* Opened for reading; the bytes are never taken. */
        close(open(key, O_RDONLY));
    } else if (!strcmp(how, "two")) {
        char other[512];
        snprintf(other, sizeof other, "%s/.netrc", home);
        drain(open(key, O_RDONLY));
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "twice")) {
        drain(open(key, O_RDONLY));
        drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "refused")) {
        /* Without a right to read there is nothing to read. */
        chmod(key, 0);
        drain(open(key, O_RDONLY));
        chmod(key, 0600);
    } else if (!strcmp(how, "read-write")) {
        drain(open(key, O_RDWR));
    } else if (!strcmp(how, "int80")) {
        in_32_bits();
    } else if (!strcmp(how, "splice")) {
        int ends[2], fd = open(key, O_RDONLY), to = open("/dev/null", O_WRONLY);
        if (pipe(ends) != 0)
            return 3;
        ssize_t size = splice(fd, NULL, ends[1], NULL, sizeof buffer, 0);
        if (size > 0)
            splice(ends[0], NULL, to, NULL, size, 0);
    } else if (!strcmp(how, "memfd")) {
        run_from_memory();
    } else if (!strcmp(how, "vfork")) {
        if (vfork() == 0) {
            int fd = open(key, O_RDONLY);
            read(fd, buffer, sizeof buffer);
            _exit(0);
        }
        wait(NULL);
        return buffer[0] == 0;
    } else if (!strcmp(how, "child")) {
        if (fork() == 0) {
            drain(open(key, O_RDONLY));
            _exit(0);
        }
        wait(NULL);
    } else if (!strcmp(how, "bind")) {
        bind_elsewhere();
    } else if (!strcmp(how, "environment")) {
        /* The value is used, and nobody sees it being looked at: a checksum of it goes to standard output. */
        const char *value = getenv("SERVICE_TOKEN");
        unsigned sum = 0;
        while (value && *value)
            sum = sum * 31 + (unsigned char)*value++;
        printf("checksum %08x\n", sum);
    } else if (!strcmp(how, "unless-traced")) {
        int fd = open("/proc/self/status", O_RDONLY);
        ssize_t size = read(fd, buffer, sizeof buffer - 1);
        buffer[size > 0 ? size : 0] = 0;
        const char *tracer = strstr(buffer, "TracerPid:");
        close(fd);
        if (tracer && atoi(tracer + 10) == 0)
            drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "tomorrow")) {
        struct itimerspec later = {.it_value = {86400, 0}};
        int timer = timerfd_create(CLOCK_MONOTONIC, 0);
        timerfd_settime(timer, 0, &later, NULL);
        if (fcntl(timer, F_SETFL, O_NONBLOCK) == 0 && read(timer, buffer, 8) == 8)
            drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "after-2030")) {
        /* The clock is read from memory that the kernel shares; no call is made. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > 1893456000)
            drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "elsewhere")) {
        if (getenv("TZ") && !strcmp(getenv("TZ"), "Europe/Berlin"))
            drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "argument")) {
        if (argc > 2 && strstr(argv[2], "prod"))
            drain(open(key, O_RDONLY));
    } else {
        return 2;
    }
    return 0;
}
