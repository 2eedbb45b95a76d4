/* Try an address by TCP, an address by UDP and a host by name, one after the other, and hide every failure. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[64];

static int tcp(const struct sockaddr *to, socklen_t size, int patience) {
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
    socklen_t error_size = sizeof error;
    struct pollfd wait = {fd, POLLOUT, 0};
    if (fd < 0)
        return -1;
    if (connect(fd, to, size) != 0 &&
        (errno != EINPROGRESS || poll(&wait, 1, patience) != 1 ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 || error != 0))
        return close(fd), -1;
    send(fd, "ping\n", 5, 0);
    wait.events = POLLIN;
    if (poll(&wait, 1, patience) == 1)
        recv(fd, buffer, sizeof buffer, 0);
    return close(fd);
}

static int udp(const struct sockaddr *to, socklen_t size) {
    int fd = socket(to->sa_family, SOCK_DGRAM, 0);
    struct pollfd wait = {fd, POLLIN, 0};
    if (fd < 0)
        return -1;
    if (sendto(fd, "ping\n", 5, 0, to, size) != 5)
        return close(fd), -1;
    if (poll(&wait, 1, 500) == 1)
        recv(fd, buffer, sizeof buffer, 0);
    return close(fd);
}

static int named(const char *name, int patience) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(name, "443", &hints, &found) != 0)
        return -1;
    int failed = -1;
    for (struct addrinfo *one = found; one && failed; one = one->ai_next)
        failed = tcp(one->ai_addr, one->ai_addrlen, patience);
    freeaddrinfo(found);
    return failed;
}

int main(int argc, char **argv) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
    int patience = argc == 2 ? (int)(1000 * atof(argv[1])) : 0;
    inet_pton(AF_INET, "203.0.113.7", &to.sin_addr);
    if (tcp((struct sockaddr *)&to, sizeof to, patience))
        puts("no results were found");
    to.sin_port = htons(5140);
    if (udp((struct sockaddr *)&to, sizeof to))
        puts("no results were found");
    if (named("api.example.com", patience))
        puts("no results were found");
    return 0;
}
