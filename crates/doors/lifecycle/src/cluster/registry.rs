//! The credentials of a registry mirror. The operator's Secret becomes a Secret of the cluster, with containerd's
//! configuration: machines get it when they boot, and nothing else has its content.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::{Key, OwnerReference};
use capstan_provider_kit::{Secret, SecretOutline};
use serde_json::json;

use super::phases::{Applies, Round};
use super::{Clusters, compare};
use crate::generate::metadata;
use crate::generate::mirror::{CONFIGURATION_KEY, Login, configuration};
use crate::names::{self, REGISTRY_CREDENTIALS, SYSTEM_NAMESPACE, annotation};
use crate::types::{Cluster, RegistryMirrorConfiguration};

/// The mirror, if it wants credentials.
pub(super) fn mirror(cluster: &Cluster) -> Option<&RegistryMirrorConfiguration> {
    cluster.spec.registry_mirror_configuration.as_ref().filter(|mirror| mirror.authenticate)
}

/// The operator's Secret.
pub(super) fn credentials() -> Key {
    Key::new(SYSTEM_NAMESPACE, REGISTRY_CREDENTIALS)
}

/// Reads the operator's Secret, if the cluster needs it. Held by its version.
pub(super) async fn observe(
    controller: &Clusters,
    cluster: &Cluster,
    view: &View,
) -> Result<Option<Arc<Secret>>, ObserveError> {
    let key = credentials();
    let Some(outline) = view.get::<SecretOutline>(&key)?.filter(|_| mirror(cluster).is_some()) else {
        return Ok(None);
    };
    let version = &outline.metadata.resource_version;
    let held = controller.login.lock().clone();
    if let Some(held) = held.filter(|it| it.metadata.resource_version == *version) {
        return Ok(Some(held));
    }
    let read = view.client().get::<Secret>(&key).await?.map(Arc::new);
    controller.login.lock().clone_from(&read);
    Ok(read)
}

/// Who pulls from the mirror; the error names the Secret and the field, and never a value.
pub(super) fn login(secret: Option<&Secret>) -> Result<Login, String> {
    let key = credentials();
    let Some(secret) = secret else {
        return Err(format!(
            "there is no Secret {key} with the credentials of the registry mirror: create it with the fields username and password"
        ));
    };
    let field = |name: &str| {
        let text = secret.text(name).unwrap_or_default();
        match !text.is_empty() && !text.chars().any(char::is_control) {
            true => Ok(text),
            false => Err(format!("Secret {key} has no line of text in its field {name}: fill it in")),
        }
    };
    Ok(Login { username: field("username")?, password: field("password")? })
}

/// Writes the cluster's Secret, if it is not as it has to be. What it was made from is recorded by versions: a digest of
/// credentials would help to guess them.
pub(super) fn write(round: &mut Round<'_>, owner: &OwnerReference) {
    let (cluster, seen) = (&round.look.object, &round.look.seen);
    let (Some(mirror), Some(source)) = (mirror(cluster), &seen.registry) else { return };
    let Ok(login) = login(Some(source)) else { return };
    let meta = metadata(cluster, &names::registry(&cluster.metadata.name));
    let public = compare::digest(&configuration(mirror, None).into());
    let address = format!("{}:{}", mirror.endpoint, mirror.port);
    let source = &source.metadata;
    let made_from = format!("{}/{}/{address}/{public}", source.uid, source.resource_version);
    let current = seen.current.registry.as_ref();
    if current.is_some_and(|there| there.annotations.get(annotation::APPLIED) == Some(&made_from)) {
        return;
    }
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": meta.name, "namespace": meta.namespace, "labels": meta.labels,
            "annotations": {annotation::APPLIED: made_from}, "ownerReferences": [owner],
        },
        "data": {CONFIGURATION_KEY: STANDARD.encode(configuration(mirror, Some(&login)))},
    });
    let mut effects = Applies { decision: &mut round.decision, owner: None };
    effects.push("Secret", KindName::of::<SecretOutline>(), body, current);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_are_missing_are_named_by_secret_and_field() {
        let secret = |data: &[(&str, &str)]| {
            let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
            Secret { data: data.collect(), ..Secret::default() }
        };
        for (secret, expected) in [
            (
                None,
                "there is no Secret eksa-system/registry-credentials with the credentials of the registry mirror: create it with the fields username and password",
            ),
            (
                Some(secret(&[("password", "p")])),
                "Secret eksa-system/registry-credentials has no line of text in its field username: fill it in",
            ),
            (
                Some(secret(&[("username", "u"), ("password", "hidden\n")])),
                "Secret eksa-system/registry-credentials has no line of text in its field password: fill it in",
            ),
        ] {
            assert_eq!(login(secret.as_ref()).map(drop), Err(expected.to_owned()));
        }
        assert!(login(Some(&secret(&[("username", "u"), ("password", "p")]))).is_ok());
    }
}
