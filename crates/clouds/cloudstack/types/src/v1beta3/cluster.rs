//! `CloudStackCluster`: where a cluster's machines may live, and where its API is reached.

use std::borrow::Cow;
use std::collections::BTreeMap;

use capstan_capi_types::core::FailureDomain;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, ObjectMeta, object};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::common::{Endpoint, Initialization};
use super::failure_domain::CloudStackFailureDomainSpec;

object!(
    CloudStackCluster,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackCluster",
    "cloudstackclusters",
    Namespaced
);

wire! {
    /// The infrastructure of a cluster on CloudStack.
    pub struct CloudStackCluster {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackClusterSpec,
        /// Observed state.
        pub status: CloudStackClusterStatus,
    }
}

record! {
    /// Desired state of a CloudStackCluster.
    pub struct CloudStackClusterSpec {
        required {
            /// Failure domains of the machines.
            pub failure_domains: Vec<CloudStackFailureDomainSpec>,
            /// Endpoint of the API server. Without a host, the provider allocates a public IP address on isolated
            /// networks.
            #[schemars(extend("x-default" = { "host": "", "port": 0 }))]
            pub control_plane_endpoint: Endpoint,
        }
        optional {
            /// Whether the cluster is registered in CloudStack's list of Kubernetes clusters.
            #[serde(rename = "syncWithACS")]
            pub sync_with_acs: Option<bool>,
        }
    }

    /// Observed state of a CloudStackCluster.
    pub struct CloudStackClusterStatus {
        required {
            /// Whether all failure domains can be used; part of the contract v1beta1.
            pub ready: bool,
        }
        optional {
            /// Generation of the spec that this status is for.
            pub observed_generation: i64,
            /// Conditions of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Provisioning progress, as the Cluster API contract defines it.
            pub initialization: Initialization,
            /// Failure domains that machines can be placed in, as the Cluster API contract defines them.
            pub failure_domains: FailureDomains,
            /// Id of the cluster in CloudStack's list of Kubernetes clusters.
            pub cloud_stack_cluster_id: String,
        }
    }
}

/// Failure domains as the contract v1beta2 wants them: a list. Objects that CAPC wrote have a map by name, which is read
/// alike, so the schema says neither.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FailureDomains(pub Vec<FailureDomain>);

impl<'de> Deserialize<'de> for FailureDomains {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            List(Vec<FailureDomain>),
            Map(BTreeMap<String, FailureDomain>),
        }
        Ok(Self(match Either::deserialize(deserializer)? {
            Either::List(list) => list,
            Either::Map(map) => {
                map.into_iter().map(|(name, domain)| FailureDomain { name, ..domain }).collect()
            }
        }))
    }
}

impl JsonSchema for FailureDomains {
    fn schema_name() -> Cow<'static, str> {
        "FailureDomains".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}
