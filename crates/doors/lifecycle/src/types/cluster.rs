//! `Cluster`: a workload cluster with its control plane, worker groups and network.

use std::collections::BTreeMap;

use capstan_capi_types::kubernetes::Taint;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, IntOrString, ObjectMeta, object};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::Ref;

object!(Cluster, "anywhere.eks.amazonaws.com" / "v1alpha1", "Cluster", "clusters", Namespaced);

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

wire! {
    /// A cluster of the lifecycle API.
    pub struct Cluster {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: ClusterSpec,
        /// Observed state.
        pub status: ClusterStatus,
    }

    /// Desired state of a cluster.
    pub struct ClusterSpec {
        /// Kubernetes minor version, such as `1.33`.
        pub kubernetes_version: String,
        /// The control plane.
        pub control_plane_configuration: ControlPlaneConfiguration,
        /// Groups of worker nodes.
        pub worker_node_group_configurations: Vec<WorkerNodeGroupConfiguration>,
        /// The datacenter; a CloudStackDatacenterConfig in the same namespace.
        pub datacenter_ref: Ref,
        /// Not supported.
        pub identity_provider_refs: Vec<Ref>,
        /// Not supported: apply manifests with any GitOps tool.
        pub git_ops_ref: Option<Ref>,
        /// Pods, Services and the CNI.
        pub cluster_network: ClusterNetwork,
        /// Not supported: etcd runs on the control plane machines.
        #[schemars(schema_with = "any_object")]
        pub external_etcd_configuration: Option<Value>,
        /// HTTP proxy of the machines.
        pub proxy_configuration: Option<ProxyConfiguration>,
        /// Mirror of container registries.
        pub registry_mirror_configuration: Option<RegistryMirrorConfiguration>,
        /// The cluster that manages this one.
        pub management_cluster: ManagementCluster,
        /// Not supported.
        #[schemars(schema_with = "any_object")]
        pub pod_iam_config: Option<Value>,
        /// Not supported, except `disable: true`.
        #[schemars(schema_with = "any_object")]
        pub packages: Option<Value>,
        /// Release of EKS Anywhere; kept, and without effect here.
        #[schemars(schema_with = "any_object")]
        pub bundles_ref: Option<Value>,
        /// Release of EKS Anywhere; kept, and without effect here.
        pub eksa_version: Option<String>,
        /// Replacement of unhealthy machines.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Encryption of resources in etcd by KMS plug-ins.
        pub etcd_encryption: Vec<EtcdEncryption>,
        /// Licence of EKS Anywhere; kept, and without effect here.
        pub license_token: String,
    }

    /// The control plane.
    pub struct ControlPlaneConfiguration {
        /// Number of machines; odd.
        pub count: i32,
        /// Where the API server is reached.
        pub endpoint: Option<Endpoint>,
        /// The machines; a CloudStackMachineConfig in the same namespace.
        pub machine_group_ref: Option<Ref>,
        /// Taints of the nodes; kubeadm's if empty.
        pub taints: Vec<Taint>,
        /// Labels of the nodes.
        pub labels: BTreeMap<String, String>,
        /// How machines are replaced.
        pub upgrade_rollout_strategy: Option<UpgradeRolloutStrategy>,
        /// Not supported on CloudStack.
        pub skip_load_balancer_deployment: bool,
        /// Further names and addresses in the API server's certificate.
        pub cert_sans: Vec<String>,
        /// Replacement of unhealthy control plane machines.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Further flags of the API server.
        pub api_server_extra_args: BTreeMap<String, String>,
        /// Fields of the kubelet's configuration.
        #[schemars(schema_with = "any_object")]
        pub kubelet_configuration: Option<Value>,
        /// Audit policy of the API server, as YAML.
        #[schemars(length(max = 10000))]
        pub audit_policy_content: String,
        /// Not supported: needs a patched API server.
        pub skip_admission_for_system_resources: Option<bool>,
    }

    /// Where the API server is reached.
    pub struct Endpoint {
        /// Address or name, with an optional port; 6443 without.
        pub host: String,
    }

    /// A group of worker nodes.
    pub struct WorkerNodeGroupConfiguration {
        /// Name of the group, unique in the cluster.
        pub name: String,
        /// Number of machines.
        pub count: Option<i32>,
        /// Bounds for an autoscaler, which then sets the number of machines.
        pub autoscaling_configuration: Option<AutoscalingConfiguration>,
        /// The machines; a CloudStackMachineConfig in the same namespace.
        pub machine_group_ref: Option<Ref>,
        /// Taints of the nodes.
        pub taints: Vec<Taint>,
        /// Labels of the nodes.
        pub labels: BTreeMap<String, String>,
        /// How machines are replaced.
        pub upgrade_rollout_strategy: Option<UpgradeRolloutStrategy>,
        /// Kubernetes minor version of this group; the cluster's if empty.
        pub kubernetes_version: Option<String>,
        /// Replacement of unhealthy machines of the group.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Fields of the kubelet's configuration.
        #[schemars(schema_with = "any_object")]
        pub kubelet_configuration: Option<Value>,
        /// Not supported on CloudStack: machines are spread over the availability zones.
        pub failure_domains: Vec<String>,
    }

    /// Bounds for an autoscaler.
    pub struct AutoscalingConfiguration {
        /// Least number of machines.
        pub min_count: i32,
        /// Greatest number of machines.
        pub max_count: i32,
    }

    /// How machines are replaced.
    pub struct UpgradeRolloutStrategy {
        /// `RollingUpdate`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Pace of a rolling update.
        pub rolling_update: Option<RollingUpdate>,
    }

    /// When machines count as unhealthy, and when they are replaced.
    pub struct MachineHealthCheckConfiguration {
        /// How long a machine may take to become a node, such as `10m0s`.
        pub node_startup_timeout: Option<String>,
        /// How long a node may be unhealthy, such as `5m0s`.
        pub unhealthy_machine_timeout: Option<String>,
        /// Machines are replaced while at most this many are unhealthy.
        pub max_unhealthy: Option<IntOrString>,
    }

    /// Pods, Services and the CNI.
    pub struct ClusterNetwork {
        /// Addresses of Pods; one range.
        pub pods: Ranges,
        /// Addresses of Services; one range.
        pub services: Ranges,
        /// The older form of `cniConfig`.
        pub cni: String,
        /// The CNI and its settings.
        pub cni_config: Option<CniConfig>,
        /// DNS of the nodes.
        pub dns: Dns,
        /// Addresses of nodes.
        pub nodes: Option<Nodes>,
    }

    /// Ranges of addresses.
    pub struct Ranges {
        /// CIDRs.
        pub cidr_blocks: Vec<String>,
    }

    /// DNS of the nodes.
    pub struct Dns {
        /// The resolver configuration that kubelets hand to Pods.
        pub resolv_conf: Option<ResolvConf>,
    }

    /// A resolver configuration.
    pub struct ResolvConf {
        /// Its path on the node.
        pub path: String,
    }

    /// Addresses of nodes.
    pub struct Nodes {
        /// Mask of each node's share of the Pods' addresses.
        pub cidr_mask_size: Option<i32>,
    }

    /// The CNI.
    pub struct CniConfig {
        /// Cilium.
        pub cilium: Option<Cilium>,
        /// Not supported on CloudStack.
        #[schemars(schema_with = "any_object")]
        pub kindnetd: Option<Value>,
    }

    /// Settings of Cilium.
    pub struct Cilium {
        /// `default`, `always` or `never`.
        pub policy_enforcement_mode: String,
        /// Interfaces whose traffic is masqueraded.
        pub egress_masquerade_interfaces: String,
        /// Leave the CNI to somebody else.
        pub skip_upgrade: Option<bool>,
        /// `overlay` or `direct`.
        pub routing_mode: String,
        /// Range that is routed natively.
        #[serde(rename = "ipv4NativeRoutingCIDR")]
        pub ipv4_native_routing_cidr: String,
        /// Range that is routed natively.
        #[serde(rename = "ipv6NativeRoutingCIDR")]
        pub ipv6_native_routing_cidr: String,
        /// Whether other CNIs are removed from nodes.
        pub cni_exclusive: Option<bool>,
        /// Further values of the chart.
        #[schemars(schema_with = "any_object")]
        pub helm_values: Option<Value>,
    }

    /// HTTP proxy of the machines.
    pub struct ProxyConfiguration {
        /// Proxy of HTTP, `host:port`.
        pub http_proxy: String,
        /// Proxy of HTTPS, `host:port`.
        pub https_proxy: String,
        /// Hosts and ranges that are reached directly.
        pub no_proxy: Vec<String>,
    }

    /// Mirror of container registries.
    pub struct RegistryMirrorConfiguration {
        /// Host of the mirror.
        pub endpoint: String,
        /// Port of the mirror.
        pub port: String,
        /// Registries and where they are in the mirror; `public.ecr.aws` at the root if empty.
        pub oci_namespaces: Vec<OciNamespace>,
        /// Certificate of the authority that signed the mirror's certificate, as PEM.
        pub ca_cert_content: String,
        /// The mirror asks for the credentials in Secret `registry-credentials`.
        pub authenticate: bool,
        /// Do not check the mirror's certificate.
        pub insecure_skip_verify: bool,
    }

    /// A registry in a mirror.
    pub struct OciNamespace {
        /// The registry.
        pub registry: String,
        /// Its place in the mirror.
        pub namespace: String,
    }

    /// The cluster that manages another.
    pub struct ManagementCluster {
        /// Its name; the cluster's own name means that it manages itself.
        pub name: String,
    }

    /// Encryption of resources in etcd.
    pub struct EtcdEncryption {
        /// What is encrypted.
        pub resources: Vec<String>,
        /// How it is encrypted.
        pub providers: Vec<EtcdEncryptionProvider>,
    }

    /// A provider of encryption.
    pub struct EtcdEncryptionProvider {
        /// A KMS plug-in.
        pub kms: Option<Kms>,
    }

    /// A KMS plug-in.
    pub struct Kms {
        /// Number of keys in memory.
        pub cachesize: Option<i32>,
        /// Name of the plug-in.
        pub name: String,
        /// Its socket, `unix:///…`.
        pub socket_listen_address: String,
        /// How long a call may take.
        pub timeout: Option<String>,
    }

    /// Observed state of a cluster.
    pub struct ClusterStatus {
        /// Why it cannot be reconciled.
        pub failure_message: Option<String>,
        /// One word for that.
        pub failure_reason: Option<String>,
        /// Observed aspects of the cluster, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// The generation that was applied in full.
        pub reconciled_generation: i64,
        /// Sum of the generations of the configs that were applied with it.
        pub children_reconciled_generation: i64,
        /// The generation that this status is about.
        pub observed_generation: i64,
    }
}

record! {
    /// Pace of a rolling update.
    pub struct RollingUpdate {
        required {
            /// Machines above the count during a rollout.
            pub max_surge: i32,
        }
        optional {
            /// Machines below the count during a rollout; workers only.
            pub max_unavailable: i32,
        }
    }
}

impl Cluster {
    /// The Kubernetes minor version of a worker group.
    pub fn version_of<'a>(&'a self, group: &'a WorkerNodeGroupConfiguration) -> &'a str {
        let own = group.kubernetes_version.as_deref().filter(|version| !version.is_empty());
        own.unwrap_or(&self.spec.kubernetes_version)
    }

    /// Whether the cluster is to manage itself.
    pub fn is_self_managed(&self) -> bool {
        let manager = self.spec.management_cluster.name.as_str();
        manager.is_empty() || manager == self.metadata.name
    }

    /// Names of the machine configs that the cluster uses, each once.
    pub fn machine_configs(&self) -> std::collections::BTreeSet<&str> {
        let workers = self.spec.worker_node_group_configurations.iter();
        let groups = workers.filter_map(|group| group.machine_group_ref.as_ref());
        let all = self.spec.control_plane_configuration.machine_group_ref.iter().chain(groups);
        all.map(|group| group.name.as_str()).collect()
    }

    /// Whether its CNI is left to somebody else.
    pub fn skips_cni(&self) -> bool {
        self.cilium().is_some_and(|cilium| cilium.skip_upgrade == Some(true))
    }

    pub fn cilium(&self) -> Option<&Cilium> {
        self.spec.cluster_network.cni_config.as_ref()?.cilium.as_ref()
    }
}
