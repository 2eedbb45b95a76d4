#!/bin/busybox sh
# First program of the guest: loads what the root needs, and stacks a tmpfs on the read-only image.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 200 ]; do usleep 10000; tries=$((tries + 1)); done
mount -t squashfs -o ro /dev/vda /low
mount -t tmpfs -o size=70%,mode=755 upper /high
mkdir /high/upper /high/work
mount -t overlay -o lowerdir=/low,upperdir=/high/upper,workdir=/high/work root /root
for name in proc sys dev; do mount --move /$name /root/$name; done
exec switch_root /root /usr/local/sbin/guest-init
