/* Try to reach an address once, and give up as an ordinary client would. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sockaddr_storage to = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;
    socklen_t size = sizeof *four, error_size = sizeof(int);
    int error = 0;
    char buffer[64];
    if (argc == 2 && !strcmp(argv[1], "nothing"))
        return 0;
    if (argc != 4)
        return 2;
    if (inet_pton(AF_INET, argv[2], &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(atoi(argv[3]));
    } else if (inet_pton(AF_INET6, argv[2], &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(atoi(argv[3]));
        size = sizeof *six;
    } else {
        return 2;
    }
    if (!strcmp(argv[1], "udp")) {
        int fd = socket(to.ss_family, SOCK_DGRAM, 0);
        struct pollfd wait = {fd, POLLIN, 0};
        if (sendto(fd, "ping\n", 5, 0, (struct sockaddr *)&to, size) == 5 && poll(&wait, 1, 700) == 1)
            recv(fd, buffer, sizeof buffer, 0);
        close(fd);
        return 0;
    }
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct pollfd wait = {fd, POLLOUT, 0};
    if (connect(fd, (struct sockaddr *)&to, size) != 0) {
        if (errno != EINPROGRESS || poll(&wait, 1, !strcmp(argv[1], "patient") ? 4500 : 1500) != 1)
            return 1;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 || error != 0)
            return 1;
    }
    send(fd, "ping\n", 5, 0);
    wait.events = POLLIN;
    if (poll(&wait, 1, 1500) == 1)
        recv(fd, buffer, sizeof buffer, 0);
    close(fd);
    return 0;
}
