#!/usr/bin/env bash
# Boots a root file system with its own systemd, in namespaces of its own: processes, mounts, network, cgroups. As root.
#   tests/install/boot.sh ROOT CGROUP     CGROUP: an empty folder of a cgroup v2 hierarchy
# Runs until it is killed, and everything in it ends with it. Nothing of the host is changed but ROOT.
set -euo pipefail

echo "$BASHPID" > "$2/cgroup.procs"
exec env --ignore-environment container=capstan-install PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  unshare --mount --uts --ipc --net --pid --cgroup --propagation private --fork --kill-child sh -euc '
  mount --bind "$0" "$0"
  cd "$0"
  mount -t proc -o nosuid,nodev,noexec proc proc
  # Settings of the kernel are the host'\''s.
  mount --bind proc/sys proc/sys
  mount -o remount,bind,ro proc/sys
  mount -t sysfs -o nosuid,nodev,noexec,ro sysfs sys
  mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
  mount -t tmpfs -o nosuid,mode=755 tmpfs dev
  for device in null zero full random urandom tty; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
  mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run
  hostname capstan-install
  pivot_root . .
  umount -l .
  exec /lib/systemd/systemd --log-target=console --unit=multi-user.target
' "$1"
