//! `KVMMachine`: a machine on this host, and what it is made from.

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
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KVMMachineSpec,
        /// What was observed.
        pub status: KVMMachineStatus,
    }

    /// What is wanted of a machine. A machine is made once: nothing of this can change later.
    pub struct KVMMachineSpec {
        /// Identity of the machine, equal to that of its Node; filled in by the provider before the machine is made.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: String,
        /// What the machine boots from.
        pub image: KVMImage,
        /// Cores that the machine may use; all of the host's if absent.
        #[schemars(range(min = 1, max = 1024))]
        pub cpus: Option<i32>,
        /// Memory in MiB that the machine may use; all of the host's if absent.
        #[serde(rename = "memoryMiB")]
        #[schemars(range(min = 256, max = 67108864))]
        pub memory_mib: Option<i32>,
        /// Directories of this host that the machine sees.
        #[schemars(
            length(min = 1, max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["guestPath"])
        )]
        pub host_volumes: Vec<HostVolume>,
        /// Name servers that the machine asks; the network's gateway if absent.
        #[schemars(
            length(min = 1, max = 3),
            inner(length(min = 2, max = 45)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub dns_servers: Vec<String>,
        /// Labels that the Node registers with.
        #[schemars(extend("maxProperties" = 64))]
        pub node_labels: BTreeMap<String, String>,
        /// Taints that the Node registers with, beside those of its bootstrap data.
        #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
        pub node_taints: Vec<NodeTaint>,
    }

    /// A node image.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMImage {
        /// Its name among the images of this host; `kubernetes-VERSION` with the version of the Machine if absent.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
    }

    /// A directory of this host that a machine sees.
    pub struct HostVolume {
        /// Where it is on this host; must be there.
        #[schemars(length(min = 2, max = 1024), extend("x-required" = true))]
        pub host_path: String,
        /// Where the machine sees it.
        #[schemars(length(min = 2, max = 1024), extend("x-required" = true))]
        pub guest_path: String,
        /// The machine cannot write to it.
        pub read_only: Option<bool>,
    }

    /// A taint of a Node.
    pub struct NodeTaint {
        /// Key.
        #[schemars(length(min = 1, max = 317), extend("x-required" = true))]
        pub key: String,
        /// Value.
        #[schemars(length(min = 1, max = 63))]
        pub value: String,
        /// What becomes of Pods that do not tolerate it.
        #[schemars(extend("x-required" = true))]
        pub effect: Option<TaintEffect>,
    }

    /// What was observed of a machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMMachineStatus {
        /// Observed aspects of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Milestones on the way to being usable; contract with the core.
        pub initialization: InitializationStatus,
        /// Addresses of the machine.
        #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
        pub addresses: Vec<MachineAddress>,
        /// File on this host that the machine's console is written to.
        #[schemars(length(min = 1, max = 4096))]
        pub console: String,
    }

    /// What KVMMachines are made from.
    pub struct KVMMachineTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KVMMachineTemplateSpec,
    }

    /// What KVMMachines are made from.
    pub struct KVMMachineTemplateSpec {
        /// What to make objects from.
        #[schemars(extend("x-required" = true))]
        pub template: KVMMachineTemplateResource,
    }

    /// A KVMMachine to be.
    pub struct KVMMachineTemplateResource {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: KVMMachineSpec,
    }
}

choice! {
    /// What becomes of Pods that do not tolerate a taint.
    pub enum TaintEffect {
        /// They are not put there.
        NoSchedule = "NoSchedule",
        /// They are put elsewhere if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// They are not put there, and those that are there must go.
        NoExecute = "NoExecute",
    }
}

impl NodeTaint {
    /// As the kubelet takes it.
    pub fn argument(&self) -> String {
        let effect = self.effect.map(TaintEffect::as_str).unwrap_or_default();
        format!("{}={}:{effect}", self.key, self.value)
    }
}
