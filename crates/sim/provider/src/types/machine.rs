//! `SimMachine`: a simulated machine, and what it is made from.

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
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: SimMachineSpec,
        /// What was observed.
        pub status: SimMachineStatus,
    }

    /// What is wanted of a simulated machine. A machine is made once: nothing of this can change later.
    pub struct SimMachineSpec {
        /// Identity of the machine, equal to that of its Node; filled in by the provider before the machine is made.
        #[serde(rename = "providerID")]
        #[schemars(length(min = 1, max = 512))]
        pub provider_id: String,
        /// What the machine boots from.
        pub image: SimImage,
        /// Cores; 2 if absent.
        #[schemars(range(min = 1, max = 1024))]
        pub cpus: Option<i32>,
        /// Memory in MiB; 4096 if absent.
        #[serde(rename = "memoryMiB")]
        #[schemars(range(min = 1, max = 67108864))]
        pub memory_mib: Option<i32>,
        /// Failure domain, unless the Machine names one.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
        /// How much longer than usual the machine takes to boot.
        #[schemars(range(min = 0, max = 86400))]
        pub boot_delay_seconds: Option<i32>,
        /// What goes wrong with the machine.
        #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
        pub faults: Vec<Fault>,
    }

    /// A disk image.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimImage {
        /// Kubernetes on it, such as `v1.36.0`; the version of the Machine if absent.
        #[schemars(length(min = 1, max = 256))]
        pub kubernetes: String,
    }

    /// Something that goes wrong with a machine.
    pub struct Fault {
        /// What.
        #[serde(rename = "type")]
        #[schemars(extend("x-required" = true))]
        pub kind: Option<FaultType>,
        /// How much longer a slow boot takes, or how long after joining a kubelet dies.
        #[schemars(range(min = 0, max = 86400))]
        pub seconds: Option<i32>,
    }

    /// What was observed of a simulated machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimMachineStatus {
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
        /// Failure domain the machine was placed in.
        #[schemars(length(min = 1, max = 256))]
        pub failure_domain: String,
    }

    /// What SimMachines are made from.
    pub struct SimMachineTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: SimMachineTemplateSpec,
    }

    /// What SimMachines are made from.
    pub struct SimMachineTemplateSpec {
        /// What to make objects from.
        #[schemars(extend("x-required" = true))]
        pub template: SimMachineTemplateResource,
    }

    /// A SimMachine to be.
    pub struct SimMachineTemplateResource {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: SimMachineSpec,
    }
}

choice! {
    /// What can go wrong with a machine.
    pub enum FaultType {
        /// It takes longer to boot.
        SlowBoot = "SlowBoot",
        /// It never gets past its firmware.
        NeverBoots = "NeverBoots",
        /// Its disk is full when files are written.
        DiskFull = "DiskFull",
        /// It boots but cannot reach the network.
        NoNetwork = "NoNetwork",
        /// Its kubelet stops some time after it joined.
        KubeletDies = "KubeletDies",
    }
}

impl FaultType {
    /// The fault happens after a time, which is said with it.
    pub fn takes_time(self) -> bool {
        matches!(self, Self::SlowBoot | Self::KubeletDies)
    }
}

impl Fault {
    /// The fault as a guest has it; `None` if it says nothing.
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
    /// All faults, the slow boot by `bootDelaySeconds` among them.
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
