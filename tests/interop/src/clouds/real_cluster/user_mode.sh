# Boots User Mode Linux, a kernel that is a process of this host, and runs the suite in it.
#
# From the environment: WORK (folder for what is made, on the file system of the images), KERNEL (the program), DEBIAN
# and IMAGE (root file system and node image), IMAGES (their folder, where the machine finds them as well), COMMAND (what
# to run). The console goes to standard output. Nothing of the host is changed: the machine sees its files read-only.
set -eu
umask 022

echo "user mode: disk"
# Hard links, which take no space on the host; they are single files on the disk, too.
mkdir "$WORK/disk"
cp -al "$DEBIAN" "$IMAGE" "$WORK/disk/"
truncate -s 12G "$WORK/disk.img"
# Nothing is kept after the machine ends, so it needs no journal.
mke2fs -q -F -t ext4 -O ^has_journal -d "$WORK/disk" "$WORK/disk.img"
rm -rf "$WORK/disk"

cat > "$WORK/play" <<PLAY
#!/bin/sh
export PATH='$PATH' HOME='$HOME' TMPDIR=/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t ext4 /dev/ubda '$IMAGES'
ip link set lo up
echo "user mode: Linux \$(uname -r), control groups v2 with \$(cat /sys/fs/cgroup/cgroup.controllers)"
$COMMAND 2>&1
echo "user mode: ended with \$?"
echo o > /proc/sysrq-trigger
sleep 60
PLAY
chmod 755 "$WORK/play"

echo "user mode: boots"
# Its memory is a file of TMPDIR, which must be in memory itself. One processor: threads of one program are
# serialized anyway, and contention of two makes Go programs three times slower.
TMPDIR=/dev/shm setpriv --pdeathsig KILL "$KERNEL" mem=6G seccomp=on con=null con0=null,fd:1 quiet panic=-1 \
  cgroup_no_v1=all root=/dev/root rootfstype=hostfs rootflags=/ ro ubd0="$WORK/disk.img" init="$WORK/play" < /dev/null | tee "$WORK/console"
grep -q '^user mode: ended with 0' "$WORK/console"
