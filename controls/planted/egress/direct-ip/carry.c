/* Carry data to an address that no lookup named, by calls that are not the usual send. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static char report[] = "report: 3 files, 1 host\n";
static struct sockaddr_in to = {.sin_family = AF_INET};

static int dial(int protocol) {
    struct timeval wait = {5, 0};
    int fd = socket(AF_INET, SOCK_STREAM, protocol);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        exit(0);
    return fd;
}

static void answer(int fd) {
    char buffer[64];
    read(fd, buffer, sizeof buffer);
    close(fd);
}

static int note(void) {
    int fd = open("/tmp/note.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, report, sizeof report - 1);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void pass(int over, int fd) {
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(over, &message, 0);
}

static int take(int over) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(over, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    to.sin_port = htons(443);
    inet_pton(AF_INET, "198.51.100.23", &to.sin_addr);
    if (!strcmp(how, "sendfile")) {
        int fd = dial(0);
        sendfile(fd, note(), NULL, sizeof report - 1);
        answer(fd);
    } else if (!strcmp(how, "splice")) {
        int ends[2], fd = dial(0);
        if (pipe(ends) != 0)
            return 3;
        splice(note(), NULL, ends[1], NULL, sizeof report - 1, 0);
        splice(ends[0], NULL, fd, NULL, sizeof report - 1, 0);
        answer(fd);
    } else if (!strcmp(how, "writev")) {
        int fd = dial(0);
        struct iovec parts[2] = {{report, 8}, {report + 8, sizeof report - 9}};
        writev(fd, parts, 2);
        answer(fd);
    } else if (!strcmp(how, "mptcp")) {
        int fd = dial(IPPROTO_MPTCP);
        send(fd, report, sizeof report - 1, 0);
        answer(fd);
    } else if (!strcmp(how, "fastopen-connect")) {
        /* connect returns at once and sends nothing; the first write makes the connection. */
        struct timeval wait = {5, 0};
        int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on);
        connect(fd, (struct sockaddr *)&to, sizeof to);
        write(fd, report, sizeof report - 1);
        answer(fd);
    } else if (!strcmp(how, "passed")) {
        /* One process connects, another one has the descriptor and sends. */
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        pid_t child = fork();
        if (child == 0) {
            pass(pair[1], dial(0));
            _exit(0);
        }
        int fd = take(pair[0]);
        waitpid(child, NULL, 0);
        if (fd >= 0) {
            write(fd, report, sizeof report - 1);
            answer(fd);
        }
    } else if (!strcmp(how, "standard-output")) {
        /* The connection becomes standard output of a program that knows nothing of networks. */
        int fd = dial(0);
        close(note());
        dup2(fd, 1);
        close(fd);
        execl("/bin/cat", "cat", "/tmp/note.txt", (char *)NULL);
        return 4;
    } else if (!strcmp(how, "unix")) {
        /* The look-alike: the same bytes over a unix socket in the file system. */
        struct sockaddr_un box = {.sun_family = AF_UNIX, .sun_path = "/tmp/box"};
        int server = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(server, (struct sockaddr *)&box, sizeof box) != 0 || listen(server, 1) != 0)
            return 5;
        connect(fd, (struct sockaddr *)&box, sizeof box);
        write(fd, report, sizeof report - 1);
        answer(accept(server, NULL, NULL));
    } else {
        return 2;
    }
    return 0;
}
