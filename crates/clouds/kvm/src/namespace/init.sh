# Process 1 of a machine: keeps containerd and the kubelet running, executes the boot data once, reaps zombies.
umount -l /oldroot && rmdir /oldroot
mount --make-rshared /

if [ "$ARRANGEMENT" = v2 ]; then
  # This process and its waiting parent are in a child cgroup, so that siblings can have controllers.
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
  done
fi

for setting in net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables net/bridge/bridge-nf-call-ip6tables; do
  [ -w "/proc/sys/$setting" ] && echo 1 > "/proc/sys/$setting"
done
mkdir -p /run/containerd /var/log /etc/kubernetes/manifests

supervise_containerd() {
  while :; do
    containerd >> /var/log/containerd.log 2>&1
    echo "containerd ended with $?; it is started again"
    sleep 1
  done
}

# There is no systemd, so kubeadm does not start the kubelet: it is started here once kubeadm has configured it.
kubelet_is_configured() {
  [ -s /var/lib/kubelet/config.yaml ] && [ -s /var/lib/kubelet/kubeadm-flags.env ] || return 1
  [ -s /etc/kubernetes/kubelet.conf ] || [ -s /etc/kubernetes/bootstrap-kubelet.conf ]
}

supervise_kubelet() {
  while :; do
    until kubelet_is_configured; do sleep 0.1; done
    KUBELET_KUBEADM_ARGS=
    . /var/lib/kubelet/kubeadm-flags.env
    kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
      --config=/var/lib/kubelet/config.yaml --config-dir=/etc/kubernetes/kubelet.conf.d \
      $(cat /var/lib/capstan/kubelet-arguments) $KUBELET_KUBEADM_ARGS >> /var/log/kubelet.log 2>&1
    echo "kubelet ended with $?; it is started again"
    sleep 1
  done
}

# The console is readable by others: tokens and keys are redacted.
hide() {
  sed -u -E 's/[a-z0-9]{6}\.[a-z0-9]{16}/(hidden)/g; s/(sha256:)?[0-9a-f]{64}/(hidden)/g'
}

boot() {
  until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done
  sh /run/capstan/boot.sh 2>&1 | hide
  rm -rf /run/capstan/files /run/capstan/boot.sh /run/capstan/runcmd /run/capstan/bootcmd
  if [ -e /run/cluster-api/bootstrap-success.complete ]; then outcome=booted; else outcome=failed; fi
  echo "$outcome" > /var/lib/capstan/boot.unfinished
  mv /var/lib/capstan/boot.unfinished /var/lib/capstan/boot
}

supervise_containerd &
supervise_kubelet &
boot &
while :; do wait; sleep 1; done
