#!/usr/bin/env bash
# Installs, runs, upgrades, removes and purges the Debian package on a clean Debian that its own systemd has booted.
# As root, on a machine with Debian's debootstrap and dpkg.
#   tests/install/deb.sh PACKAGE [ROOT]     ROOT: made by debootstrap as below; copied, never changed
set -euo pipefail

package=$(realpath "$1")
release=${DEBIAN_RELEASE:-bookworm}
work=$(mktemp -d "${TMPDIR:-/tmp}/capstan-install.XXXXXX")
root=$work/root
cgroup=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)/capstan-install-$$
machine=
finish() {
  [ -z "$machine" ] || kill -KILL "$machine" 2> /dev/null || true
  wait 2> /dev/null
  [ ! -d "$cgroup" ] || for _ in $(seq 50); do
    # The last processes leave a moment after they are killed.
    find "$cgroup" -depth -type d -exec rmdir {} + 2> /dev/null && break
    sleep 0.1
  done
  rm -rf --one-file-system "$work"
}
trap finish EXIT

claim() {
  local words=$1
  shift
  if ! "$@" > "$work/output.log" 2>&1; then
    cat "$work/output.log" >&2
    echo "FAILED: $words" >&2
    [ -z "$machine" ] || inside journalctl --no-pager --lines 40 --unit capstan.service >&2 || true
    exit 1
  fi
  echo "  $words"
}
not() { ! "$@"; }
# A command that may need some time to succeed.
soon() {
  for _ in $(seq 100); do
    "$@" && return
    sleep 0.2
  done
  return 1
}
inside() {
  nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup --wd=/ -- \
    env --ignore-environment HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
deb() { inside env DEBIAN_FRONTEND=noninteractive dpkg "$@"; }
capstan() { inside capstan "$@" --data-dir /var/lib/capstan/server; }
has_cluster() { capstan get clusters | grep -q "^quick "; }
main_process() { inside systemctl show --property MainPID --value capstan.service; }
status() { inside cat "/proc/$(main_process)/status"; }
# A field of the service's process is as the unit wants it.
process_has() { status | grep -P "^$1:\\t$2\$"; }
flags() { printf 'CAPSTAN_FLAGS=%s\n' "$1" > "$root/etc/default/capstan"; }

if [ -n "${2:-}" ]; then
  cp -a "$2" "$root"
else
  echo "making a root of $release …"
  debootstrap --variant=minbase --include=dbus,systemd,systemd-sysv "$release" "$root" > "$work/debootstrap.log"
fi
mkdir "$cgroup"
echo "boot"
"$(dirname "$0")/boot.sh" "$root" "$cgroup" > "$work/boot.log" 2>&1 < /dev/null &
machine=$!
booted() {
  init=$(cat "/proc/$machine/task/$machine/children") && init=${init%% *} && [ -n "$init" ] || return 1
  inside systemctl is-system-running --wait | grep -x -e running -e degraded
}
soon booted > "$work/state.log" 2> /dev/null || { cat "$work/boot.log" >&2; echo "FAILED: systemd boots" >&2; exit 1; }
echo "  systemd boots: $(cat "$work/state.log")"
cp "$package" "$root/root/capstan.deb"

echo "install"
claim "dpkg installs it" deb --install /root/capstan.deb
claim "the service runs" inside systemctl is-active capstan.service
claim "and is enabled" inside systemctl is-enabled capstan.service
claim "the socket is left to the administrator" not inside systemctl is-active capstan.socket
# Type=notify: it serves when its start has ended, so this is not tried twice.
claim "it serves" capstan get clusters
claim "the data directory is the user's alone" \
  test "$(inside stat -c '%U %G %a' /var/lib/capstan)" = "capstan capstan 700"
claim "it runs as its user" test "$(inside stat -c %U "/proc/$(main_process)")" = capstan
claim "without capabilities" not process_has Cap... '0*[1-9a-f].*'
claim "behind a filter of system calls" process_has Seccomp 2
claim "and can gain no privileges" process_has NoNewPrivs 1
claim "systemd-analyze accepts the units" \
  inside systemd-analyze verify --man=no /usr/lib/systemd/system/capstan.service \
  /usr/lib/systemd/system/capstan.socket
claim "its exposure is below 2 of 10" \
  inside systemd-analyze security --threshold=20 --no-pager capstan.service
tail -n 1 "$work/output.log"
claim "there are man pages and completions" test -s "$root/usr/share/man/man1/capstan-server.1.gz" \
  -a -s "$root/usr/share/bash-completion/completions/capstan"

echo "run"
flags "--simulator --simulator-instant"
claim "it restarts with other flags" inside systemctl restart capstan.service
examples=/usr/share/doc/capstan/examples
claim "a first cluster becomes ready" \
  capstan up --lines --timeout 5m -f $examples/cni.yaml -f $examples/sim-cluster.yaml
claim "nothing in the data directory is another user's" \
  test -z "$(find "$root/var/lib/capstan" ! -uid "$(inside id -u capstan)")"
before=$(main_process)
claim "it is killed" inside systemctl kill --signal KILL capstan.service
claim "systemd starts it again" soon eval "[ \"\$(main_process)\" != $before ] && inside systemctl is-active capstan.service"
claim "the cluster is there" soon has_cluster
claim "systemctl stop ends it cleanly" inside systemctl stop capstan.service
claim "with success" test "$(inside systemctl show --property Result --value capstan.service)" = success

echo "socket"
mkdir -p "$root/etc/systemd/system/capstan.socket.d"
printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:443\n' > "$root/etc/systemd/system/capstan.socket.d/override.conf"
claim "systemd reads the changed address" inside systemctl daemon-reload
claim "systemd listens" inside systemctl enable --now capstan.socket
claim "nothing serves before somebody connects" not inside systemctl is-active capstan.service
claim "the first connection starts the server" inside bash -c ': < /dev/tcp/127.0.0.1/443'
claim "which serves on a port below 1024, without a capability" soon has_cluster
claim "and not where its flags say" grep -q "127.0.0.1:443" "$root/var/lib/capstan/server/admin.kubeconfig"
claim "the socket is turned off" inside systemctl disable --now capstan.socket
rm -r "$root/etc/systemd/system/capstan.socket.d"
claim "the service listens by itself again" \
  inside sh -c 'systemctl daemon-reload && systemctl restart capstan.service'
claim "and serves" has_cluster

echo "upgrade"
newer=$work/newer
dpkg-deb --raw-extract "$package" "$newer"
sed -i 's/^Version: .*/&+newer/' "$newer/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$newer" "$root/root/newer.deb" > "$work/build.log"
before=$(main_process)
claim "dpkg upgrades it" deb --install /root/newer.deb
claim "changed flags are kept" grep -q -e --simulator "$root/etc/default/capstan"
claim "the service was restarted" test "$(main_process)" != "$before"
claim "and runs" inside systemctl is-active capstan.service
claim "the cluster is there" has_cluster

echo "remove"
claim "dpkg removes it" deb --remove capstan
claim "the service is stopped" not inside systemctl is-active capstan.service
claim "no process of its user is left" \
  not inside bash -c 'for one in /proc/[0-9]*; do [ "$(stat -c %U "$one" 2> /dev/null)" != capstan ] || exit 0; done; exit 1'
claim "the program is gone" not test -e "$root/usr/bin/capstan"
claim "the data stays" test -d "$root/var/lib/capstan/server"
claim "the flags stay" test -e "$root/etc/default/capstan"
claim "dpkg installs it again" deb --install /root/capstan.deb
claim "the service runs" inside systemctl is-active capstan.service
claim "the cluster is there" has_cluster
claim "dpkg removes it" deb --remove capstan

echo "purge"
claim "dpkg purges it" deb --purge capstan
claim "the data is gone" not test -e "$root/var/lib/capstan"
claim "the flags are gone" not test -e "$root/etc/default/capstan"
claim "no trace is left in systemd's folders" \
  test -z "$(find "$root/etc/systemd" "$root/var/lib/systemd" -name 'capstan*' 2> /dev/null)"
echo "install-deb: passed"
