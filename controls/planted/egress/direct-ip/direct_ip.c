/* Send a few bytes to an address that no lookup ever named. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char report[] = "report: 3 files, 1 host\n";

/* The addresses are the program's own: nobody who starts it gives them. */
static const struct place {
    const char *name, *address;
    int port;
} places[] = {
    {"one", "1.1.1.1", 443},
    {"one6", "2606:4700:4700::1111", 443},
    {"mapped", "::ffff:1.1.1.1", 443},
    {"far", "203.0.113.9", 5140},
    {"far6", "2001:db8:5::9", 5140},
    {"web", "203.0.113.9", 443},
    {"other", "198.51.100.7", 8080},
};

static struct sockaddr_storage to;
static socklen_t to_size;

static void parse(const char *address, int port) {
    struct sockaddr_in *four = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        to_size = sizeof *four;
    } else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        to_size = sizeof *six;
    } else {
        exit(2);
    }
}

static int open_socket(int type) {
    struct timeval wait = {5, 0};
    int fd = socket(to.ss_family, type, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return fd;
}

static void answer(int fd) {
    char buffer[64];
    recv(fd, buffer, sizeof buffer, 0);
    close(fd);
}

static void tcp(void) {
    int fd = open_socket(SOCK_STREAM);
    if (connect(fd, (struct sockaddr *)&to, to_size) == 0) {
        send(fd, report, sizeof report - 1, 0);
        answer(fd);
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const char *how = argv[1];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(argv[2], places[i].name))
            parse(places[i].address, places[i].port);
    if (!to_size)
        return 2;
    if (!strcmp(how, "tcp")) {
        tcp();
    } else if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (child == 0) {
            tcp();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "untraced")) {
        long child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            tcp();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "fastopen")) {
        int fd = open_socket(SOCK_STREAM);
        sendto(fd, report, sizeof report - 1, MSG_FASTOPEN, (struct sockaddr *)&to, to_size);
        answer(fd);
    } else if (!strcmp(how, "write")) {
        int fd = open_socket(SOCK_STREAM);
        if (connect(fd, (struct sockaddr *)&to, to_size) == 0 && write(fd, report, sizeof report - 1) > 0)
            answer(fd);
    } else if (!strcmp(how, "sendto")) {
        int fd = open_socket(SOCK_DGRAM);
        sendto(fd, report, sizeof report - 1, 0, (struct sockaddr *)&to, to_size);
        answer(fd);
    } else if (!strcmp(how, "connected")) {
        int fd = open_socket(SOCK_DGRAM);
        connect(fd, (struct sockaddr *)&to, to_size);
        send(fd, report, sizeof report - 1, 0);
        answer(fd);
    } else if (!strcmp(how, "reconnected")) {
        /* strace reads a socket's peer once and keeps it: the resolver, though the data goes elsewhere. */
        struct sockaddr_in first = {.sin_family = AF_INET, .sin_port = htons(53)}, own;
        socklen_t own_size = sizeof own;
        inet_pton(AF_INET, "10.200.0.1", &first.sin_addr);
        int fd = open_socket(SOCK_DGRAM);
        connect(fd, (struct sockaddr *)&first, sizeof first);
        getsockname(fd, (struct sockaddr *)&own, &own_size);
        connect(fd, (struct sockaddr *)&to, to_size);
        send(fd, report, sizeof report - 1, 0);
        answer(fd);
    } else if (!strcmp(how, "sendmmsg")) {
        int fd = open_socket(SOCK_DGRAM);
        struct iovec part = {(void *)report, sizeof report - 1};
        struct mmsghdr messages[2];
        memset(messages, 0, sizeof messages);
        for (int i = 0; i < 2; i++) {
            messages[i].msg_hdr.msg_name = &to;
            messages[i].msg_hdr.msg_namelen = to_size;
            messages[i].msg_hdr.msg_iov = &part;
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        sendmmsg(fd, messages, 2, 0);
        answer(fd);
    } else if (!strcmp(how, "ping")) {
        /* RFC 792: type 8, code 0, checksum and identifier by the kernel, a sequence number, then any data. */
        char echo[8 + sizeof report - 1] = {8, 0, 0, 0, 0, 0, 0, 1};
        struct timeval wait = {5, 0};
        int fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        memcpy(echo + 8, report, sizeof report - 1);
        sendto(fd, echo, sizeof echo, 0, (struct sockaddr *)&to, to_size);
        answer(fd);
    } else if (!strcmp(how, "connect-only")) {
        int fd = open_socket(SOCK_DGRAM);
        connect(fd, (struct sockaddr *)&to, to_size);
        close(fd);
    } else {
        return 2;
    }
    return 0;
}
