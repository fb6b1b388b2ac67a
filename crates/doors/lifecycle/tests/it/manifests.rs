//! What a user applies: the example of the repository, and keys.

use capstan_controller::KindName;
use capstan_lifecycle::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::Object;
use capstan_sim_cloudstack::Credentials;
use serde_json::{Value, json};

use crate::cloud::URL;

pub const NAME: &str = "anywhere";
pub const NAMESPACE: &str = "default";
pub const SYSTEM: &str = "eksa-system";

const EXAMPLE: &str = include_str!("../../../../../examples/lifecycle-cluster.yaml");

pub fn namespaces() -> KindName {
    let mut kind = KindName::namespaced("", "v1", "Namespace", "namespaces");
    kind.scope = capstan_object::Scope::Cluster;
    kind
}

pub fn secrets() -> KindName {
    KindName::namespaced("", "v1", "Secret", "secrets")
}

/// The kind of a document of the example.
pub fn kind(body: &Value) -> KindName {
    let known = [
        KindName::of::<Cluster>(),
        KindName::of::<CloudStackDatacenterConfig>(),
        KindName::of::<CloudStackMachineConfig>(),
    ];
    known.into_iter().find(|kind| body["kind"] == *kind.kind).expect("a kind of the example")
}

pub fn example() -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE).expect("YAML");
    let documents = documents.into_iter().filter(|document| document.is_object());
    documents
        .map(|mut body| {
            if body["kind"] == CloudStackDatacenterConfig::KIND.kind {
                body["spec"]["availabilityZones"][0]["managementApiEndpoint"] = URL.into();
            }
            body
        })
        .collect()
}

pub fn keys(keys: &Credentials) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "global", "namespace": SYSTEM},
        "stringData": {
            "api-url": URL, "api-key": keys.api_key, "secret-key": keys.secret_key, "verify-ssl": "true",
        },
    })
}
