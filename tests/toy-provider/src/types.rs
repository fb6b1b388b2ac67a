//! The kinds.

use capstan_capi_types::core::{APIEndpoint, MachineAddress};
use capstan_capi_types::wire::wire;
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::{InitializationStatus, infrastructure};

object!(ToyCluster, "infrastructure.cluster.x-k8s.io" / "v1beta1", "ToyCluster", "toyclusters", Namespaced);
object!(ToyMachine, "infrastructure.cluster.x-k8s.io" / "v1beta1", "ToyMachine", "toymachines", Namespaced);
object! {
    ToyMachineTemplate, "infrastructure.cluster.x-k8s.io" / "v1beta1", "ToyMachineTemplate", "toymachinetemplates", Namespaced
}
infrastructure!(cluster ToyCluster);
infrastructure!(machine ToyMachine);

wire! {
    /// A harbour: a directory with room for so many berths.
    pub struct ToyCluster { pub metadata: ObjectMeta, pub spec: ToySite, pub status: ToyStatus, }
    pub struct ToySite { pub control_plane_endpoint: APIEndpoint, pub directory: String, pub berths: i32, }
    pub struct ToyStatus {
        pub conditions: Vec<Condition>,
        pub initialization: InitializationStatus,
        pub addresses: Vec<MachineAddress>,
    }

    /// A berth: a file in the directory.
    pub struct ToyMachine { pub metadata: ObjectMeta, pub spec: ToyBerth, pub status: ToyStatus, }
    pub struct ToyBerth { #[serde(rename = "providerID")] pub provider_id: String, }

    /// What berths are made from.
    pub struct ToyMachineTemplate { pub metadata: ObjectMeta, pub spec: ToyTemplateSpec, }
    pub struct ToyTemplateSpec { pub template: ToyTemplateResource, }
    pub struct ToyTemplateResource { pub spec: ToyBerth, }
}
