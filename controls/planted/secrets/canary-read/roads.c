/* Read a planted secret by roads that few programs take, or do with it what gives no content. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char key[512], ssh[512], other[1024], buffer[4096];

static void drain(int fd) {
    while (fd >= 0 && read(fd, buffer, sizeof buffer) > 0) {
    }
    if (fd >= 0)
        close(fd);
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        exit(5);
    close(fd);
}

/* A user and mount namespace of the program's own, in which it may mount. */
static void apart(void) {
    char map[64];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        exit(6);
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", gid);
    put("/proc/self/gid_map", map);
}

/* A child that lives until it is killed, in a folder of its choice, perhaps with the file open or read. */
static pid_t helper(const char *folder, int opens, int reads, int *fd) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0)
        exit(3);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) != 0)
            _exit(1);
        int own = opens ? open(key, O_RDONLY) : -1;
        if (reads)
            read(own, buffer, sizeof buffer);
        byte = (char)own;
        write(ready[1], &byte, 1);
        pause();
        _exit(0);
    }
    read(ready[0], &byte, 1);
    if (fd)
        *fd = byte;
    return child;
}

static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static int run(const char *how) {
    struct stat facts;
    if (!strcmp(how, "pread")) {
        int fd = open(key, O_RDONLY);
        pread(fd, buffer, 64, 16);
    } else if (!strcmp(how, "readv")) {
        struct iovec parts[2] = {{buffer, 8}, {buffer + 8, 2048}};
        readv(open(key, O_RDONLY), parts, 2);
    } else if (!strcmp(how, "openat2")) {
        struct open_how way = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
        int folder = open(getenv("HOME"), O_PATH | O_DIRECTORY);
        drain(syscall(SYS_openat2, folder, ".ssh/id_ed25519", &way, sizeof way));
    } else if (!strcmp(how, "cwd-link")) {
        if (chdir(ssh) != 0)
            return 3;
        drain(open("/proc/self/cwd/id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "other-cwd")) {
        /* The working folder of another process is the way. */
        pid_t child = helper(ssh, 0, 0, NULL);
        snprintf(other, sizeof other, "/proc/%d/cwd/id_ed25519", child);
        drain(open(other, O_RDONLY));
        end(child);
    } else if (!strcmp(how, "other-root")) {
        pid_t child = helper("/", 0, 0, NULL);
        snprintf(other, sizeof other, "/proc/%d/root%s", child, key);
        drain(open(other, O_RDONLY));
        end(child);
    } else if (!strcmp(how, "other-descriptor")) {
        /* Another process opened it and never reads; its descriptor is opened anew. */
        int fd;
        pid_t child = helper("/", 1, 0, &fd);
        snprintf(other, sizeof other, "/proc/%d/fd/%d", child, fd);
        drain(open(other, O_RDONLY));
        end(child);
    } else if (!strcmp(how, "pidfd-getfd")) {
        int fd;
        pid_t child = helper("/", 1, 0, &fd);
        int process = syscall(SYS_pidfd_open, child, 0);
        drain(syscall(SYS_pidfd_getfd, process, fd, 0));
        end(child);
    } else if (!strcmp(how, "other-memory")) {
        /* A child reads the file; the parent takes it from the child's memory. */
        pid_t child = helper("/", 1, 1, NULL);
        struct iovec here = {buffer, sizeof buffer}, there = {buffer, sizeof buffer};
        process_vm_readv(child, &here, 1, &there, 1, 0);
        end(child);
    } else if (!strcmp(how, "shared-table")) {
        /* The child shares the table of descriptors: it opens, the parent reads the same number. */
        long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            int fd = open(key, O_RDONLY);
            dup2(fd, 9);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        drain(9);
    } else if (!strcmp(how, "standard-input")) {
        /* The file becomes standard input of a program that opens nothing. */
        dup2(open(key, O_RDONLY), 0);
        execl("/bin/cat", "cat", (char *)NULL);
        return 4;
    } else if (!strcmp(how, "folder-link")) {
        symlink(ssh, "/tmp/things");
        drain(open("/tmp/things/id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "two-links")) {
        symlink("/tmp/second", "/tmp/first");
        symlink(key, "/tmp/second");
        drain(open("/tmp/first", O_RDONLY));
    } else if (!strcmp(how, "folder-renamed")) {
        snprintf(other, sizeof other, "%s/.cache", getenv("HOME"));
        rename(ssh, other);
        strcat(other, "/id_ed25519");
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "exchanged")) {
        /* renameat2 swaps two names; the secret lies under the harmless one then. */
        snprintf(other, sizeof other, "%s/project/a.txt", getenv("HOME"));
        put(other, "nothing\n");
        renameat2(AT_FDCWD, key, AT_FDCWD, other, RENAME_EXCHANGE);
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "link-by-descriptor")) {
        /* A descriptor without a right to read gets a second name, and that is opened. */
        char own[64];
        int fd = open(key, O_PATH);
        snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
        snprintf(other, sizeof other, "%s/project/b.txt", getenv("HOME"));
        linkat(AT_FDCWD, own, AT_FDCWD, other, AT_SYMLINK_FOLLOW);
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "tee")) {
        int one[2], two[2], to = open("/dev/null", O_WRONLY);
        if (pipe(one) != 0 || pipe(two) != 0)
            return 3;
        ssize_t size = splice(open(key, O_RDONLY), NULL, one[1], NULL, 4096, 0);
        tee(one[0], two[1], size, 0);
        splice(two[0], NULL, to, NULL, size, 0);
    } else if (!strcmp(how, "aio")) {
        /* The old asynchronous calls. */
        aio_context_t context = 0;
        struct io_event done;
        struct iocb job = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = (uintptr_t)buffer, .aio_nbytes = 2048};
        struct iocb *jobs[] = {&job};
        job.aio_fildes = open(key, O_RDONLY);
        syscall(SYS_io_setup, 1, &context);
        syscall(SYS_io_submit, context, 1, jobs);
        syscall(SYS_io_getevents, context, 1, 1, &done, NULL);
    } else if (!strcmp(how, "map-shared")) {
        int fd = open(key, O_RDONLY);
        fstat(fd, &facts);
        volatile char *view = mmap(NULL, facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        return view[0] == '-' ? 0 : 1;
    } else if (!strcmp(how, "chroot")) {
        apart();
        if (chroot(getenv("HOME")) != 0)
            return 7;
        drain(open("/.ssh/id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "overlay")) {
        apart();
        mkdir("/tmp/merged", 0700);
        mkdir("/tmp/second", 0700);
        snprintf(other, sizeof other, "lowerdir=%s:/tmp/second", ssh);
        if (mount("overlay", "/tmp/merged", "overlay", MS_RDONLY, other) != 0)
            return 8;
        drain(open("/tmp/merged/id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "detached-mount")) {
        /* A copy of the mount that hangs nowhere. */
        apart();
        int tree = syscall(SYS_open_tree, AT_FDCWD, ssh, 1 /* OPEN_TREE_CLONE */);
        if (tree < 0)
            return 8;
        drain(openat(tree, "id_ed25519", O_RDONLY));
    } else if (!strcmp(how, "detached-mount-mapped")) {
        apart();
        int tree = syscall(SYS_open_tree, AT_FDCWD, ssh, 1 /* OPEN_TREE_CLONE */);
        int fd = openat(tree, "id_ed25519", O_RDONLY);
        if (fd < 0)
            return 8;
        volatile char *view = mmap(NULL, 64, PROT_READ, MAP_PRIVATE, fd, 0);
        return view[0] == '-' ? 0 : 1;
    } else if (!strcmp(how, "handle-refused")) {
        /* A handle can be asked for by anybody; opening it takes a right that the program lacks. */
        struct {
            struct file_handle head;
            unsigned char rest[MAX_HANDLE_SZ];
        } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
        int mount_id;
        name_to_handle_at(AT_FDCWD, key, &handle.head, &mount_id, 0);
        drain(open_by_handle_at(open(ssh, O_RDONLY | O_DIRECTORY), &handle.head, O_RDONLY));
    } else if (!strcmp(how, "overlay-mapped")) {
        apart();
        mkdir("/tmp/merged", 0700);
        mkdir("/tmp/second", 0700);
        snprintf(other, sizeof other, "lowerdir=%s:/tmp/second", ssh);
        if (mount("overlay", "/tmp/merged", "overlay", MS_RDONLY, other) != 0)
            return 8;
        int fd = open("/tmp/merged/id_ed25519", O_RDONLY);
        volatile char *view = mmap(NULL, 64, PROT_READ, MAP_PRIVATE, fd, 0);
        return view[0] == '-' ? 0 : 1;
    } else if (!strcmp(how, "bind-relative")) {
        /* What is bound is named from the working folder. */
        apart();
        put("/tmp/notes.txt", "");
        if (mount("../.ssh/id_ed25519", "/tmp/notes.txt", NULL, MS_BIND, NULL) != 0)
            return 8;
        int fd = open("/tmp/notes.txt", O_RDONLY);
        volatile char *view = mmap(NULL, 64, PROT_READ, MAP_PRIVATE, fd, 0);
        return view[0] == '-' ? 0 : 1;
    } else if (!strcmp(how, "look-further")) {
        /* Everything there is to know of a file but its content. */
        struct {
            struct file_handle head;
            unsigned char rest[MAX_HANDLE_SZ];
        } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
        struct statvfs room;
        int mount_id;
        name_to_handle_at(AT_FDCWD, key, &handle.head, &mount_id, 0);
        statvfs(key, &room);
        listxattr(key, buffer, sizeof buffer);
        getxattr(key, "user.note", buffer, sizeof buffer);
        pathconf(key, _PC_LINK_MAX);
    } else if (!strcmp(how, "watch")) {
        int watcher = inotify_init1(IN_NONBLOCK);
        inotify_add_watch(watcher, ssh, IN_ALL_EVENTS);
        inotify_add_watch(watcher, key, IN_ALL_EVENTS);
        read(watcher, buffer, sizeof buffer);
    } else if (!strcmp(how, "rename-only")) {
        snprintf(other, sizeof other, "%s.old", key);
        rename(key, other);
        stat(other, &facts);
        rename(other, key);
    } else if (!strcmp(how, "link-only")) {
        snprintf(other, sizeof other, "%s/project/c.txt", getenv("HOME"));
        link(key, other);
        symlink(key, "/tmp/d.txt");
        readlink("/tmp/d.txt", buffer, sizeof buffer);
        unlink(other);
    } else if (!strcmp(how, "remove")) {
        unlink(key);
        drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "replaced")) {
        /* The name is the secret's; what lies there now is the program's own. */
        unlink(key);
        put(key, "made by the program itself\n");
        drain(open(key, O_RDONLY));
    } else if (!strcmp(how, "emptied")) {
        truncate(key, 0);
        struct stat now;
        stat(key, &now);
    } else if (!strcmp(how, "overwritten")) {
        int fd = open(key, O_WRONLY | O_TRUNC);
        write(fd, "new\n", 4);
        close(fd);
    } else if (!strcmp(how, "folder-only")) {
        int folder = open(ssh, O_RDONLY | O_DIRECTORY);
        syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        fsync(folder);
        close(folder);
    } else if (!strcmp(how, "not-followed")) {
        /* A link to the secret, opened so that no link is followed. */
        symlink(key, "/tmp/e.txt");
        drain(open("/tmp/e.txt", O_RDONLY | O_NOFOLLOW));
    } else if (!strcmp(how, "beneath")) {
        /* A way out of the folder is refused by the kernel. */
        struct open_how way = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
        int folder = open(".", O_PATH | O_DIRECTORY);
        drain(syscall(SYS_openat2, folder, "../.ssh/id_ed25519", &way, sizeof way));
    } else if (!strcmp(how, "neighbours")) {
        /* Files beside the secret, whose names begin alike. */
        snprintf(other, sizeof other, "%s.pub", key);
        put(other, "ssh-ed25519 AAAA dev\n");
        drain(open(other, O_RDONLY));
        snprintf(other, sizeof other, "%s/known_hosts", ssh);
        put(other, "git.example.com ssh-ed25519 AAAA\n");
        drain(open(other, O_RDONLY));
    } else if (!strcmp(how, "mode-only")) {
        chmod(key, 0400);
        utimensat(AT_FDCWD, key, NULL, 0);
        access(key, R_OK);
        chmod(key, 0600);
    } else {
        return 2;
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *home = getenv("HOME");
    if (!home || argc < 2)
        return 2;
    snprintf(ssh, sizeof ssh, "%s/.ssh", home);
    snprintf(key, sizeof key, "%s/.ssh/id_ed25519", home);
    prctl(PR_SET_DUMPABLE, 1);
    return run(argv[1]);
}
