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
    /// Configuration of CloudStack zones.
    pub struct CloudStackDatacenterConfig {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackDatacenterConfigSpec,
        /// Observed state.
        pub status: CloudStackDatacenterConfigStatus,
    }

    /// Desired state of a CloudStackDatacenterConfig.
    pub struct CloudStackDatacenterConfigSpec {
        /// Zones with their networks. Machines are spread across them.
        pub availability_zones: Vec<CloudStackAvailabilityZone>,
        /// Deprecated: domain of all zones.
        pub domain: String,
        /// Deprecated: zones. Replaced by `availabilityZones`.
        pub zones: Vec<CloudStackZone>,
        /// Deprecated: account of all zones.
        pub account: String,
        /// Deprecated: URL of the CloudStack API.
        pub management_api_endpoint: String,
    }

    /// A zone with the account that uses it.
    pub struct CloudStackAvailabilityZone {
        /// Name of the availability zone, unique in the datacenter. Also a label of the Nodes.
        #[schemars(extend("x-required" = true))]
        pub name: String,
        /// Name of the Secret with the API credentials, in namespace `eksa-system`.
        #[schemars(extend("x-required" = true))]
        pub credentials_ref: String,
        /// Zone in CloudStack.
        #[schemars(extend("x-required" = true))]
        pub zone: CloudStackZone,
        /// Path of the account's domain without `ROOT/`.
        pub domain: String,
        /// Account that owns the resources.
        pub account: String,
        /// URL of the CloudStack API. Must equal `api-url` of the Secret.
        #[schemars(extend("x-required" = true))]
        pub management_api_endpoint: String,
    }

    /// A zone with the network of its machines.
    pub struct CloudStackZone {
        /// Id of the zone.
        pub id: String,
        /// Name of the zone.
        pub name: String,
        /// Network of the machines.
        #[schemars(extend("x-required" = true))]
        pub network: super::ResourceIdentifier,
    }

    /// Observed state of a CloudStackDatacenterConfig.
    pub struct CloudStackDatacenterConfigStatus {
        /// Whether CloudStack has all resources that the spec references.
        pub spec_valid: bool,
        /// Generation of the object that this status describes.
        pub observed_generation: i64,
        /// Message of the error, if any.
        pub failure_message: Option<String>,
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
    }
}

/// The Secret of zones in the older form.
const DEFAULT_CREDENTIALS: &str = "global";

impl CloudStackDatacenterConfig {
    /// CloudStack was found to have what this generation names.
    pub fn is_valid(&self) -> bool {
        self.status.spec_valid && self.status.observed_generation == self.metadata.generation
    }
}

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
