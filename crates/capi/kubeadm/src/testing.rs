//! Test objects of several modules.

use capstan_capi_types::bootstrap::KubeadmConfigSpec;
use capstan_capi_types::core::Cluster;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

/// The time of tests.
pub fn now() -> Timestamp {
    "2026-11-15T08:00:00Z".parse().expect("a timestamp")
}

/// Parses a test object from YAML.
pub fn object<T: DeserializeOwned>(yaml: &str) -> T {
    let value: serde_json::Value = serde_saphyr::from_str(yaml).expect("YAML");
    serde_json::from_value(value).expect("an object")
}

/// A cluster with all fields that bootstrap data uses.
pub fn cluster() -> Cluster {
    object(
        "
metadata: {name: blue, namespace: fleet, uid: cluster-uid}
spec:
  controlPlaneEndpoint: {host: 10.0.0.10, port: 6443}
  clusterNetwork:
    serviceDomain: cluster.local
    services: {cidrBlocks: [10.96.0.0/12]}
    pods: {cidrBlocks: [192.168.0.0/16, 'fd00::/48']}
",
    )
}

/// A spec that sets every field.
pub fn full_spec() -> KubeadmConfigSpec {
    object(
        r#"
clusterConfiguration:
  apiServer:
    extraArgs: [{name: audit-log-path, value: "-"}, {name: profiling, value: "false"}, {name: anonymous-auth}]
    extraVolumes: [{name: audit, hostPath: /etc/audit, mountPath: /etc/audit, readOnly: true, pathType: Directory}]
    extraEnvs: [{name: GOGC, value: "50"}]
    certSANs: [api.blue.example, 10.0.0.10]
  controllerManager:
    extraArgs: [{name: cloud-provider, value: external}]
  scheduler:
    extraArgs: [{name: v, value: "2"}]
  etcd:
    local:
      dataDir: /var/lib/etcddisk/etcd
      imageTag: 3.6.4-0
      extraArgs: [{name: quota-backend-bytes, value: "8589934592"}]
      extraEnvs: [{name: ETCD_DEBUG, value: "1"}]
      serverCertSANs: [etcd.blue.example]
  dns: {imageRepository: registry.example/coredns, imageTag: v1.12.1}
  imageRepository: registry.example
  featureGates: {RootlessControlPlane: false}
  certificateValidityPeriodDays: 180
  caCertificateValidityPeriodDays: 1825
  encryptionAlgorithm: ECDSA-P384
initConfiguration:
  bootstrapTokens:
  - {token: abcdef.0123456789abcdef, description: first, ttlSeconds: 5400, usages: [signing, authentication], groups: ["system:bootstrappers:kubeadm:default-node-token"]}
  nodeRegistration:
    name: '{{ ds.meta_data["local_hostname"] }}'
    criSocket: unix:///run/containerd/containerd.sock
    taints: []
    kubeletExtraArgs: [{name: node-labels, value: "a=b,c=d"}, {name: provider-id, value: "sim://x"}]
    ignorePreflightErrors: [DirAvailable--etc-kubernetes-manifests]
    imagePullPolicy: IfNotPresent
    imagePullSerial: false
  localAPIEndpoint: {advertiseAddress: 10.0.0.11, bindPort: 6443}
  skipPhases: [addon/kube-proxy]
  patches: {directory: /etc/kubernetes/patches}
  timeouts: {controlPlaneComponentHealthCheckSeconds: 300, kubeletHealthCheckSeconds: 90, tlsBootstrapSeconds: 45}
joinConfiguration:
  nodeRegistration:
    name: node-1
    taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
    kubeletExtraArgs: [{name: cloud-provider, value: external}]
    imagePullSerial: true
  discovery:
    bootstrapToken:
      token: abcdef.0123456789abcdef
      apiServerEndpoint: 10.0.0.10:6443
      caCertHashes: ["sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc"]
  skipPhases: [preflight]
  patches: {directory: /etc/kubernetes/patches}
  timeouts: {tlsBootstrapSeconds: 600, discoverySeconds: 3600, etcdAPICallSeconds: 120, kubernetesAPICallSeconds: 60}
files:
- {path: /etc/kubernetes/patches/kubeletconfiguration+merge.yaml, owner: "root:root", permissions: "0600", content: "maxPods: 200\n"}
- {path: /etc/motd, append: true, content: "  welcome: \"you\"\n\n# not a comment"}
- {path: /opt/blob, encoding: base64, permissions: "0755", content: "/wABAg=="}
users:
- name: ops
  gecos: Operations
  groups: sudo, docker
  homeDir: /home/ops
  shell: /bin/bash
  passwd: "$6$salt$hash"
  primaryGroup: ops
  lockPassword: false
  sudo: ALL=(ALL) NOPASSWD:ALL
  sshAuthorizedKeys: ["ssh-ed25519 AAAAC3Nz ops@example"]
ntp: {enabled: true, servers: [0.pool.example, 1.pool.example]}
diskSetup:
  partitions:
  - {device: /dev/vdb, layout: true, overwrite: false, tableType: gpt}
  filesystems:
  - {device: /dev/vdb1, filesystem: ext4, label: etcd_disk, overwrite: true, extraOpts: ["-E", "lazy_itable_init=1"]}
mounts: [[etcd_disk, /var/lib/etcddisk, defaults, noatime]]
preKubeadmCommands: ["hostnamectl set-hostname \"$(cat /etc/name)\""]
postKubeadmCommands: ["echo 'done: {{ ds.meta_data.instance_id }}'"]
verbosity: 5
"#,
    )
}
