//! `CloudStackFailureDomain`: a zone and a network in it, as somebody's account sees them.

use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, ObjectMeta, object};

use super::common::{Initialization, SecretReference};

object!(
    CloudStackFailureDomain,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackFailureDomain",
    "cloudstackfailuredomains",
    Namespaced
);

record! {
    /// A zone and a network in it, with the account that uses them. Created by the provider, one per entry of a
    /// cluster.
    pub struct CloudStackFailureDomain {
        required {
            /// Desired state.
            pub spec: CloudStackFailureDomainSpec,
        }
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Observed state.
            pub status: CloudStackFailureDomainStatus,
        }
    }

    /// Desired state of a CloudStackFailureDomain.
    pub struct CloudStackFailureDomainSpec {
        required {
            /// Name of the failure domain, unique in its cluster.
            pub name: String,
            /// Zone and network of the machines.
            pub zone: Zone,
            /// Secret with the URL and the credentials of the CloudStack API.
            pub acs_endpoint: SecretReference,
        }
        optional {
            /// Account that owns the resources. Defaults to the account of the credentials.
            pub account: String,
            /// Path of the account's domain, with or without `ROOT/`.
            pub domain: String,
            /// Name of the project that owns the resources.
            pub project: String,
        }
    }

    /// Reference to a zone, by id or by name, with its network.
    pub struct Zone {
        required {
            /// Network of the machines.
            pub network: Network,
        }
        optional {
            /// Id of the zone.
            pub id: String,
            /// Name of the zone.
            pub name: String,
        }
    }

    /// Reference to a network, by id or by name. Created if it does not exist.
    pub struct Network {
        required {
            /// Name of the network.
            pub name: String,
        }
        optional {
            /// Id of the network.
            pub id: String,
            /// Type of the network: `Isolated` or `Shared`. Set by the provider.
            #[serde(rename = "type")]
            pub kind: String,
            /// Gateway of a network that the provider creates.
            pub gateway: String,
            /// Netmask of a network that the provider creates.
            pub netmask: String,
            /// Name of the network offering of a network that the provider creates.
            pub offering: String,
            /// Routing mode of a routed network: `Static` or `Dynamic`. Set by the provider.
            pub routing_mode: String,
            /// Virtual private cloud that the network is a tier of.
            pub vpc: Option<Vpc>,
        }
    }

    /// Observed state of a CloudStackFailureDomain.
    pub struct CloudStackFailureDomainStatus {
        required {
            /// Whether machines can be placed in the failure domain.
            pub ready: bool,
        }
        optional {
            /// Conditions of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Provisioning progress.
            pub initialization: Initialization,
        }
    }
}

wire! {
    /// Reference to a virtual private cloud, by id or by name. Created if it does not exist.
    pub struct Vpc {
        /// Id of the virtual private cloud.
        pub id: String,
        /// Name of the virtual private cloud.
        pub name: String,
        /// CIDR of a virtual private cloud that the provider creates.
        pub cidr: String,
        /// Name of the offering of a virtual private cloud that the provider creates.
        pub offering: String,
    }
}
