//! `KVMMachine` and its template.

use std::collections::BTreeMap;

use capstan_capi_types::core::{MachineAddress, TemplateMeta};
use capstan_capi_types::wire::{choice, wire};
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

object!(KVMMachine, "infrastructure.cluster.x-k8s.io" / "v1beta1", "KVMMachine", "kvmmachines", Namespaced);
object!(
    KVMMachineTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "KVMMachineTemplate",
    "kvmmachinetemplates",
    Namespaced
);

wire! {
    /// A machine on this host.
    pub struct KVMMachine {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KVMMachineSpec,
        /// Observed state.
        pub status: KVMMachineStatus,
    }

    /// Desired state of a machine. Immutable.
    pub struct KVMMachineSpec {
        /// Provider id of the machine and of its Node; set by the provider before the machine is created.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: String,
        /// Node image.
        pub image: KVMImage,
        /// CPU limit; defaults to all CPUs of the host.
        #[schemars(range(min = 1, max = 1024))]
        pub cpus: Option<i32>,
        /// Memory limit in MiB; defaults to all memory of the host.
        #[serde(rename = "memoryMiB")]
        #[schemars(range(min = 256, max = 67108864))]
        pub memory_mib: Option<i32>,
        /// Directories of this host that are mounted into the machine.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["guestPath"])
        )]
        pub host_volumes: Vec<HostVolume>,
        /// Name servers of the machine; defaults to the network's gateway.
        #[schemars(
            length(min = 1, max = 3),
            inner(length(min = 2, max = 45)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub dns_servers: Vec<String>,
        /// Labels that the Node registers with.
        #[schemars(extend("maxProperties" = 64))]
        pub node_labels: BTreeMap<String, String>,
        /// Taints that the Node registers with, in addition to those of its bootstrap data.
        #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        pub node_taints: Vec<NodeTaint>,
    }

    /// A node image.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMImage {
        /// Name of the image on this host; defaults to `kubernetes-VERSION` with the version of the Machine.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
    }

    /// A directory of this host that is mounted into a machine.
    pub struct HostVolume {
        /// Path on this host; must exist.
        #[schemars(length(min = 2, max = 1024), extend("x-required" = true))]
        pub host_path: String,
        /// Path in the machine.
        #[schemars(length(min = 2, max = 1024), extend("x-required" = true))]
        pub guest_path: String,
        /// Mount read-only.
        pub read_only: Option<bool>,
    }

    /// A taint of a Node.
    pub struct NodeTaint {
        /// Taint key.
        #[schemars(length(min = 1, max = 317), extend("x-required" = true))]
        pub key: String,
        /// Taint value.
        #[schemars(length(min = 1, max = 63))]
        pub value: String,
        /// Effect on Pods that do not tolerate the taint.
        #[schemars(extend("x-required" = true))]
        pub effect: Option<TaintEffect>,
    }

    /// Observed state of a machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMMachineStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Initialization status; part of the provider contract.
        pub initialization: InitializationStatus,
        /// Addresses of the machine.
        #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
        pub addresses: Vec<MachineAddress>,
        /// Console log file on this host.
        #[schemars(length(min = 1, max = 4096))]
        pub console: String,
    }

    /// Template of KVMMachines.
    pub struct KVMMachineTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KVMMachineTemplateSpec,
        /// Observed state.
        pub status: KVMMachineTemplateStatus,
    }

    /// What a machine of the template will offer; part of the contract with the cluster autoscaler.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMMachineTemplateStatus {
        /// Resources of a machine, as quantities.
        pub capacity: BTreeMap<String, String>,
        /// What a machine runs on.
        pub node_info: KVMNodeInfo,
    }

    /// What a machine runs on.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMNodeInfo {
        /// Architecture of the CPU.
        #[schemars(length(min = 1, max = 63))]
        pub architecture: String,
        /// Operating system.
        #[schemars(length(min = 1, max = 63))]
        pub operating_system: String,
    }

    /// Template of KVMMachines.
    pub struct KVMMachineTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KVMMachineTemplateResource,
    }

    /// The template of a KVMMachine.
    pub struct KVMMachineTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: KVMMachineSpec,
    }
}

choice! {
    /// Effect of a taint on Pods that do not tolerate it.
    pub enum TaintEffect {
        /// They are not scheduled there.
        NoSchedule = "NoSchedule",
        /// They are scheduled elsewhere if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// They are not scheduled there, and running ones are evicted.
        NoExecute = "NoExecute",
    }
}

impl NodeTaint {
    /// In the kubelet's format.
    pub fn argument(&self) -> String {
        let effect = self.effect.map(TaintEffect::as_str).unwrap_or_default();
        format!("{}={}:{effect}", self.key, self.value)
    }
}
