//! What a user applies: the example of the repository, and credentials.

use capstan_capi_types::addons::ClusterResourceSet;
use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_controller::KindName;
use capstan_object::Object;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachineTemplate};
use serde_json::{Value, json};

use crate::cloud::clouds_yaml;

/// Name of the example's cluster, and of everything else there is one of.
pub const NAME: &str = "stacky";
/// Name of its deployment of workers.
pub const WORKERS: &str = "stacky-workers";
/// Namespace of everything.
pub const NAMESPACE: &str = "default";

const EXAMPLE: &str = include_str!("../../../../../../examples/openstack-cluster.yaml");
const CNI: &str = include_str!("../../../../../../examples/cni.yaml");

pub fn secrets() -> KindName {
    KindName::namespaced("", "v1", "Secret", "secrets")
}

pub fn kind(name: &str) -> KindName {
    let known = [
        KindName::of::<Cluster>(),
        KindName::of::<OpenStackCluster>(),
        KindName::of::<KubeadmControlPlane>(),
        KindName::of::<OpenStackMachineTemplate>(),
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
}

impl Shape {
    /// As the example is.
    pub const EXAMPLE: Self = Self { control_plane: 1, workers: 1, version: "v1.36.0" };
}

/// Name of the image with a version.
fn image(version: &str) -> String {
    format!("ubuntu-2404-kube-{version}")
}

/// The template of machines of a role and version.
pub fn machine_template(name: &str, flavor: &str, version: &str) -> (KindName, Value) {
    let body = json!({
        "apiVersion": OpenStackMachineTemplate::KIND.api_version(), "kind": "OpenStackMachineTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {
            "flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": image(version)}},
        }}},
    });
    (KindName::of::<OpenStackMachineTemplate>(), body)
}

/// The documents of the example in their order, for a cluster of a shape.
pub fn example(shape: Shape) -> Vec<(KindName, Value)> {
    let documents = CNI.split("\n---\n").chain(EXAMPLE.split("\n---\n"));
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
                "OpenStackMachineTemplate" => {
                    spec["template"]["spec"]["image"]["filter"]["name"] = image(shape.version).into();
                }
                _ => {}
            }
            (kind, body)
        })
        .collect()
}

/// The Secret with the tenant's credentials.
pub fn credentials(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "openstack-credentials", "namespace": namespace},
        "stringData": {"clouds.yaml": clouds_yaml()},
    })
}
