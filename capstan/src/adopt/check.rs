//! Why the objects of a cluster cannot be imported: object, field and fix of each problem.

use capstan_object::Key;
use capstan_provider_kit::{Adoption, CredentialRef};
use serde_json::Value;

use super::graph::Objects;
use super::refs::{Id, owners, references, text};
use crate::apply::title;

/// What to do about objects that are not in the source.
const EXPORT: &str = "export it too, with `clusterctl move --to-directory` or `kubectl get -o yaml`";

/// Input of the checks.
pub struct Checked<'a> {
    pub source: &'a Objects,
    /// The objects of the cluster.
    pub members: &'a [Value],
    pub cluster: &'a Value,
    /// Secrets that exist on the server already.
    pub existing_secrets: &'a [Key],
}

impl Checked<'_> {
    pub fn problems(&self, provider: Option<&dyn Adoption>, supported: &[&str]) -> Vec<String> {
        let mut problems = self.cluster(provider.is_some(), supported);
        for object in self.members {
            problems.extend(self.references(object));
            problems.extend(self.owners(object));
            if !object["metadata"]["deletionTimestamp"].is_null() {
                problems.push(format!(
                    "{}: metadata.deletionTimestamp is set: let the old management cluster finish the deletion, then \
                     export again",
                    title(object)
                ));
            }
        }
        let credentials = provider.map(|provider| provider.credentials(self.members)).unwrap_or_default();
        problems.extend(credentials.iter().filter_map(|reference| self.credentials(reference)));
        problems
    }

    fn cluster(&self, known: bool, supported: &[&str]) -> Vec<String> {
        let title = title(self.cluster);
        let mut problems = Vec::new();
        let kind = text(self.cluster, "spec.infrastructureRef.kind");
        if kind.is_empty() {
            problems.push(format!("{title}: spec.infrastructureRef is empty: a cluster without infrastructure has nothing to take over"));
        } else if !known {
            problems.push(format!(
                "{title}: spec.infrastructureRef.kind is {kind}: adopt supports {}",
                supported.join(", ")
            ));
        }
        if text(self.cluster, "spec.controlPlaneRef.kind").is_empty() {
            problems.push(format!(
                "{title}: spec.controlPlaneRef is empty: clusters need a control plane object"
            ));
        }
        if !self.cluster["spec"]["managedExternalEtcdRef"].is_null() {
            problems.push(format!(
                "{title}: spec.managedExternalEtcdRef is set: clusters with etcd on machines of its own are not supported"
            ));
        }
        if !self.cluster["status"].is_object() {
            problems.push(format!(
                "{title}: status is missing: export with `kubectl get -o yaml`, which keeps it"
            ));
        }
        problems
    }

    fn has(&self, id: &Id) -> bool {
        self.source.get(id).is_some() || id.kind == "Secret" && self.existing_secrets.contains(&id.key)
    }

    fn references(&self, object: &Value) -> Vec<String> {
        let missing = references(object).into_iter().filter(|it| it.required && !self.has(&it.target));
        missing
            .map(|it| format!("{}: {}: {} is missing: {EXPORT}", title(object), it.field, it.target))
            .collect()
    }

    /// Owners of other APIs are dropped; those of Cluster API must be there.
    fn owners(&self, object: &Value) -> Vec<String> {
        let namespace = text(object, "metadata.namespace");
        let missing = owners(object).enumerate().filter_map(|(number, owner)| {
            let id = Id::of_owner(owner, namespace);
            let needed = id.is_cluster_api() && !id.is_cluster();
            (needed && self.source.owner(owner, namespace).is_none()).then(|| {
                format!("{}: metadata.ownerReferences[{number}]: {id} is missing: {EXPORT}", title(object))
            })
        });
        missing.collect()
    }

    fn credentials(&self, reference: &CredentialRef) -> Option<String> {
        let CredentialRef { object, field, secret } = reference;
        let id = Id { group: String::new(), kind: "Secret".to_owned(), key: secret.clone() };
        (!self.has(&id)).then(|| {
            format!(
                "{object}: {field}: {id} with the credentials of the cloud is missing: export it too, or create it on this \
                 server"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Cloud;

    impl Adoption for Cloud {
        fn cluster_kind(&self) -> &'static str {
            "CloudCluster"
        }

        fn credentials(&self, _: &[Value]) -> Vec<CredentialRef> {
            let (object, field) = ("CloudCluster/c".to_owned(), "spec.keys".to_owned());
            vec![CredentialRef { object, field, secret: Key::new("n", "keys") }]
        }

        fn record(&self, _: &mut [Value]) {}

        fn observer(&self) -> Box<dyn capstan_provider_kit::Observer> {
            unreachable!("nothing is observed")
        }
    }

    fn cluster() -> Value {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": "n"},
            "spec": {
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "CloudCluster", "name": "c"},
                "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "Other", "name": "c"},
            }, "status": {}})
    }

    fn part(api: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "n"}})
    }

    fn problems(mut objects: Vec<Value>, known: bool, existing: &[Key]) -> Vec<String> {
        objects.insert(0, cluster());
        let source = Objects::new(objects.clone());
        let checked =
            Checked { source: &source, members: &objects, cluster: &objects[0], existing_secrets: existing };
        checked.problems(known.then_some(&Cloud as &dyn Adoption), &["CloudCluster"])
    }

    fn parts() -> Vec<Value> {
        vec![
            part("infrastructure.cluster.x-k8s.io/v1", "CloudCluster", "c"),
            part("controlplane.cluster.x-k8s.io/v1beta1", "Other", "c"),
        ]
    }

    #[test]
    fn a_complete_cluster_has_no_problems() {
        let mut all = parts();
        all.push(part("v1", "Secret", "keys"));
        assert_eq!(problems(all, true, &[]), [""; 0]);
        assert_eq!(problems(parts(), true, &[Key::new("n", "keys")]), [""; 0], "the server has the Secret");
    }

    #[test]
    fn problems_name_object_field_and_fix() {
        let keys = [Key::new("n", "keys")];
        let only = |found: Vec<String>| {
            assert_eq!(found.len(), 1, "{found:#?}");
            found.into_iter().next().unwrap_or_default()
        };
        let found = only(problems(parts(), true, &[]));
        assert!(
            found.starts_with("CloudCluster/c: spec.keys: Secret/keys in namespace n with the credentials"),
            "{found}"
        );
        let found = only(problems(parts(), false, &keys));
        assert_eq!(
            found,
            "Cluster/c: spec.infrastructureRef.kind is CloudCluster: adopt supports CloudCluster"
        );
        let found = only(problems(parts().split_off(1), true, &keys));
        assert!(
            found.starts_with("Cluster/c: spec.infrastructureRef: CloudCluster/c in namespace n is missing"),
            "{found}"
        );
        let mut orphan = part("cluster.x-k8s.io/v1beta1", "Machine", "m");
        orphan["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineSet", "name": "set", "uid": "u"}]);
        let found = only(problems([parts(), vec![orphan]].concat(), true, &keys));
        assert!(
            found.starts_with(
                "Machine/m: metadata.ownerReferences[0]: MachineSet/set in namespace n is missing"
            ),
            "{found}"
        );
        let mut leaving = part("cluster.x-k8s.io/v1beta1", "Machine", "m");
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let found = only(problems([parts(), vec![leaving]].concat(), true, &keys));
        assert!(found.starts_with("Machine/m: metadata.deletionTimestamp is set"), "{found}");
    }
}
