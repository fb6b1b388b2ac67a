//! Secrets in other namespaces.
//!
//! The controllers may read every Secret, and an object may name one in another namespace. Without a check, whoever may
//! create the object would use credentials that they may not read. Allowed is:
//!
//! * who may `get` the Secret;
//! * everybody in a namespace that the Secret lists in its annotation [`ALLOWED_NAMESPACES`];
//! * an update that keeps a reference.
//!
//! The objects of a topology are written by the controllers, and patches of a class may put any reference into them. Here
//! the right to read the Secret is not enough: the reference is also in a template of the same namespace, whose author was
//! asked about, or the Secret lists the namespace. Anybody can write the labels of such an object: they only take rights
//! away.

use capstan_apiserver::status::Status;
use capstan_capi_types::admission::{FieldError, SecretUse};
use capstan_capi_types::core::{Cluster, annotation, label};
use capstan_object::{Key, Object};
use capstan_provider_kit::Secret;
use serde::Deserialize;
use serde_json::Value;

use crate::rules::RelatedObjects;

/// Who wrote the object that names Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    Requester,
    Topology,
}

impl Author {
    pub(crate) fn of(object: &Value) -> Self {
        match object["metadata"]["labels"].get(label::TOPOLOGY_OWNED) {
            Some(_) => Self::Topology,
            None => Self::Requester,
        }
    }
}

/// Group, kind and key of the template that an object of a topology was cloned from, if it is in the same namespace. Whoever
/// may use a class of another namespace was never asked about the Secrets that its templates name.
pub(crate) async fn template_of(
    object: &Value,
    others: &dyn RelatedObjects,
) -> Result<Option<(String, String, Key)>, Status> {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let template = text(&metadata["annotations"][annotation::CLONED_FROM_NAME]);
    let group_kind = text(&metadata["annotations"][annotation::CLONED_FROM_GROUP_KIND]);
    let Some((kind, group)) = group_kind.split_once('.') else { return Ok(None) };
    let cluster = Key::new(text(&metadata["namespace"]), text(&metadata["labels"][label::CLUSTER_NAME]));
    let Some(cluster) = others.get(&Cluster::KIND, &cluster).await? else { return Ok(None) };
    let Ok(cluster) = Cluster::deserialize(cluster) else { return Ok(None) };
    let class = cluster.spec.topology.class_ref.key(&cluster.metadata.namespace);
    let class = class.filter(|class| class.namespace == cluster.metadata.namespace);
    Ok(class.map(|class| (group.to_owned(), kind.to_owned(), Key::new(class.namespace, template))))
}

/// Annotation of a Secret: namespaces, separated by commas, whose objects may name it; `*` for all.
pub const ALLOWED_NAMESPACES: &str = "capstan.dev/allowed-namespaces";

/// The uses that are new in this request and that the requester may not make. `template` has those of the template that an
/// object of a topology was cloned from.
pub(crate) async fn forbidden(
    namespace: &str,
    uses: &[SecretUse],
    before: &[SecretUse],
    template: &[SecretUse],
    author: Author,
    others: &dyn RelatedObjects,
) -> Result<Vec<FieldError>, Status> {
    let mut errors = Vec::new();
    // One question per Secret, however often it is named.
    let mut judged: Vec<(&Key, bool)> = Vec::new();
    for SecretUse { path, secret } in uses {
        if secret.namespace == namespace || before.iter().any(|used| used.secret == *secret) {
            continue;
        }
        let known = judged.iter().find(|(known, _)| *known == secret).map(|(_, allowed)| *allowed);
        let allowed = match known {
            Some(allowed) => allowed,
            None => {
                let named = author == Author::Requester || template.iter().any(|used| used.secret == *secret);
                named && others.may_get(&Secret::KIND, secret).await?
                    || granted(secret, namespace, others).await?
            }
        };
        judged.push((secret, allowed));
        if !allowed {
            errors.push(FieldError::forbidden(
                path.as_str(),
                match author {
                    Author::Requester => format!(
                        "you may not use Secret {secret}: get the right to read it, or have its owner add {namespace:?} \
                         to its annotation {ALLOWED_NAMESPACES}"
                    ),
                    Author::Topology => format!(
                        "an object of a ClusterClass may not use Secret {secret}: have its owner add {namespace:?} to its \
                         annotation {ALLOWED_NAMESPACES}, or name it in a template in this namespace"
                    ),
                },
            ));
        }
    }
    Ok(errors)
}

/// Whether the owner of a Secret lets objects of a namespace use it.
async fn granted(secret: &Key, namespace: &str, others: &dyn RelatedObjects) -> Result<bool, Status> {
    let Some(secret) = others.get(&Secret::KIND, secret).await? else { return Ok(false) };
    Ok(lists(&secret["metadata"]["annotations"][ALLOWED_NAMESPACES], namespace))
}

fn lists(annotation: &Value, namespace: &str) -> bool {
    let names = annotation.as_str().unwrap_or_default().split(',').map(str::trim);
    names.into_iter().any(|name| name == "*" || (!name.is_empty() && name == namespace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grant_names_namespaces() {
        for (annotation, expected) in [
            (json!(null), false),
            (json!(""), false),
            (json!("other"), false),
            (json!("team"), true),
            (json!("other, team"), true),
            (json!("teams,tea"), false),
            (json!("*"), true),
            (json!(true), false),
        ] {
            assert_eq!(lists(&annotation, "team"), expected, "{annotation}");
        }
        assert!(!lists(&json!(","), ""), "an empty name is not a namespace");
    }
}
