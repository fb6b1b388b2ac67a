#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian package in a clean root, and runs the server as the unit does.
# As root on Debian, with debootstrap.
#   tests/install/deb.sh PACKAGE [ROOT]     ROOT: a root made by debootstrap --variant=minbase; copied, never changed
# systemd does not run in a chroot: the unit is checked by systemd-analyze, and its ExecStart line is run by hand as its
# user.
set -euo pipefail

package=$(realpath "$1")
release=${DEBIAN_RELEASE:-bookworm}
work=$(mktemp -d "${TMPDIR:-/tmp}/capstan-install.XXXXXX")
root=$work/root
server=
finish() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  mountpoint -q "$root/proc" && umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap finish EXIT

claim() {
  local words=$1
  shift
  if ! "$@" > "$work/output.log" 2>&1; then
    cat "$work/output.log" >&2
    echo "FAILED: $words" >&2
    exit 1
  fi
  echo "  $words"
}
not() { ! "$@"; }
inside() { chroot "$root" "$@"; }
deb() { inside env DEBIAN_FRONTEND=noninteractive LC_ALL=C dpkg "$@" > "$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; return 1; }; }

if [ -n "${2:-}" ]; then
  cp -a "$2" "$root"
else
  echo "making a root of $release …"
  debootstrap --variant=minbase "$release" "$root" > "$work/debootstrap.log"
fi
mount -t proc proc "$root/proc"
cp "$package" "$root/tmp/capstan.deb"

# The unit's own command line and user.
unit=$root/usr/lib/systemd/system/capstan.service
setting() { sed -n "s/^$1=//p" "$unit" | tail -n 1; }
port=${CAPSTAN_PORT:-16449}
# A program that runs the server with sockets of its own.
activate=()
start() {
  local flags
  flags=$(sed -n 's/^CAPSTAN_FLAGS=//p' "$root/etc/default/capstan")
  # shellcheck disable=SC2086 # flags are words, as systemd splits them
  "${activate[@]}" chroot --userspec="$(setting User):$(setting Group)" "$root" \
    $(setting ExecStart | sed "s/ \\\$CAPSTAN_FLAGS//") $flags > "$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    # Somebody has to connect first.
    [ "${#activate[@]}" = 0 ] || (: < "/dev/tcp/127.0.0.1/$passed") 2> /dev/null || true
    capstan get clusters > /dev/null 2>&1 && return
    kill -0 "$server" 2> /dev/null || break
    sleep 0.2
  done
  cat "$work/server.log" >&2
  return 1
}
stop() {
  kill -TERM "$server"
  wait "$server" || true
  server=
}
capstan() { inside capstan "$@" --data-dir /var/lib/capstan/server; }

echo "install"
claim "dpkg installs it" deb --install /tmp/capstan.deb
claim "the user capstan exists" inside id capstan
claim "the data directory is the user's alone" \
  test "$(inside stat -c '%U %G %a' /var/lib/capstan)" = "capstan capstan 700"
claim "the program runs" inside capstan version --client
claim "the service is enabled" test -L "$root/etc/systemd/system/multi-user.target.wants/capstan.service"
claim "there are man pages and completions" test -s "$root/usr/share/man/man1/capstan-server.1.gz" \
  -a -s "$root/usr/share/bash-completion/completions/capstan"
if command -v systemd-analyze > /dev/null; then
  # By this machine's systemd: a minimal root has none.
  mkdir "$work/unit"
  sed "s|^ExecStart=|&$root|" "$unit" > "$work/unit/capstan.service"
  cp "$(dirname "$unit")/capstan.socket" "$work/unit"
  claim "systemd-analyze accepts the units" systemd-analyze verify "$work/unit/capstan.service" \
    "$work/unit/capstan.socket"
  claim "its exposure is below 2 of 10" systemd-analyze security --offline=true --threshold=20 --no-pager \
    "$work/unit/capstan.service"
  tail -n 1 "$work/output.log"
fi

echo "run"
printf 'CAPSTAN_FLAGS=--listen 127.0.0.1:%s --simulator --simulator-instant --simulator-port %s\n' \
  "$port" "$((port + 1))" > "$root/etc/default/capstan"
claim "the unit's command runs as its user" start
cp -r "$root/usr/share/doc/capstan/examples" "$root/tmp/examples"
claim "a first cluster becomes ready" \
  capstan up --lines -f /tmp/examples/cni.yaml -f /tmp/examples/sim-cluster.yaml
claim "nothing in the data directory is another user's" \
  test -z "$(find "$root/var/lib/capstan" ! -uid "$(inside id -u capstan)")"
stop
if command -v systemd-socket-activate > /dev/null; then
  passed=$((port + 2))
  activate=(systemd-socket-activate --listen "127.0.0.1:$passed")
  claim "the server serves on a socket that systemd passes" start
  claim "and not where its flags say" grep -q "127.0.0.1:$passed" "$root/var/lib/capstan/server/admin.kubeconfig"
  stop
  activate=()
fi

echo "upgrade"
newer=$work/newer
dpkg-deb --raw-extract "$package" "$newer"
sed -i 's/^Version: .*/&+newer/' "$newer/DEBIAN/control"
dpkg-deb --root-owner-group -Znone --build "$newer" "$root/tmp/newer.deb" > "$work/build.log"
claim "dpkg upgrades it" deb --install /tmp/newer.deb
claim "changed flags are kept" grep -q "$port" "$root/etc/default/capstan"
claim "the server starts on the old data" start
claim "the cluster is there" sh -c "chroot '$root' capstan get clusters --data-dir /var/lib/capstan/server | grep -q quick"
stop

echo "remove"
claim "dpkg removes it" deb --remove capstan
claim "the program is gone" not test -e "$root/usr/bin/capstan"
claim "the data stays" test -d "$root/var/lib/capstan/server"
claim "the flags stay" test -e "$root/etc/default/capstan"
claim "dpkg installs it again" deb --install /tmp/capstan.deb
claim "the server starts on the old data" start
stop
claim "dpkg removes it" deb --remove capstan

echo "purge"
claim "dpkg purges it" deb --purge capstan
claim "the data is gone" not test -e "$root/var/lib/capstan"
claim "the flags are gone" not test -e "$root/etc/default/capstan"
claim "no trace is left in systemd's folders" \
  test -z "$(find "$root/etc/systemd" "$root/var/lib/systemd" -name 'capstan*' 2> /dev/null)"
echo "install-deb: passed"
