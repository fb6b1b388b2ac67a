//! References between Cluster API objects, in the forms of v1beta1 and v1beta2.

use capstan_object::Key;
use serde_json::Value;

/// Suffix of the API groups of Cluster API and its providers.
pub const GROUPS: &str = "cluster.x-k8s.io";
/// Secrets that a cluster with a KubeadmControlPlane has, by the end of their names.
const CLUSTER_SECRETS: [&str; 5] = ["ca", "etcd", "proxy", "sa", "kubeconfig"];

/// Fields that refer to objects, by kind.
const FIELDS: [(&str, &[&str]); 6] = [
    ("Cluster", &["spec.infrastructureRef", "spec.controlPlaneRef"]),
    ("Machine", &["spec.infrastructureRef", "spec.bootstrap.configRef"]),
    ("MachineSet", &TEMPLATE),
    ("MachineDeployment", &TEMPLATE),
    ("MachinePool", &TEMPLATE),
    (
        "KubeadmControlPlane",
        &["spec.machineTemplate.infrastructureRef", "spec.machineTemplate.spec.infrastructureRef"],
    ),
];
const TEMPLATE: [&str; 2] =
    ["spec.template.spec.infrastructureRef", "spec.template.spec.bootstrap.configRef"];

/// Identity of an object without its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub group: String,
    pub kind: String,
    pub key: Key,
}

/// A reference of one object to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Such as `spec.infrastructureRef`.
    pub field: String,
    pub target: Id,
    /// The cluster cannot be managed without the target.
    pub required: bool,
}

pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let found = field.split('.').try_fold(value, |value, part| value.get(part));
    found.and_then(Value::as_str).unwrap_or_default()
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Id {
    pub fn of(object: &Value) -> Self {
        Self {
            group: group(text(object, "apiVersion")).to_owned(),
            kind: text(object, "kind").to_owned(),
            key: Key::new(text(object, "metadata.namespace"), text(object, "metadata.name")),
        }
    }

    fn secret(namespace: &str, name: impl Into<String>) -> Self {
        Self { group: String::new(), kind: "Secret".to_owned(), key: Key::new(namespace, name) }
    }

    /// An owner, in the namespace of the object that it owns.
    pub fn of_owner(owner: &Value, namespace: &str) -> Self {
        Self {
            group: group(text(owner, "apiVersion")).to_owned(),
            kind: text(owner, "kind").to_owned(),
            key: Key::new(namespace, text(owner, "name")),
        }
    }

    pub fn is_cluster(&self) -> bool {
        self.kind == "Cluster" && self.group == GROUPS
    }

    /// Whether the kind is of Cluster API or a provider.
    pub fn is_cluster_api(&self) -> bool {
        self.group.ends_with(GROUPS)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} in namespace {}", self.kind, self.key.name, self.key.namespace)
    }
}

/// The owner references of an object.
pub fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

pub fn references(object: &Value) -> Vec<Reference> {
    let id = Id::of(object);
    if !id.is_cluster_api() {
        return Vec::new();
    }
    let namespace = id.key.namespace.as_str();
    // Old sets are kept for history, and their templates may be gone.
    let unused = id.kind == "MachineSet" && object["spec"]["replicas"] == 0;
    let fields = FIELDS.iter().find(|(kind, _)| *kind == id.kind).map_or(&[][..], |(_, fields)| *fields);
    let mut all: Vec<Reference> = fields
        .iter()
        .filter_map(|field| {
            let found = field.split('.').try_fold(object, |value, part| value.get(part))?;
            let target = target(found, namespace)?;
            Some(Reference { field: (*field).to_owned(), target, required: !unused })
        })
        .collect();
    match id.kind.as_str() {
        "Cluster" => all.extend(of_cluster(object, namespace)),
        "Machine" => {
            let field = "spec.bootstrap.dataSecretName";
            let name = text(object, field);
            all.extend((!name.is_empty()).then(|| secret(field, namespace, name, true)));
        }
        "KubeadmControlPlane" => all.extend(of_files(object, "spec.kubeadmConfigSpec", namespace)),
        "KubeadmConfigTemplate" => all.extend(of_files(object, "spec.template.spec", namespace)),
        "ClusterResourceSet" => {
            let resources = object["spec"]["resources"].as_array().into_iter().flatten().enumerate();
            all.extend(resources.map(|(number, resource)| {
                let key = Key::new(namespace, text(resource, "name"));
                let target = Id { group: String::new(), kind: text(resource, "kind").to_owned(), key };
                Reference { field: format!("spec.resources[{number}]"), target, required: true }
            }));
        }
        _ => {}
    }
    all
}

fn target(reference: &Value, namespace: &str) -> Option<Id> {
    let name = Some(text(reference, "name")).filter(|name| !name.is_empty())?;
    let group = reference["apiGroup"].as_str().unwrap_or_else(|| group(text(reference, "apiVersion")));
    let elsewhere = Some(text(reference, "namespace")).filter(|namespace| !namespace.is_empty());
    Some(Id {
        group: group.to_owned(),
        kind: text(reference, "kind").to_owned(),
        key: Key::new(elsewhere.unwrap_or(namespace), name),
    })
}

fn secret(field: impl Into<String>, namespace: &str, name: impl Into<String>, required: bool) -> Reference {
    Reference { field: field.into(), target: Id::secret(namespace, name), required }
}

/// Certificates, the kubeconfig, and the ClusterClass.
fn of_cluster(cluster: &Value, namespace: &str) -> Vec<Reference> {
    let name = text(cluster, "metadata.name");
    let required = text(cluster, "spec.controlPlaneRef.kind") == "KubeadmControlPlane";
    let mut all: Vec<Reference> = CLUSTER_SECRETS
        .iter()
        .map(|end| secret("metadata.name", namespace, format!("{name}-{end}"), required))
        .collect();
    let topology = &cluster["spec"]["topology"];
    for (field, class, place) in [
        ("spec.topology.class", "class", "classNamespace"),
        ("spec.topology.classRef", "classRef.name", "classRef.namespace"),
    ] {
        let class = text(topology, class);
        if !class.is_empty() {
            let place = Some(text(topology, place)).filter(|place| !place.is_empty());
            let key = Key::new(place.unwrap_or(namespace), class);
            let target = Id { group: GROUPS.to_owned(), kind: "ClusterClass".to_owned(), key };
            all.push(Reference { field: field.to_owned(), target, required: true });
        }
    }
    all
}

/// Secrets that files and passwords of a kubeadm configuration come from.
fn of_files(object: &Value, spec: &str, namespace: &str) -> Vec<Reference> {
    let spec_of = spec.split('.').try_fold(object, |value, part| value.get(part));
    let mut all = Vec::new();
    for (list, from) in [("files", "contentFrom"), ("users", "passwdFrom")] {
        let items = spec_of.and_then(|spec| spec[list].as_array()).into_iter().flatten().enumerate();
        for (number, item) in items {
            let name = text(&item[from], "secret.name");
            if !name.is_empty() {
                all.push(secret(format!("{spec}.{list}[{number}].{from}.secret"), namespace, name, true));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(object: &Value) -> Vec<String> {
        references(object)
            .iter()
            .map(|it| format!("{} {} {}", it.field, it.target.kind, it.target.key))
            .collect()
    }

    #[test]
    fn both_forms_of_references_are_read() {
        let old = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "n"}, "spec": {"infrastructureRef":
                {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "ExampleMachine", "name": "i"},
                "bootstrap": {"dataSecretName": "data"}}});
        let new = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "n"}, "spec": {"infrastructureRef":
                {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ExampleMachine", "name": "i"},
                "bootstrap": {"dataSecretName": "data"}}});
        let expected =
            ["spec.infrastructureRef ExampleMachine n/i", "spec.bootstrap.dataSecretName Secret n/data"];
        assert_eq!(shown(&old), expected);
        assert_eq!(references(&old), references(&new));
    }

    #[test]
    fn a_cluster_refers_to_its_certificates_and_class() {
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {"topology": {"classRef": {"name": "class", "namespace": "shared"}}}});
        let found = shown(&cluster);
        assert!(found.contains(&"metadata.name Secret n/c-ca".to_owned()), "{found:?}");
        assert!(found.contains(&"spec.topology.classRef ClusterClass shared/class".to_owned()), "{found:?}");
    }

    #[test]
    fn secrets_of_files_are_references() {
        let control_plane = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {"kubeadmConfigSpec": {"files": [{"path": "/a"}, {"contentFrom": {"secret": {"name": "s"}}}]}}});
        assert_eq!(shown(&control_plane), ["spec.kubeadmConfigSpec.files[1].contentFrom.secret Secret n/s"]);
    }
}
