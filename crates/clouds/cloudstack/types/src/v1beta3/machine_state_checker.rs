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
    /// Watches an instance and deletes its Machine when it stops. CAPC creates one per machine.
    pub struct CloudStackMachineStateChecker {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackMachineStateCheckerSpec,
        /// Observed state.
        pub status: CloudStackMachineStateCheckerStatus,
    }

    /// Desired state of a CloudStackMachineStateChecker.
    pub struct CloudStackMachineStateCheckerSpec {
        /// Id of the instance.
        #[serde(rename = "instanceID")]
        pub instance_id: String,
    }
}

record! {
    /// Observed state of a CloudStackMachineStateChecker.
    pub struct CloudStackMachineStateCheckerStatus {
        required {
            /// Whether the instance is running and its Node has joined.
            pub ready: bool,
        }
    }
}
