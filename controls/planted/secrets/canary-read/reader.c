/* Read a planted secret, or only touch it, in many ways. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];

static void drain(int fd) {
    while (fd >= 0 && read(fd, buffer, sizeof buffer) > 0) {
    }
    close(fd);
}

static void pass(int to, int fd) {
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(to, &message, 0);
}

static int take(int from) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "", *home = getenv("HOME");
    if (!home)
        return 2;
    char key[512], other[512];
    struct stat facts;
    snprintf(key, sizeof key, "%s/.ssh/id_ed25519", home);
    if (!strcmp(how, "absolute")) {
        drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "relative")) {
        drain(open("../.ssh/id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "chdir")) {
        if (chdir(home) == 0 && chdir(".ssh") == 0)
            drain(open("id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "dirfd")) {
        snprintf(other, sizeof other, "%s/.ssh", home);
        int folder = open(other, O_PATH | O_DIRECTORY);
        drain(openat(folder, "id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "symlink")) {
        symlink(key, "/tmp/notes.txt");
        drain(open("/tmp/notes.txt", O_RDONLY));
    } else if (!strcmp(how, "hardlink")) {
        snprintf(other, sizeof other, "%s/project/cache.dat", home);
        link(key, other);
        drain(open(other, O_RDONLY));
        unlink(other);
    } else if (!strcmp(how, "rename")) {
        snprintf(other, sizeof other, "%s/project/cache.dat", home);
        rename(key, other);
        drain(open(other, O_RDONLY));
        rename(other, key);
    } else if (!strcmp(how, "proc-root")) {
        snprintf(other, sizeof other, "/proc/self/root%s", key);
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "reopen")) {
        int handle = open(key, O_PATH);
        snprintf(other, sizeof other, "/proc/self/fd/%d", handle);
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (child == 0) {
            drain(open(key, O_RDONLY));
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "untraced")) {
        long child = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            drain(open(key, O_RDONLY));
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "inherited")) {
        int fd = open(key, O_RDONLY);
        snprintf(other, sizeof other, "%d", fd);
        execl(argv[0], argv[0], "drain", other, (char *)NULL);
    } else if (!strcmp(how, "drain")) {
        drain(atoi(argv[2]));
    } else if (!strcmp(how, "passed")) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        pid_t child = fork();
        if (child == 0) {
            drain(take(pair[1]));
            _exit(0);
        }
        pass(pair[0], open(key, O_RDONLY));
        waitpid(child, NULL, 0);
    } else if (!strcmp(how, "mmap")) {
        int fd = open(key, O_RDONLY);
        fstat(fd, &facts);
        volatile char *view = mmap(NULL, facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        return view[0] == '-' ? 0 : 1;
    } else if (!strcmp(how, "sendfile")) {
        int fd = open(key, O_RDONLY), to = open("/tmp/copy", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        sendfile(to, fd, NULL, 4096);
    } else if (!strcmp(how, "copy-range")) {
        int fd = open(key, O_RDONLY), to = open("copy.dat", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        copy_file_range(fd, NULL, to, NULL, 4096, 0);
    } else if (!strcmp(how, "preadv")) {
        struct iovec parts[2] = {{buffer, 8}, {buffer + 8, 2048}};
        preadv(open(key, O_RDONLY), parts, 2, 0);
    } else if (!strcmp(how, "look")) {
        struct statx more;
        stat(key, &facts);
        statx(AT_FDCWD, key, 0, STATX_ALL, &more);
        access(key, R_OK);
        readlink(key, other, sizeof other);
    } else if (!strcmp(how, "write-only")) {
        close(open(key, O_WRONLY | O_APPEND));
    } else if (!strcmp(how, "path-only")) {
        int fd = open(key, O_PATH);
        fstat(fd, &facts);
    } else if (!strcmp(how, "namesake")) {
        mkdir("/tmp/.ssh", 0700);
        int fd = open("/tmp/.ssh/id_ed25519", O_RDWR | O_CREAT, 0600);
        write(fd, "sample\n", 7);
        lseek(fd, 0, SEEK_SET);
        drain(fd);
    } else if (!strcmp(how, "mention")) {
        snprintf(other, sizeof other, "openat(AT_FDCWD, \"%s\", O_RDONLY) = 3<%s>\n", key, key);
        write(1, other, strlen(other));
        int fd = open("/tmp/ignore.txt", O_RDWR | O_CREAT, 0600);
        write(fd, other, strlen(other));
        lseek(fd, 0, SEEK_SET);
        drain(fd);
    } else if (!strcmp(how, "absent")) {
        snprintf(other, sizeof other, "%s/.ssh/id_rsa", home);
        drain(open(other, O_RDONLY));
    } else {
        return 2;
    }
    return 0;
}
