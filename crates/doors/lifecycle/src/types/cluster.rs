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
    /// A cluster of EKS Anywhere's API.
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
        /// Settings of the control plane.
        pub control_plane_configuration: ControlPlaneConfiguration,
        /// Worker node groups.
        pub worker_node_group_configurations: Vec<WorkerNodeGroupConfiguration>,
        /// CloudStackDatacenterConfig of the cluster, in the same namespace.
        pub datacenter_ref: Ref,
        /// Not supported.
        pub identity_provider_refs: Vec<Ref>,
        /// Not supported: apply manifests with any GitOps tool.
        pub git_ops_ref: Option<Ref>,
        /// Settings of the network: Pods, Services and CNI.
        pub cluster_network: ClusterNetwork,
        /// Not supported: etcd runs on the control plane machines.
        #[schemars(schema_with = "any_object")]
        pub external_etcd_configuration: Option<Value>,
        /// HTTP proxy of the machines.
        pub proxy_configuration: Option<ProxyConfiguration>,
        /// Mirror of container registries.
        pub registry_mirror_configuration: Option<RegistryMirrorConfiguration>,
        /// Management cluster of this cluster.
        pub management_cluster: ManagementCluster,
        /// Not supported.
        #[schemars(schema_with = "any_object")]
        pub pod_iam_config: Option<Value>,
        /// Not supported, except `disable: true`.
        #[schemars(schema_with = "any_object")]
        pub packages: Option<Value>,
        /// Bundles of EKS Anywhere. Accepted and ignored.
        #[schemars(schema_with = "any_object")]
        pub bundles_ref: Option<Value>,
        /// Version of EKS Anywhere. Accepted and ignored.
        pub eksa_version: Option<String>,
        /// Health check and remediation of machines.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Encryption at rest with KMS plugins.
        pub etcd_encryption: Vec<EtcdEncryption>,
        /// License of EKS Anywhere. Accepted and ignored.
        pub license_token: String,
    }

    /// Settings of the control plane.
    pub struct ControlPlaneConfiguration {
        /// Number of machines. Must be odd.
        pub count: i32,
        /// Endpoint of the API server.
        pub endpoint: Option<Endpoint>,
        /// CloudStackMachineConfig of the machines, in the same namespace.
        pub machine_group_ref: Option<Ref>,
        /// Taints of the Nodes. Defaults to those of kubeadm.
        pub taints: Vec<Taint>,
        /// Labels of the Nodes.
        pub labels: BTreeMap<String, String>,
        /// Strategy of rollouts.
        pub upgrade_rollout_strategy: Option<UpgradeRolloutStrategy>,
        /// Not supported on CloudStack.
        pub skip_load_balancer_deployment: bool,
        /// Additional subject alternative names of the API server's certificate.
        pub cert_sans: Vec<String>,
        /// Health check and remediation of control plane machines.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Additional command line flags of the API server.
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

    /// Endpoint of the API server.
    pub struct Endpoint {
        /// Host name or IP address, with an optional port. The port defaults to 6443.
        pub host: String,
    }

    /// A worker node group.
    pub struct WorkerNodeGroupConfiguration {
        /// Name of the group, unique in the cluster.
        pub name: String,
        /// Number of machines.
        pub count: Option<i32>,
        /// Limits for an autoscaler, which sets the number of machines.
        pub autoscaling_configuration: Option<AutoscalingConfiguration>,
        /// CloudStackMachineConfig of the machines, in the same namespace.
        pub machine_group_ref: Option<Ref>,
        /// Taints of the nodes.
        pub taints: Vec<Taint>,
        /// Labels of the nodes.
        pub labels: BTreeMap<String, String>,
        /// Strategy of rollouts.
        pub upgrade_rollout_strategy: Option<UpgradeRolloutStrategy>,
        /// Kubernetes minor version of the group. Defaults to that of the cluster.
        pub kubernetes_version: Option<String>,
        /// Health check and remediation of the group's machines.
        pub machine_health_check: Option<MachineHealthCheckConfiguration>,
        /// Fields of the kubelet's configuration.
        #[schemars(schema_with = "any_object")]
        pub kubelet_configuration: Option<Value>,
        /// Not supported on CloudStack: machines are spread across the availability zones.
        pub failure_domains: Vec<String>,
    }

    /// Limits for an autoscaler.
    pub struct AutoscalingConfiguration {
        /// Minimum number of machines.
        pub min_count: i32,
        /// Maximum number of machines.
        pub max_count: i32,
    }

    /// Strategy of rollouts.
    pub struct UpgradeRolloutStrategy {
        /// Type of the strategy: `RollingUpdate`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Settings of a rolling update.
        pub rolling_update: Option<RollingUpdate>,
    }

    /// Health check and remediation of machines.
    pub struct MachineHealthCheckConfiguration {
        /// Timeout of a machine to get a Node, such as `10m0s`.
        pub node_startup_timeout: Option<String>,
        /// Time after which an unhealthy machine is replaced, such as `5m0s`.
        pub unhealthy_machine_timeout: Option<String>,
        /// Remediation is allowed while at most this number or percentage of machines is unhealthy.
        pub max_unhealthy: Option<IntOrString>,
    }

    /// Settings of the network: Pods, Services and CNI.
    pub struct ClusterNetwork {
        /// Address range of Pods; exactly one.
        pub pods: Ranges,
        /// Address range of Services; exactly one.
        pub services: Ranges,
        /// Deprecated: replaced by `cniConfig`.
        pub cni: String,
        /// CNI with its settings.
        pub cni_config: Option<CniConfig>,
        /// DNS settings of the Nodes.
        pub dns: Dns,
        /// Address settings of the Nodes.
        pub nodes: Option<Nodes>,
    }

    /// Address ranges in CIDR notation.
    pub struct Ranges {
        /// Address ranges in CIDR notation.
        pub cidr_blocks: Vec<String>,
    }

    /// DNS settings of the Nodes.
    pub struct Dns {
        /// Resolver configuration that kubelets pass to Pods.
        pub resolv_conf: Option<ResolvConf>,
    }

    /// A resolver configuration.
    pub struct ResolvConf {
        /// Path of the file on the Node.
        pub path: String,
    }

    /// Address settings of the Nodes.
    pub struct Nodes {
        /// Mask size of each Node's Pod CIDR.
        pub cidr_mask_size: Option<i32>,
    }

    /// CNI with its settings.
    pub struct CniConfig {
        /// Settings of Cilium.
        pub cilium: Option<Cilium>,
        /// Not supported on CloudStack.
        #[schemars(schema_with = "any_object")]
        pub kindnetd: Option<Value>,
    }

    /// Settings of Cilium.
    pub struct Cilium {
        /// Policy enforcement mode: `default`, `always` or `never`.
        pub policy_enforcement_mode: String,
        /// Interfaces whose traffic is masqueraded.
        pub egress_masquerade_interfaces: String,
        /// Whether Cilium is managed externally.
        pub skip_upgrade: Option<bool>,
        /// Routing mode: `overlay` or `direct`.
        pub routing_mode: String,
        /// CIDR that is routed natively.
        #[serde(rename = "ipv4NativeRoutingCIDR")]
        pub ipv4_native_routing_cidr: String,
        /// CIDR that is routed natively.
        #[serde(rename = "ipv6NativeRoutingCIDR")]
        pub ipv6_native_routing_cidr: String,
        /// Whether other CNIs are removed from nodes.
        pub cni_exclusive: Option<bool>,
        /// Additional values of the Helm chart.
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
        /// Namespaces of the mirror by registry. If empty, the root of the mirror serves `public.ecr.aws`.
        pub oci_namespaces: Vec<OciNamespace>,
        /// CA certificate of the mirror, as PEM.
        pub ca_cert_content: String,
        /// Whether the mirror requires the credentials in Secret `registry-credentials`.
        pub authenticate: bool,
        /// Whether verification of the mirror's certificate is skipped.
        pub insecure_skip_verify: bool,
    }

    /// A registry and its namespace in a mirror.
    pub struct OciNamespace {
        /// Host of the registry.
        pub registry: String,
        /// Namespace of the registry in the mirror.
        pub namespace: String,
    }

    /// Management cluster of a cluster.
    pub struct ManagementCluster {
        /// Name of the management cluster; the cluster's own name if it is self-managed.
        pub name: String,
    }

    /// Encryption at rest of some resources.
    pub struct EtcdEncryption {
        /// Resources to encrypt.
        pub resources: Vec<String>,
        /// Encryption providers.
        pub providers: Vec<EtcdEncryptionProvider>,
    }

    /// An encryption provider.
    pub struct EtcdEncryptionProvider {
        /// KMS plugin.
        pub kms: Option<Kms>,
    }

    /// A KMS plugin.
    pub struct Kms {
        /// Maximum number of cached keys.
        pub cachesize: Option<i32>,
        /// Name of the plugin.
        pub name: String,
        /// Socket of the plugin, `unix:///…`.
        pub socket_listen_address: String,
        /// Timeout of calls to the plugin.
        pub timeout: Option<String>,
    }

    /// Observed state of a cluster.
    pub struct ClusterStatus {
        /// Message of the error that blocks reconciliation.
        pub failure_message: Option<String>,
        /// Reason of the error that blocks reconciliation.
        pub failure_reason: Option<String>,
        /// Conditions of the cluster, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Generation that is fully reconciled.
        pub reconciled_generation: i64,
        /// Sum of the generations of the reconciled configs.
        pub children_reconciled_generation: i64,
        /// Generation of the object that this status describes.
        pub observed_generation: i64,
    }
}

record! {
    /// Settings of a rolling update.
    pub struct RollingUpdate {
        required {
            /// Maximum number of machines above the count during a rollout.
            pub max_surge: i32,
        }
        optional {
            /// Maximum number of machines below the count during a rollout. Workers only.
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

    /// Whether its CNI is managed externally.
    pub fn skips_cni(&self) -> bool {
        self.cilium().is_some_and(|cilium| cilium.skip_upgrade == Some(true))
    }

    pub fn cilium(&self) -> Option<&Cilium> {
        self.spec.cluster_network.cni_config.as_ref()?.cilium.as_ref()
    }
}
