//! `CloudStackMachineStateChecker`: CAPC's record of a machine that it watches.

use capstan_capi_types::wire::{record, wire};
use capstan_object::{ObjectMeta, object};

object!(
    CloudStackMachineStateChecker,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackMachineStateChecker",
    "cloudstackmachinestatecheckers",
    Namespaced
);

wire! {
    /// A machine whose Machine is deleted when it stops. CAPC makes one per machine.
    pub struct CloudStackMachineStateChecker {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackMachineStateCheckerSpec,
        /// What was observed.
        pub status: CloudStackMachineStateCheckerStatus,
    }

    /// The machine that is watched.
    pub struct CloudStackMachineStateCheckerSpec {
        /// Id of the machine in CloudStack.
        #[serde(rename = "instanceID")]
        pub instance_id: String,
    }
}

record! {
    /// What was observed of the machine.
    pub struct CloudStackMachineStateCheckerStatus {
        required {
            /// The machine runs and its Node has joined.
            pub ready: bool,
        }
    }
}
