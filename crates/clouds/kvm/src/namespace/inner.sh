# Runs as process 1 of a machine's namespaces, still on the host's root: creates the machine's root, switches to it
# and becomes its init. All mounts here end with the namespace.
#
# From the environment: DIR (the machine's directory), IMAGE, NAME, ADDRESS, HIERARCHIES, ARRANGEMENT, VOLUMES (one per
# line: rw|ro, host path, path in the machine; tabs between).
set -e
umask 022

# The pid and start time of this process on the host.
read -r line < /proc/self/stat
set -- $line
echo "$1 ${22}" > "$DIR/pid.unfinished"
mv "$DIR/pid.unfinished" "$DIR/pid"

hostname "$NAME"
cd "$DIR"
# Paths may contain the option separators of overlayfs, so they are relative.
mkdir -p root upper work
ln -sfn "$IMAGE" image
mount -t overlay -o "lowerdir=image/kit:image/base,upperdir=upper,workdir=work" overlay root
cd root

mkdir -p proc sys dev run tmp oldroot
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755,size=64k tmpfs dev
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "kmsg 1 11"; do
  set -- $device
  mknod -m 666 "dev/$1" c "$2" "$3"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp

if [ "$ARRANGEMENT" = v2 ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  for hierarchy in $HIERARCHIES; do
    point=${hierarchy#name=}
    mkdir "sys/fs/cgroup/$point"
    case $hierarchy in
      unified) mount -t cgroup2 cgroup2 "sys/fs/cgroup/$point" ;;
      name=*) mount -t cgroup -o "none,$hierarchy" cgroup "sys/fs/cgroup/$point" ;;
      *)
        mount -t cgroup -o "$hierarchy" cgroup "sys/fs/cgroup/$point"
        case $hierarchy in
          *,*) for one in $(echo "$hierarchy" | tr , ' '); do ln -s "$point" "sys/fs/cgroup/$one"; done ;;
        esac
        ;;
    esac
  done
fi

# A kubelet requires sysctls that are global to the host: it sees its values, and the host's stay unchanged.
mkdir -p "$DIR/sysctl"
while read -r path value; do
  [ -e "proc/sys/$path" ] || continue
  file="$DIR/sysctl/$(echo "$path" | tr / .)"
  echo "$value" > "$file"
  mount --bind "$file" "proc/sys/$path"
done <<SYSCTL
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SYSCTL
if [ -e "$DIR/cpuinfo" ]; then mount --bind "$DIR/cpuinfo" proc/cpuinfo; fi

# overlayfs cannot be stacked on overlayfs: containerd's directory is on the host's file system.
for name in containerd kubelet etcd; do
  mkdir -p "$DIR/var/$name" "var/lib/$name"
  mount --bind "$DIR/var/$name" "var/lib/$name"
done
mkdir -p run/capstan var/lib/capstan
mount --bind "$DIR/boot" run/capstan
mount --bind "$DIR/status" var/lib/capstan
printf '%s\n' "$VOLUMES" | while IFS="$(printf '\t')" read -r mode from to; do
  [ -n "$to" ] || continue
  mkdir -p ".$to"
  mount --rbind "$from" ".$to"
  if [ "$mode" = ro ]; then mount -o remount,bind,ro ".$to"; fi
done

echo "$NAME" > etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "$ADDRESS" "$NAME" > etc/hosts
cp "$DIR/resolv.conf" etc/resolv.conf
cp "$DIR/machine-id" etc/machine-id

pivot_root . oldroot
exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  ARRANGEMENT="$ARRANGEMENT" /bin/sh /run/capstan/init.sh
