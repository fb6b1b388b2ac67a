//! `OpenStackFloatingIPPool`: floating IPs that machines claim.

use capstan_capi_types::wire::record;
use capstan_object::{Condition, ObjectMeta, object};

use crate::v1beta2::{NetworkParam, NetworkStatus, OpenStackIdentityReference};

object!(
    OpenStackFloatingIPPool,
    "infrastructure.cluster.x-k8s.io" / "v1alpha1",
    "OpenStackFloatingIPPool",
    "openstackfloatingippools",
    Namespaced
);

record! {
    /// Floating IPs that machines claim.
    pub struct OpenStackFloatingIPPool {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackFloatingIPPoolSpec,
            /// Observed state.
            pub status: OpenStackFloatingIPPoolStatus,
        }
    }

    /// Desired state of a pool.
    pub struct OpenStackFloatingIPPoolSpec {
        required {
            /// Where the credentials are.
            pub identity_ref: OpenStackIdentityReference,
            /// What happens to an address that is released: `Retain` or `Delete`.
            #[schemars(extend("enum" = ["Retain", "Delete"]))]
            pub reclaim_policy: String,
        }
        optional {
            /// Floating IPs that exist already.
            #[serde(rename = "preAllocatedFloatingIPs")]
            pub pre_allocated_floating_ips: Vec<String>,
            /// How many addresses the pool has at most.
            #[serde(rename = "maxIPs")]
            #[schemars(schema_with = "crate::schema::integer")]
            pub max_ips: Option<i64>,
            /// The external network of the addresses.
            #[serde(rename = "floatingIPNetwork")]
            pub floating_ip_network: Option<NetworkParam>,
        }
    }

    /// Observed state of a pool.
    pub struct OpenStackFloatingIPPoolStatus {
        optional {
            /// Addresses in use.
            #[serde(rename = "claimedIPs")]
            #[schemars(extend("x-default" = []))]
            pub claimed_ips: Vec<String>,
            /// Addresses that can be claimed.
            #[serde(rename = "availableIPs")]
            #[schemars(extend("x-default" = []))]
            pub available_ips: Vec<String>,
            /// Addresses that could not be used.
            #[serde(rename = "failedIPs")]
            pub failed_ips: Vec<String>,
            /// The external network of the addresses.
            #[serde(rename = "floatingIPNetwork")]
            pub floating_ip_network: Option<NetworkStatus>,
            /// Observed aspects of the object, one per type.
            pub conditions: Vec<Condition>,
        }
    }
}
