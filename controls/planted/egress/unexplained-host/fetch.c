/* Fetch one document from a named host. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *host = argc == 2 && !strcmp(argv[1], "collector") ? "collector.example.net" : "api.example.com";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    char request[512], answer[256];
    if (getaddrinfo(host, "80", &hints, &found) != 0)
        return 1;
    for (struct addrinfo *one = found; one; one = one->ai_next) {
        int fd = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
        if (connect(fd, one->ai_addr, one->ai_addrlen) == 0) {
            snprintf(request, sizeof request, "GET /status HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
            send(fd, request, strlen(request), 0);
            recv(fd, answer, sizeof answer, 0);
            close(fd);
            return 0;
        }
        close(fd);
    }
    return 1;
}
