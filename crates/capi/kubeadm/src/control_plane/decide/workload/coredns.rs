//! Upgrades CoreDNS: its image and its Corefile.
//!
//! ```text
//! Corefile ─▶ backup ─▶ the Deployment reads the backup ─▶ Corefile migrated ─▶ new image, which reads it
//! ```
//!
//! One change at a time, each derived from the observed state: after a crash the upgrade continues where it was, and
//! CoreDNS never reads a Corefile it does not support.

use capstan_capi_types::bootstrap::ClusterConfiguration;
use semver::Version;
use serde_json::{Value, json};

use super::image::{Image, container, with_image};
use crate::Error;
use crate::config::kubernetes_version;
use crate::control_plane::calls::{ControlPlaneCall, InstalledObject};
use crate::control_plane::installed::COREDNS;
use crate::control_plane::observed::{ControlPlaneState, WorkloadState};
use crate::corefile;

const COREFILE: &str = "Corefile";
const BACKUP: &str = "Corefile-backup";
const VOLUME: &str = "config-volume";
/// Repositories of CoreDNS in the Kubernetes registries.
const NESTED: [&str; 2] = ["registry.k8s.io/coredns", "k8s.gcr.io/coredns"];

pub(super) fn next(
    plane: &ControlPlaneState,
    reached: &WorkloadState,
) -> Result<Option<ControlPlaneCall>, Error> {
    let config = &plane.control_plane.spec.kubeadm_config_spec.cluster_configuration;
    let (Some(deployment), Some(settings)) = (&reached.coredns, &reached.coredns_config) else {
        return Ok(None);
    };
    let Some(text) = container(deployment, COREDNS).and_then(|container| container["image"].as_str()) else {
        return Ok(None);
    };
    let current = Image::parse(text);
    let wanted = wanted(config, current)?;
    let Some(source) = settings.data.get(COREFILE) else { return Ok(None) };
    let reads = volume_key(deployment);
    // A Deployment that reads the backup is mid-upgrade: it is completed even if the image is the desired one again.
    if current == wanted && reads != Some(BACKUP) {
        return Ok(None);
    }
    let (from, to) = (release(current.tag)?, release(wanted.tag)?);
    let change = |what, change| Ok(Some(ControlPlaneCall::Change { what, change }));
    let write = |key: &str, text: &str| {
        let version = &settings.metadata.resource_version;
        let body = json!({"metadata": {"resourceVersion": version}, "data": {key: text}});
        change(InstalledObject::CoreDnsConfig, body)
    };
    // Check that a migration exists before anything changes.
    let original = match reads {
        Some(BACKUP) => settings.data.get(BACKUP).unwrap_or(source),
        _ => source,
    };
    let migrated =
        corefile::migrate(original, &from, &to).map_err(|error| Error::Corefile(error.to_string()))?;
    match reads {
        Some(COREFILE) if settings.data.get(BACKUP) != Some(source) => write(BACKUP, source),
        Some(COREFILE) => change(InstalledObject::CoreDns, reading(deployment, BACKUP, json!({}))),
        Some(_) if *source != migrated => write(COREFILE, &migrated),
        Some(_) => {
            let image = with_image(deployment, COREDNS, &wanted).unwrap_or_else(|| json!({}));
            change(InstalledObject::CoreDns, reading(deployment, COREFILE, image))
        }
        // With another file mounted, the Corefile is managed by the user.
        None => match with_image(deployment, COREDNS, &wanted) {
            Some(body) => change(InstalledObject::CoreDns, body),
            None => Ok(None),
        },
    }
}

/// The configured image; unset parts keep their current value.
pub(super) fn wanted<'a>(config: &'a ClusterConfiguration, current: Image<'a>) -> Result<Image<'a>, Error> {
    let tag = Some(config.dns.image_tag.as_str()).filter(|tag| !tag.is_empty()).or(current.tag);
    let asked = [&config.dns.image_repository, &config.image_repository];
    let asked = asked.into_iter().find(|repository| !repository.is_empty());
    let repository = match asked.map(|repository| repository.trim_end_matches('/')) {
        Some(asked) if current.repository.strip_prefix(asked) == Some("/coredns") => current.repository,
        Some(asked) => match NESTED.iter().find(|nested| nested.strip_suffix("/coredns") == Some(asked)) {
            Some(nested) if current.name == COREDNS && is_nested(tag)? => nested,
            _ => asked,
        },
        None => current.repository,
    };
    Ok(Image { repository, tag, ..current })
}

/// Since 1.8 the Kubernetes registries have CoreDNS at `coredns/coredns`.
fn is_nested(tag: Option<&str>) -> Result<bool, Error> {
    let version = version(tag)?;
    Ok((version.major, version.minor) >= (1, 8))
}

/// The release of a tag such as `v1.12.1_vendor.2`.
fn release(tag: Option<&str>) -> Result<String, Error> {
    let version = version(tag)?;
    Ok(format!("{}.{}.{}", version.major, version.minor, version.patch))
}

fn version(tag: Option<&str>) -> Result<Version, Error> {
    let tag = tag.ok_or_else(|| Error::Corefile("the image of CoreDNS has no tag".to_owned()))?;
    kubernetes_version(&tag.replace('_', "+"))
}

fn items(deployment: &Value) -> Option<(usize, &Vec<Value>)> {
    let volumes = deployment.pointer("/spec/template/spec/volumes")?.as_array()?;
    let at = volumes
        .iter()
        .position(|volume| volume["name"] == VOLUME && volume["configMap"]["name"] == COREDNS)?;
    Some((at, volumes[at]["configMap"]["items"].as_array()?))
}

/// Which key of its ConfigMap the Deployment reads: the Corefile, its backup, or neither.
fn volume_key(deployment: &Value) -> Option<&'static str> {
    let (_, items) = items(deployment)?;
    [COREFILE, BACKUP].into_iter().find(|key| items.iter().any(|item| item["key"] == *key))
}

/// Adds to a patch of the Deployment that it mounts the given key.
fn reading(deployment: &Value, key: &str, mut change: Value) -> Value {
    change["metadata"]["resourceVersion"] = deployment["metadata"]["resourceVersion"].clone();
    let Some((at, items)) = items(deployment) else { return change };
    let items: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut item = item.clone();
            if item["key"] == COREFILE || item["key"] == BACKUP {
                item["key"] = key.into();
            }
            item
        })
        .collect();
    let mut volumes = deployment["spec"]["template"]["spec"]["volumes"].clone();
    volumes[at]["configMap"]["items"] = items.into();
    change["spec"]["template"]["spec"]["volumes"] = volumes;
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coredns_has_a_nested_path_in_the_kubernetes_registries() {
        for (image, asked, expected) in [
            ("mirror.example/coredns:v1.12.1", "registry.k8s.io", "registry.k8s.io/coredns/coredns:v1.12.1"),
            ("mirror.example/coredns:v1.12.1", "registry.k8s.io/", "registry.k8s.io/coredns/coredns:v1.12.1"),
            ("mirror.example/coredns:v1.7.0", "k8s.gcr.io", "k8s.gcr.io/coredns:v1.7.0"),
            ("mirror.example/coredns:v1.8.0", "k8s.gcr.io", "k8s.gcr.io/coredns/coredns:v1.8.0"),
            ("mirror.example/mydns:v1.12.1", "registry.k8s.io", "registry.k8s.io/mydns:v1.12.1"),
            ("registry.k8s.io/coredns/coredns:v1.12.1", "mirror.example", "mirror.example/coredns:v1.12.1"),
            (
                "registry.k8s.io/coredns/coredns:v1.12.1",
                "registry.k8s.io",
                "registry.k8s.io/coredns/coredns:v1.12.1",
            ),
        ] {
            let mut config = ClusterConfiguration::default();
            config.dns.image_repository = asked.to_owned();
            let found = wanted(&config, Image::parse(image)).expect("a version");
            assert_eq!(found.to_string(), expected, "{image}, configured {asked}");
        }
    }
}
