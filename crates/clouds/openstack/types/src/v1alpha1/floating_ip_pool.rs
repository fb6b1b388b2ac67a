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
    /// A pool of floating IPs that machines claim.
    pub struct OpenStackFloatingIPPool {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackFloatingIPPoolSpec,
            /// Observed state.
            pub status: OpenStackFloatingIPPoolStatus,
        }
    }

    /// Desired state of an OpenStackFloatingIPPool.
    pub struct OpenStackFloatingIPPoolSpec {
        required {
            /// Reference to the credentials of the cloud.
            pub identity_ref: OpenStackIdentityReference,
            /// Whether a released floating IP is kept (`Retain`) or deleted (`Delete`).
            #[schemars(extend("enum" = ["Retain", "Delete"]))]
            pub reclaim_policy: String,
        }
        optional {
            /// Existing floating IPs of the pool.
            #[serde(rename = "preAllocatedFloatingIPs")]
            pub pre_allocated_floating_ips: Vec<String>,
            /// Maximum number of floating IPs in the pool.
            #[serde(rename = "maxIPs")]
            #[schemars(schema_with = "crate::schema::integer")]
            pub max_ips: Option<i64>,
            /// External network of the floating IPs.
            #[serde(rename = "floatingIPNetwork")]
            pub floating_ip_network: Option<NetworkParam>,
        }
    }

    /// Observed state of an OpenStackFloatingIPPool.
    pub struct OpenStackFloatingIPPoolStatus {
        optional {
            /// Floating IPs in use.
            #[serde(rename = "claimedIPs")]
            #[schemars(extend("x-default" = []))]
            pub claimed_ips: Vec<String>,
            /// Floating IPs that can be claimed.
            #[serde(rename = "availableIPs")]
            #[schemars(extend("x-default" = []))]
            pub available_ips: Vec<String>,
            /// Floating IPs that cannot be used.
            #[serde(rename = "failedIPs")]
            pub failed_ips: Vec<String>,
            /// External network of the floating IPs.
            #[serde(rename = "floatingIPNetwork")]
            pub floating_ip_network: Option<NetworkStatus>,
            /// Conditions of the object, one per type.
            pub conditions: Vec<Condition>,
        }
    }
}
