#!/bin/busybox sh
# PID 1 of the initrd: load the disk driver, mount the root disk, hand over.
/bin/busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do /bin/busybox insmod "/modules/$module"; done < /modules/order
tries=0
until [ -b /dev/vda ] || [ "$tries" -ge 200 ]; do /bin/busybox usleep 50000; tries=$((tries + 1)); done
/bin/busybox mount -t ext4 -o rw,noatime /dev/vda /root || { echo "initrd: no root disk"; exec /bin/busybox poweroff -f; }
/bin/busybox mount --move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
