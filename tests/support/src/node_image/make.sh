# Makes a node image: a root file system, what a node has beside it, and containerd's folder with images in it.
#
# From the environment: IMAGE (folder to make), DEBIAN (folder of the root file system, made if it is not there),
# BIN (folder of built programs), SUFFIX (end of the names of those that this image has instead, may be empty),
# DEBOOTSTRAP (its folder), VERSION (of Kubernetes, such as v1.36.3), MIRROR (of Debian, may be empty), OTHER_VERSION and
# OTHER_SUFFIX (of a release whose add-ons the image has as well, may be empty). Nothing of the host is changed; mounts
# live in a namespace of their own.
#
# With access to a registry of images the last part is `kubeadm config images pull` instead; here they are put
# together from the same programs that the registry's images hold.
set -eu
umask 022
work=$IMAGE.unfinished

# Where a program is: the release's own if there is one.
built() { # name [suffix]
  suffix=${2-$SUFFIX}
  if [ -e "$BIN/$1$suffix" ]; then echo "$BIN/$1$suffix"; else echo "$BIN/$1"; fi
}

# The images that a release asks for.
references() { # version [suffix]
  "$(built kubeadm "${2-$SUFFIX}")" config images list --kubernetes-version "$1" 2> /dev/null
}

rm -rf "$work"
mkdir -p "$work"

if [ ! -d "$DEBIAN" ]; then
  rm -rf "$DEBIAN.unfinished"
  echo "node-image: root file system (debootstrap bookworm)"
  DEBOOTSTRAP_DIR=$DEBOOTSTRAP/usr/share/debootstrap sh "$DEBOOTSTRAP/usr/sbin/debootstrap" --variant=minbase \
    --include=iptables,nftables,iproute2,conntrack,ethtool,socat,kmod,ca-certificates,procps \
    bookworm "$DEBIAN.unfinished" ${MIRROR:+"$MIRROR"} > "$work/debootstrap.log"
  rm -rf "$DEBIAN.unfinished"/var/cache/apt/archives/*.deb "$DEBIAN.unfinished"/var/lib/apt/lists/*
  mv "$DEBIAN.unfinished" "$DEBIAN"
fi
ln -s "../$(basename "$DEBIAN")" "$work/base"

echo "node-image: kit"
kit=$work/kit
mkdir -p "$kit/usr/local/bin" "$kit/opt/cni/bin" "$kit/etc/containerd" "$kit/etc/kubernetes/kubelet.conf.d"
for program in kubelet kubeadm kubectl containerd containerd-shim-runc-v2 ctr runc; do
  cp -L "$(built "$program")" "$kit/usr/local/bin/$program"
done
for plugin in bridge host-local loopback portmap; do
  cp -L "$BIN/$plugin" "$kit/opt/cni/bin/"
done
cat > "$kit/etc/containerd/config.toml" <<TOML
version = 4
# What containerd asks for by itself may be of another release.
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '$(references "$VERSION" | grep /pause:)'
[plugins.'io.containerd.cri.v1.runtime']
  # A host may keep the right to lower it to itself.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = '/usr/local/bin/runc'
TOML
cat > "$kit/etc/kubernetes/kubelet.conf.d/10-namespace-node.conf" <<'YAML'
# What is so on every node that shares its host with others.
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 50Mi
  nodefs.available: "0%"
  nodefs.inodesFree: "0%"
  imagefs.available: "0%"
YAML

# Packs a folder as a layer. Times are left out, so that the same content is the same layer.
layer() { # name folder
  mkdir -p "$work/images/layers"
  tar --create --file "$work/images/layers/$1.tar" --directory "$2" --sort=name --mtime=@0 --numeric-owner \
    --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale --exclude=./var/cache .
}

# Puts an image together in the form of `docker save`: an archive of layers, a configuration and a list.
image() { # reference entrypoint layer...
  reference=$1 entrypoint=$2
  shift 2
  folder=$work/images/one
  rm -rf "$folder"
  mkdir "$folder"
  diffs= files=
  for name in "$@"; do
    ln "$work/images/layers/$name.tar" "$folder/$name.tar"
    sum=$(sha256sum "$folder/$name.tar" | cut -d' ' -f1)
    diffs="$diffs${diffs:+,}\"sha256:$sum\""
    files="$files${files:+,}\"$name.tar\""
  done
  architecture=$(dpkg --print-architecture)
  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["%s"],"Env":["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
    "$architecture" "$entrypoint" "$diffs" > "$folder/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":[%s]}]' "$reference" "$files" > "$folder/manifest.json"
  tar --create --file "$folder.tar" --directory "$folder" --sort=name .
  ctr=$kit/usr/local/bin/ctr
  "$ctr" --address "$socket" --namespace k8s.io images import --digests=false "$folder.tar" 2> "$work/images/import.log" ||
    { cat "$work/images/import.log"; return 1; }
}

# A layer with one program at the place where kubeadm's manifests expect it.
program() { # name place file
  rm -rf "$work/images/tree"
  mkdir -p "$work/images/tree/$(dirname "$2")" "$work/images/tree/tmp"
  cp -L "$3" "$work/images/tree/$2"
  layer "$1" "$work/images/tree"
}

echo "node-image: images"
mkdir -p "$work/containerd" "$work/images"
# The name of a socket is short, that of a folder need not be.
short=$(mktemp -d)
socket=$short/containerd.sock
cat > "$work/images/containerd.toml" <<TOML
version = 4
root = '$work/containerd'
state = '$short/state'
TOML
"$kit/usr/local/bin/containerd" --config "$work/images/containerd.toml" --address "$socket" > "$work/images/containerd.log" 2>&1 &
containerd=$!
trap 'kill $containerd 2> /dev/null || true; rm -rf "$short"' EXIT
tries=300
until [ -S "$socket" ]; do
  tries=$((tries - 1))
  [ $tries -gt 0 ] && kill -0 $containerd 2> /dev/null || { tail -5 "$work/images/containerd.log"; exit 1; }
  sleep 0.1
done

layer base "$DEBIAN"
# The image of a reference, from the program of a release.
assemble() { # reference [suffix]
  name=${1%:*}
  name=${name##*/}
  case $name in
    pause) program pause pause "$BIN/pause"; image "$1" /pause pause ;;
    coredns) program coredns coredns "$BIN/coredns"; image "$1" /coredns coredns ;;
    kube-proxy) program kube-proxy usr/local/bin/kube-proxy "$(built kube-proxy "${2-$SUFFIX}")"
      image "$1" /usr/local/bin/kube-proxy base kube-proxy ;;
    etcd) program etcd usr/local/bin/etcd "$BIN/etcd"; image "$1" /usr/local/bin/etcd etcd ;;
    *) program "$name" "usr/local/bin/$name" "$(built "$name")"; image "$1" "/usr/local/bin/$name" "$name" ;;
  esac
}

for reference in $(references "$VERSION"); do
  assemble "$reference"
done
# While a cluster is upgraded its nodes run add-ons of the release it was and of the one it becomes.
if [ -n "$OTHER_VERSION" ]; then
  for reference in $(references "$OTHER_VERSION" "$OTHER_SUFFIX" | grep -e /kube-proxy: -e /coredns:); do
    assemble "$reference" "$OTHER_SUFFIX"
  done
fi
program kubectl usr/local/bin/kubectl "$BIN/kubectl"
image capstan.local/node-routes:v1 /bin/sh base kubectl
program web web "$BIN/web"
image capstan.local/web:v1 /web web

kill $containerd
wait $containerd || true
trap - EXIT
rm -rf "$short" "$work/images" "$work/containerd/io.containerd.grpc.v1.introspection"
rm -rf "$IMAGE"
mv "$work" "$IMAGE"
echo "node-image: $IMAGE ($(du -sh "$IMAGE/containerd" | cut -f1) of images)"
