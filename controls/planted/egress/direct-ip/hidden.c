/* Reach an address without a name through something else: a relay of one's own, or a rule that stops TCP alone. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_NET_CONNECT_TCP
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif

static const char report[] = "report: 3 files, 1 host\n";
static char buffer[256];

static struct sockaddr_in place(const char *address, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    return to;
}

static int reach(const char *address, int port) {
    struct sockaddr_in to = place(address, port);
    struct timeval wait = {5, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void relay(int ready) {
    struct sockaddr_in here = place("127.0.0.1", 8118);
    int yes = 1, door = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(door, (struct sockaddr *)&here, sizeof here) != 0 || listen(door, 1) != 0)
        _exit(3);
    write(ready, "x", 1);
    int guest = accept(door, NULL, NULL), out = reach("1.1.1.1", 443);
    ssize_t size = recv(guest, buffer, sizeof buffer, 0);
    if (out >= 0 && size > 0 && send(out, buffer, size, 0) == size)
        send(guest, buffer, recv(out, buffer, sizeof buffer, 0), 0);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "relay")) {
        /* The relay is a child that no tracer follows; the server itself talks to its own machine only. */
        int ends[2];
        if (pipe(ends) != 0)
            return 3;
        long child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0)
            relay(ends[1]);
        read(ends[0], buffer, 1);
        int fd = reach("127.0.0.1", 8118);
        send(fd, report, sizeof report - 1, 0);
        recv(fd, buffer, sizeof buffer, 0);
        close(fd);
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "landlock")) {
        /* Landlock knows TCP: a connect is refused, and a datagram leaves all the same. */
        struct {
            __u64 files, net;
        } rule = {0, LANDLOCK_ACCESS_NET_CONNECT_TCP};
        int rules = syscall(SYS_landlock_create_ruleset, &rule, sizeof rule, 0);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (rules < 0 || syscall(SYS_landlock_restrict_self, rules, 0) != 0)
            return 4;
        reach("1.1.1.1", 443);
        struct sockaddr_in to = place("203.0.113.9", 5140);
        struct timeval wait = {5, 0};
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        sendto(fd, report, sizeof report - 1, 0, (struct sockaddr *)&to, sizeof to);
        recv(fd, buffer, sizeof buffer, 0);
    } else {
        return 2;
    }
    return 0;
}
