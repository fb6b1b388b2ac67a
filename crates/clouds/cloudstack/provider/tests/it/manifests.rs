//! What a user applies: the example of the repository, and keys.

use capstan_capi_types::addons::ClusterResourceSet;
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_controller::KindName;
use capstan_sim_cloudstack::Credentials;
use serde_json::{Value, json};

/// Name of the example's cluster, and of everything else there is one of.
pub const NAME: &str = "cloudy";
/// Name of its deployment of workers.
pub const WORKERS: &str = "cloudy-workers";
/// Namespace of everything.
pub const NAMESPACE: &str = "default";
/// Name of the Secret with the keys.
pub const KEYS: &str = "cloudstack-credentials";

const EXAMPLE: &str = include_str!("../../../../../../examples/cloudstack-cluster.yaml");
const NETWORK: &str = include_str!("../../../../../../examples/cni.yaml");

pub fn secrets() -> KindName {
    KindName::namespaced("", "v1", "Secret", "secrets")
}

fn kind(name: &str) -> KindName {
    let known = [
        KindName::of::<Cluster>(),
        KindName::of::<CloudStackCluster>(),
        KindName::of::<KubeadmControlPlane>(),
        KindName::of::<CloudStackMachineTemplate>(),
        KindName::of::<MachineDeployment>(),
        KindName::of::<KubeadmConfigTemplate>(),
        KindName::of::<ClusterResourceSet>(),
        KindName::namespaced("", "v1", "ConfigMap", "configmaps"),
    ];
    known.into_iter().find(|kind| kind.kind == name).expect("a kind of the example")
}

/// The documents of the example, in their order.
pub fn example() -> Vec<(KindName, Value)> {
    let documents = NETWORK.split("\n---\n").chain(EXAMPLE.split("\n---\n"));
    let documents = documents.filter(|text| text.lines().any(|line| line.starts_with("kind:")));
    documents
        .map(|text| {
            let body: Value = serde_saphyr::from_str(text).expect("YAML");
            (kind(body["kind"].as_str().expect("a kind")), body)
        })
        .collect()
}

/// The Secret with the keys of an account.
pub fn keys(keys: &Credentials) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": KEYS, "namespace": NAMESPACE},
        "stringData": {
            "api-url": "http://cloud.example:8080/client/api",
            "api-key": keys.api_key, "secret-key": keys.secret_key, "verify-ssl": "true",
        },
    })
}
