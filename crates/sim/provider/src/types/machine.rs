//! `SimMachine` and its template.

use std::collections::BTreeMap;
use std::time::Duration;

use capstan_capi_types::core::{MachineAddress, TemplateMeta};
use capstan_capi_types::wire::{choice, wire};
use capstan_guest::vm::GuestFault;
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

object!(SimMachine, "infrastructure.cluster.x-k8s.io" / "v1beta1", "SimMachine", "simmachines", Namespaced);
object!(
    SimMachineTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "SimMachineTemplate",
    "simmachinetemplates",
    Namespaced
);

wire! {
    /// A simulated machine.
    pub struct SimMachine {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimMachineSpec,
        /// Observed state.
        pub status: SimMachineStatus,
    }

    /// Desired state of a simulated machine. Immutable.
    pub struct SimMachineSpec {
        /// Provider id of the machine and of its Node; set by the provider before the machine is created.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: String,
        /// Disk image.
        pub image: SimImage,
        /// Number of CPUs; defaults to 2.
        #[schemars(range(min = 1, max = 1024))]
        pub cpus: Option<i32>,
        /// Memory in MiB; defaults to 4096.
        #[serde(rename = "memoryMiB")]
        #[schemars(range(min = 1, max = 67108864))]
        pub memory_mib: Option<i32>,
        /// Failure domain; the Machine's takes precedence.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// Additional boot time.
        #[schemars(range(min = 0, max = 86400))]
        pub boot_delay_seconds: Option<i32>,
        /// Faults of the machine.
        #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        pub faults: Vec<Fault>,
    }

    /// A disk image.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimImage {
        /// Kubernetes version on the image, such as `v1.36.0`; defaults to the version of the Machine.
        #[schemars(length(min = 1, max = 256))]
        pub kubernetes: String,
    }

    /// A fault of a machine.
    pub struct Fault {
        /// Type of the fault.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<FaultType>,
        /// Additional boot time, or time between joining and the death of the kubelet.
        #[schemars(range(min = 0, max = 86400))]
        pub seconds: Option<i32>,
    }

    /// Observed state of a simulated machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimMachineStatus {
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
        /// Failure domain of the machine.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
    }

    /// Template of SimMachines.
    pub struct SimMachineTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimMachineTemplateSpec,
        /// Observed state.
        pub status: SimMachineTemplateStatus,
    }

    /// What a machine of the template will offer; part of the contract with the cluster autoscaler.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimMachineTemplateStatus {
        /// Resources of a machine, as quantities.
        pub capacity: BTreeMap<String, String>,
        /// What a machine runs on.
        pub node_info: SimNodeInfo,
    }

    /// What a machine runs on.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimNodeInfo {
        /// Architecture of the CPU.
        #[schemars(length(min = 1, max = 63))]
        pub architecture: String,
        /// Operating system.
        #[schemars(length(min = 1, max = 63))]
        pub operating_system: String,
    }

    /// Template of SimMachines.
    pub struct SimMachineTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: SimMachineTemplateResource,
    }

    /// The template of a SimMachine.
    pub struct SimMachineTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: SimMachineSpec,
    }
}

choice! {
    /// Type of a fault.
    pub enum FaultType {
        /// It boots slower.
        SlowBoot = "SlowBoot",
        /// It never gets past its firmware.
        NeverBoots = "NeverBoots",
        /// Its disk is full when files are written.
        DiskFull = "DiskFull",
        /// It boots but cannot reach the network.
        NoNetwork = "NoNetwork",
        /// Its kubelet stops some time after joining.
        KubeletDies = "KubeletDies",
    }
}

impl FaultType {
    /// The fault needs a duration.
    pub fn takes_time(self) -> bool {
        matches!(self, Self::SlowBoot | Self::KubeletDies)
    }
}

impl Fault {
    /// The fault for the guest; `None` if it has no type.
    pub fn to_guest(&self) -> Option<GuestFault> {
        let time = seconds(self.seconds);
        Some(match self.kind? {
            FaultType::SlowBoot => GuestFault::SlowBoot(time),
            FaultType::NeverBoots => GuestFault::NeverBoots,
            FaultType::DiskFull => GuestFault::DiskFull,
            FaultType::NoNetwork => GuestFault::NoNetwork,
            FaultType::KubeletDies => GuestFault::KubeletDies(time),
        })
    }
}

impl SimMachineSpec {
    /// All faults, including the slow boot by `bootDelaySeconds`.
    pub fn guest_faults(&self) -> Vec<GuestFault> {
        let delay = self.boot_delay_seconds.filter(|delay| *delay > 0);
        let slow = delay.map(|delay| GuestFault::SlowBoot(seconds(Some(delay))));
        slow.into_iter().chain(self.faults.iter().filter_map(Fault::to_guest)).collect()
    }
}

fn seconds(seconds: Option<i32>) -> Duration {
    Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faults_are_those_of_the_guest() {
        let spec: SimMachineSpec = serde_json::from_value(json!({
            "bootDelaySeconds": 5,
            "memoryMiB": 1024,
            "faults": [{"type": "DiskFull"}, {"type": "KubeletDies", "seconds": 60}],
        }))
        .expect("a spec");
        assert_eq!(
            spec.guest_faults(),
            [
                GuestFault::SlowBoot(Duration::from_secs(5)),
                GuestFault::DiskFull,
                GuestFault::KubeletDies(Duration::from_secs(60)),
            ]
        );
        assert_eq!(spec.memory_mib, Some(1024));
    }
}
