#!/bin/sh
# The guest's init: a quiet machine with every module loaded that a cell needs, then the agent.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
mount -t tmpfs -o mode=755,size=20% run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/pts /dev/shm
mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup 2>/dev/null
hostname guest
ip link set lo up
modprobe -a virtio_console virtio_rng virtio_net veth nf_tables nft_reject_inet nft_ct nft_redir nft_fib_inet \
    nft_chain_nat nft_log nf_log_syslog nfnetlink_log nf_conntrack unix af_packet packet_diag 2>/dev/null
echo 1 >/proc/sys/net/netfilter/nf_log_all_netns
tries=0
until port=$(grep -l '^mcpdetect$' /sys/class/virtio-ports/*/name 2>/dev/null) || [ $tries -gt 200 ]; do
    sleep 0.02
    tries=$((tries + 1))
done
port=${port%/name}
exec python3 -I /usr/local/lib/guest-agent.py "/dev/${port##*/}"
