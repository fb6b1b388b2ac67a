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
    /// A zone and a network in it, as somebody's account sees them. Made by the provider, one per entry of a cluster.
    pub struct CloudStackFailureDomain {
        required {
            /// What is wanted.
            pub spec: CloudStackFailureDomainSpec,
        }
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// What was observed.
            pub status: CloudStackFailureDomainStatus,
        }
    }

    /// Where machines may live.
    pub struct CloudStackFailureDomainSpec {
        required {
            /// Name of the failure domain, unique in its cluster.
            pub name: String,
            /// Zone and network.
            pub zone: Zone,
            /// Secret with URL and keys of the CloudStack API.
            pub acs_endpoint: SecretReference,
        }
        optional {
            /// Account to act for, if not that of the keys.
            pub account: String,
            /// Path of that account's domain, with or without `ROOT/`.
            pub domain: String,
            /// Name of a project to work in.
            pub project: String,
        }
    }

    /// A zone, by id or by name.
    pub struct Zone {
        required {
            /// The network of machines.
            pub network: Network,
        }
        optional {
            /// Its id.
            pub id: String,
            /// Its name.
            pub name: String,
        }
    }

    /// A network, by id or by name. One that does not exist is made.
    pub struct Network {
        required {
            /// Its name.
            pub name: String,
        }
        optional {
            /// Its id.
            pub id: String,
            /// `Isolated` or `Shared`; filled in.
            #[serde(rename = "type")]
            pub kind: String,
            /// Gateway, if it is made.
            pub gateway: String,
            /// Netmask, if it is made.
            pub netmask: String,
            /// Name of the network offering, if it is made.
            pub offering: String,
            /// `Static` or `Dynamic` on routed networks; filled in.
            pub routing_mode: String,
            /// The virtual private cloud it is a tier of.
            pub vpc: Option<Vpc>,
        }
    }

    /// What was observed of a failure domain.
    pub struct CloudStackFailureDomainStatus {
        required {
            /// Machines can be put there.
            pub ready: bool,
        }
        optional {
            /// Observed aspects of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Milestones on the way to being usable.
            pub initialization: Initialization,
        }
    }
}

wire! {
    /// A virtual private cloud, by id or by name. One that does not exist is made.
    pub struct Vpc {
        /// Its id.
        pub id: String,
        /// Its name.
        pub name: String,
        /// Its addresses, if it is made.
        pub cidr: String,
        /// Name of its offering, if it is made.
        pub offering: String,
    }
}
