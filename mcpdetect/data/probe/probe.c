/* mcpdetect probe: harmless acts with a nonce, one or more for each kind of event that a sandbox can record.
 *
 *   cc -O1 -static -o probe probe.c
 *   ./probe before NONCE [MS]        before the program under test starts
 *   ./probe after NONCE [MS]         after it ended, with another nonce
 *   ./probe around UID NONCE REPORT ANSWER FOLDER PROGRAM ARGUMENT...
 *                                    for recorders: probe as user UID, run PROGRAM as that user, write "ended STATUS"
 *                                    to descriptor REPORT, read the second nonce from descriptor ANSWER (empty: no
 *                                    second probe), probe again, and end as PROGRAM did
 *
 * NONCE is 16 hexadecimal digits; MS is how long answers are waited for in all (200). It asks for one name below
 * mcpdetect-probe.test, connects to one address in 198.18.0.0/15 and one in 2001:db8::/32, and removes its file.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned char raw[8];
static char text[64];

static int nonce_of(const char *word)
{
    if (strlen(word) != 16 || strspn(word, "0123456789abcdef") != 16)
        return 0;
    for (int at = 0; at < 8; at++) {
        char pair[3] = {word[2 * at], word[2 * at + 1], 0};
        raw[at] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return 1;
}

/* Files: make, write, look at, read, remove. */
static void files(const char *nonce)
{
    const char *folder = getenv("TMPDIR");
    char path[512], buffer[128];
    struct stat info;
    snprintf(path, sizeof path, "%s/mcpdetect-probe-%s", folder && *folder ? folder : "/tmp", nonce);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, text, strlen(text)) > 0 && !stat(path, &info) && !access(path, R_OK)) {
        lseek(fd, 0, SEEK_SET);
        if (read(fd, buffer, sizeof buffer) > 0)
            (void)!pread(fd, buffer, sizeof buffer, 0);
    }
    close(fd);
    unlink(path);
}

/* Programs: a child that is this program again, and one that is not there. */
static void programs(char *self, const char *phase, const char *nonce)
{
    char missing[64];
    char *again[] = {self, (char *)phase, (char *)nonce, "child", NULL};
    char *nobody[] = {missing, (char *)phase, (char *)nonce, NULL};
    char *nothing[] = {NULL};
    snprintf(missing, sizeof missing, "/mcpdetect-probe-%s", nonce);
    execve(missing, nobody, nothing);
    pid_t child = vfork();
    if (!child) {
        execve("/proc/self/exe", again, nothing);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Sockets that stay on this machine: a pair with a passed descriptor, a listener, a connection to it. */
static void local_sockets(const char *nonce)
{
    int pair[2], passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char byte = 'p', space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (passed >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &passed, sizeof(int));
        if (sendmsg(pair[0], &message, 0) == 1)
            recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC);
        close(pair[0]);
        close(pair[1]);
    }
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    int size = snprintf(place.sun_path + 1, sizeof place.sun_path - 1, "mcpdetect-probe-%s", nonce);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server >= 0 && client >= 0 && !bind(server, (struct sockaddr *)&place, length) && !listen(server, 1))
        connect(client, (struct sockaddr *)&place, length);
    close(client);
    close(server);
    int memory = memfd_create("mcpdetect-probe", MFD_CLOEXEC);
    if (memory >= 0)
        close(memory);
}

/* A question for the A record of the probe's name, to the first name server of resolv.conf. */
static int ask(const char *phase, const char *nonce)
{
    unsigned char query[128] = {0x4d, 0x50, 1, 0, 0, 1};
    const char *labels[] = {nonce, phase, "mcpdetect-probe", "test"};
    size_t at = 12;
    char line[256], server[64];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    for (int one = 0; one < 4; one++) {
        size_t size = strlen(labels[one]);
        query[at++] = (unsigned char)size;
        memcpy(query + at, labels[one], size);
        at += size;
    }
    at += 1;
    query[at + 1] = 1;
    query[at + 3] = 1;
    at += 4;
    FILE *conf = fopen("/etc/resolv.conf", "re");
    int fd = -1;
    while (conf && fgets(line, sizeof line, conf))
        if (sscanf(line, "nameserver %63s", server) == 1) {
            if (inet_pton(AF_INET, server, &to.sin_addr) == 1) {
                fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                sendto(fd, query, at, 0, (struct sockaddr *)&to, sizeof to);
            } else if (inet_pton(AF_INET6, server, &to6.sin6_addr) == 1) {
                fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                sendto(fd, query, at, 0, (struct sockaddr *)&to6, sizeof to6);
            }
            break;
        }
    if (conf)
        fclose(conf);
    return fd;
}

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000L + time.tv_nsec / 1000000L;
}

/* The network: everything is begun at once, then answers are waited for. */
static void network(const char *phase, const char *nonce, long wait)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct pollfd all[4];
    int streams[4] = {0}, many = 0;
    char buffer[512];
    unsigned port = 20000u + (((unsigned)raw[3] << 8 | raw[4]) & 0x7fffu);
    four.sin_port = six.sin6_port = htons((unsigned short)port);
    unsigned char bytes4[4] = {198, (unsigned char)(18 + raw[0] % 2), raw[1], raw[2]};
    memcpy(&four.sin_addr, bytes4, 4);
    memcpy(six.sin6_addr.s6_addr, "\x20\x01\x0d\xb8", 4);
    memcpy(six.sin6_addr.s6_addr + 8, raw, 8);

    int fd = ask(phase, nonce);
    if (fd >= 0)
        all[many++] = (struct pollfd){fd, POLLIN, 0};
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        sendto(fd, text, strlen(text), 0, (struct sockaddr *)&four, sizeof four);
        all[many++] = (struct pollfd){fd, POLLIN, 0};
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        streams[many] = !connect(fd, (struct sockaddr *)&four, sizeof four) || errno == EINPROGRESS;
        all[many++] = (struct pollfd){fd, POLLOUT, 0};
    }
    fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        streams[many] = !connect(fd, (struct sockaddr *)&six, sizeof six) || errno == EINPROGRESS;
        all[many++] = (struct pollfd){fd, POLLOUT, 0};
    }
    for (int one = 0; one < many; one++)
        if (all[one].events == POLLOUT && !streams[one])
            all[one].fd = -1 - all[one].fd;
    long end = now_ms() + wait, left;
    while ((left = end - now_ms()) > 0 && poll(all, (nfds_t)many, (int)left) > 0) {
        int open = 0;
        for (int one = 0; one < many; one++) {
            if (all[one].fd < 0 || !all[one].revents) {
                open += all[one].fd >= 0;
                continue;
            }
            int status = 0;
            socklen_t size = sizeof status;
            if (streams[one] == 1) {
                getsockopt(all[one].fd, SOL_SOCKET, SO_ERROR, &status, &size);
                if (!status && write(all[one].fd, text, strlen(text)) > 0) {
                    streams[one] = 2;
                    all[one].events = POLLIN;
                    open++;
                    continue;
                }
            } else
                (void)!recv(all[one].fd, buffer, sizeof buffer, 0);
            close(all[one].fd);
            all[one].fd = -1;
        }
        if (!open)
            break;
    }
    for (int one = 0; one < many; one++)
        close(all[one].fd >= 0 ? all[one].fd : -1 - all[one].fd);
}

static int probe(char *self, const char *phase, const char *nonce, long wait)
{
    if (!nonce_of(nonce))
        return 2;
    snprintf(text, sizeof text, "mcpdetect-probe %s %s", phase, nonce);
    files(nonce);
    programs(self, phase, nonce);
    local_sockets(nonce);
    network(phase, nonce, wait);
    return 0;
}

/* Run argv as another user and return its wait status. */
static int as_user(uid_t user, char **argv, const char *folder)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        if (setgroups(0, NULL) || setgid(user) || setuid(user) || chdir(folder))
            _exit(126);
        execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0)
        return 126 << 8;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static int around(char *self, char **argv)
{
    uid_t user = (uid_t)strtoul(argv[2], NULL, 10);
    int report = atoi(argv[4]), answer = atoi(argv[5]);
    char *before[] = {self, "before", argv[3], NULL};
    char nonce[17] = {0}, line[64];
    signal(SIGPIPE, SIG_IGN);
    fcntl(report, F_SETFD, FD_CLOEXEC);
    fcntl(answer, F_SETFD, FD_CLOEXEC);
    /* Standard input and output are the program's alone. */
    as_user(user, before, "/");
    signal(SIGPIPE, SIG_DFL);
    int status = as_user(user, argv + 7, argv[6]);
    signal(SIGPIPE, SIG_IGN);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    /* What the program wrote to is closed, so that its reader sees the end. */
    close(0);
    close(1);
    int size = snprintf(line, sizeof line, "ended %d\n", code);
    (void)!write(report, line, (size_t)size);
    size_t got = 0;
    while (got < 16) {
        ssize_t part = read(answer, nonce + got, 16 - got);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break;
        got += (size_t)part;
    }
    if (got == 16) {
        char *after[] = {self, "after", nonce, NULL};
        as_user(user, after, "/");
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc >= 8 && !strcmp(argv[1], "around"))
        return around(argv[0], argv);
    if (argc == 4 && !strcmp(argv[3], "child"))
        return 0;
    if ((argc == 3 || argc == 4) && (!strcmp(argv[1], "before") || !strcmp(argv[1], "after")))
        if (!probe(argv[0], argv[1], argv[2], argc == 4 ? atol(argv[3]) : 200))
            return 0;
    fputs("usage: probe before|after NONCE [MS]   (NONCE: 16 hexadecimal digits)\n", stderr);
    return 2;
}
