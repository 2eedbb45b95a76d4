/* Take the network away from a program by a policy on its own system calls, as sandboxes do, then become it.
 *
 *   cc -O1 -static -o confine confine.c
 *   ./confine POLICY PROGRAM ARGUMENT...
 *
 * POLICY   seccomp-socket    socket() of IPv4, IPv6 and raw packets: EPERM
 *          seccomp-family    the same: EAFNOSUPPORT, as systemd's RestrictAddressFamilies= answers
 *          seccomp-connect   connect(): EPERM, of any family; sends without connect still work
 *          seccomp-send      connect(), sendto() with an address, sendmsg() and sendmmsg(): EACCES
 *          landlock          Landlock without any rule for TCP: connect() and bind() of TCP: EACCES
 *
 * A filter cannot see what goes through io_uring, so every seccomp policy refuses io_uring_setup() with EPERM.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "which system calls does this machine have?"
#endif
#define X32_BIT 0x40000000u

static struct sock_filter code[64];
static unsigned short used;

static void add(unsigned short what, uint32_t value, unsigned char yes, unsigned char no)
{
    code[used++] = (struct sock_filter){what, yes, no, value};
}

static void load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(int error)
{
    add(BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW, 0, 0);
}

/* A call refused whatever it is given. The number of the call is loaded. */
static void refuse(uint32_t call, int error)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    answer(error);
}

/* socket(domain, ...) refused for the families of the network. */
static void refuse_families(int error)
{
    static const uint32_t families[] = {AF_INET, AF_INET6, AF_PACKET};
    const unsigned char number = sizeof families / sizeof *families;
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, (unsigned char)(2 * number + 2));
    load(offsetof(struct seccomp_data, args[0]));
    for (unsigned char i = 0; i < number; i++)
        refuse(families[i], error);
    answer(0);
}

/* sendto(..., address, size) refused where there is an address: send(2) of a connected socket goes on. */
static void refuse_addressed(int error)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 6);
    load(offsetof(struct seccomp_data, args[4]));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
    load(offsetof(struct seccomp_data, args[4]) + 4);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    answer(error);
    answer(0);
}

static int filter(const char *policy)
{
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    answer(EPERM);
    load(offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(EPERM);
    refuse(SYS_io_uring_setup, EPERM);
    if (!strcmp(policy, "seccomp-socket"))
        refuse_families(EPERM);
    else if (!strcmp(policy, "seccomp-family"))
        refuse_families(EAFNOSUPPORT);
    else if (!strcmp(policy, "seccomp-connect"))
        refuse(SYS_connect, EPERM);
    else if (!strcmp(policy, "seccomp-send")) {
        refuse(SYS_connect, EACCES);
        refuse(SYS_sendmsg, EACCES);
        refuse(SYS_sendmmsg, EACCES);
        refuse_addressed(EACCES);
    } else
        return -1;
    answer(0);
    struct sock_fprog program = {used, code};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("confine: seccomp");
        return 1;
    }
    return 0;
}

/* linux/landlock.h of Debian 12 does not know of networks yet. */
static int landlock(void)
{
    const struct {
        uint64_t files, net;
    } handled = {0, 3}; /* LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP */
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (abi < 4) {
        fprintf(stderr, "confine: Landlock here has ABI %ld; rules for TCP came with 4 (Linux 6.7)\n", abi);
        return 1;
    }
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (rules < 0 || syscall(SYS_landlock_restrict_self, rules, 0) != 0) {
        perror("confine: landlock");
        return 1;
    }
    close(rules);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 2;
    int failed = strcmp(argv[1], "landlock") ? filter(argv[1]) : landlock();
    if (failed < 0)
        fprintf(stderr, "confine: no policy %s\n", argv[1]);
    if (failed)
        return 2;
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
