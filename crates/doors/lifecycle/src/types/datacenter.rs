//! `CloudStackDatacenterConfig`: zones, networks and accounts that clusters use.

use capstan_capi_types::wire::wire;
use capstan_object::{Condition, ObjectMeta, object};

object!(
    CloudStackDatacenterConfig,
    "anywhere.eks.amazonaws.com" / "v1alpha1",
    "CloudStackDatacenterConfig",
    "cloudstackdatacenterconfigs",
    Namespaced
);

wire! {
    /// Where clusters are on CloudStack.
    pub struct CloudStackDatacenterConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackDatacenterConfigSpec,
        /// Observed state.
        pub status: CloudStackDatacenterConfigStatus,
    }

    /// Where clusters are on CloudStack.
    pub struct CloudStackDatacenterConfigSpec {
        /// Zones with their networks; machines are spread over them.
        pub availability_zones: Vec<CloudStackAvailabilityZone>,
        /// The older form: domain of all zones.
        pub domain: String,
        /// The older form: zones.
        pub zones: Vec<CloudStackZone>,
        /// The older form: account of all zones.
        pub account: String,
        /// The older form: URL of the API.
        pub management_api_endpoint: String,
    }

    /// A zone, as an account sees it.
    pub struct CloudStackAvailabilityZone {
        /// Name, unique in the datacenter; a label of nodes.
        #[schemars(extend("x-required" = true))]
        pub name: String,
        /// Name of the Secret in namespace `eksa-system` with the keys of the API.
        #[schemars(extend("x-required" = true))]
        pub credentials_ref: String,
        /// The zone.
        #[schemars(extend("x-required" = true))]
        pub zone: CloudStackZone,
        /// Path of the account's domain without `ROOT/`.
        pub domain: String,
        /// The account.
        pub account: String,
        /// URL of the API; equal to `api-url` of the Secret.
        #[schemars(extend("x-required" = true))]
        pub management_api_endpoint: String,
    }

    /// A zone and the network of its machines.
    pub struct CloudStackZone {
        /// Id of the zone.
        pub id: String,
        /// Name of the zone.
        pub name: String,
        /// The network.
        #[schemars(extend("x-required" = true))]
        pub network: super::ResourceIdentifier,
    }

    /// Observed state of a datacenter.
    pub struct CloudStackDatacenterConfigStatus {
        /// CloudStack has everything that the spec names.
        pub spec_valid: bool,
        /// The generation that this status is about.
        pub observed_generation: i64,
        /// What is wrong, if something is.
        pub failure_message: Option<String>,
        /// Observed aspects, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
    }
}

/// The Secret of zones in the older form.
const DEFAULT_CREDENTIALS: &str = "global";

impl CloudStackDatacenterConfigSpec {
    /// The zones in the form of today. The user's own form stays in the object.
    pub fn zones(&self) -> Vec<CloudStackAvailabilityZone> {
        if !self.availability_zones.is_empty() {
            return self.availability_zones.clone();
        }
        let zone = |(at, zone): (usize, &CloudStackZone)| CloudStackAvailabilityZone {
            name: format!("default-az-{at}"),
            credentials_ref: DEFAULT_CREDENTIALS.to_owned(),
            zone: zone.clone(),
            domain: self.domain.clone(),
            account: self.account.clone(),
            management_api_endpoint: self.management_api_endpoint.clone(),
        };
        self.zones.iter().enumerate().map(zone).collect()
    }
}
