//! What a user applies: the example of the repository, and keys.

use capstan_capi_types::addons::ClusterResourceSet;
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_controller::KindName;
use capstan_object::Object;
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

pub fn kind(name: &str) -> KindName {
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

/// How big the cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub control_plane: usize,
    pub workers: usize,
    pub version: &'static str,
    /// Failure domains, one zone and network each.
    pub domains: usize,
}

impl Shape {
    /// As the example is.
    pub const EXAMPLE: Self = Self { control_plane: 1, workers: 1, version: "v1.36.0", domains: 1 };
}

/// Name of the image with a version.
fn image(version: &str) -> String {
    format!("ubuntu-2404-kube-{version}")
}

/// The template of machines of a role and version.
pub fn machine_template(name: &str, offering: &str, version: &str) -> (KindName, Value) {
    let body = json!({
        "apiVersion": CloudStackMachineTemplate::KIND.api_version(), "kind": "CloudStackMachineTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {
            "offering": {"name": offering}, "template": {"name": image(version)},
        }}},
    });
    (KindName::of::<CloudStackMachineTemplate>(), body)
}

/// The documents of the example in their order, for a cluster of a shape.
pub fn example(shape: Shape) -> Vec<(KindName, Value)> {
    let documents = NETWORK.split("\n---\n").chain(EXAMPLE.split("\n---\n"));
    let documents = documents.filter(|text| text.lines().any(|line| line.starts_with("kind:")));
    documents
        .map(|text| {
            let mut body: Value = serde_saphyr::from_str(text).expect("YAML");
            body["metadata"]["namespace"] = NAMESPACE.into();
            let kind = kind(body["kind"].as_str().expect("a kind"));
            let spec = &mut body["spec"];
            match kind.kind.as_ref() {
                "KubeadmControlPlane" => {
                    spec["replicas"] = shape.control_plane.into();
                    spec["version"] = shape.version.into();
                }
                "MachineDeployment" => {
                    spec["replicas"] = shape.workers.into();
                    spec["template"]["spec"]["version"] = shape.version.into();
                }
                "CloudStackMachineTemplate" => {
                    spec["template"]["spec"]["template"]["name"] = image(shape.version).into();
                }
                "CloudStackCluster" => {
                    let first = spec["failureDomains"][0].clone();
                    let domains = (1..=shape.domains).map(|number| {
                        let mut domain = first.clone();
                        domain["name"] = format!("fd-{number}").into();
                        domain["zone"]["name"] = format!("zone-{number}").into();
                        domain["zone"]["network"]["name"] = match number {
                            1 => NAME.to_owned(),
                            _ => format!("{NAME}-{number}"),
                        }
                        .into();
                        domain
                    });
                    spec["failureDomains"] = domains.collect();
                }
                _ => {}
            }
            (kind, body)
        })
        .collect()
}

/// The example without a network inside, under another name.
pub fn renamed(shape: Shape, name: &str) -> Vec<(KindName, Value)> {
    let mut all = example(shape);
    all.retain(|(_, body)| !matches!(body["kind"].as_str(), Some("ClusterResourceSet" | "ConfigMap")));
    for (_, body) in &mut all {
        let text = body.to_string();
        // Names of clusters, not of what only begins alike.
        let text = text.replace(&format!("\"{NAME}\""), &format!("\"{name}\""));
        let text = text.replace(&format!("\"{NAME}-"), &format!("\"{name}-"));
        *body = serde_json::from_str(&text).expect("JSON");
    }
    all
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
