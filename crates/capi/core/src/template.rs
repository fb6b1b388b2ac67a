//! Whether a change of a machine template requires new machines.

use capstan_capi_types::core::{MachineTemplateSpec, TEMPLATE_SUFFIX};
use sha2::{Digest, Sha256};

/// Why machines of one template are not up to date with another, as `UpToDate` conditions word it; empty if they are.
/// Labels, annotations and fields that are updated in place do not count.
pub fn differences(current: &MachineTemplateSpec, desired: &MachineTemplateSpec) -> Vec<String> {
    let (current, desired) = (&current.spec, &desired.spec);
    let of_kind =
        |kind: &str| format!("{} is not up-to-date", kind.strip_suffix(TEMPLATE_SUFFIX).unwrap_or(kind));
    let mut found = Vec::new();
    if current.version != desired.version {
        found.push(format!("Version {}, {} required", current.version, desired.version));
    }
    if current.bootstrap != desired.bootstrap {
        let secret = |name: &Option<String>| name.clone().unwrap_or_else(|| "nil".to_owned());
        found.push(if current.bootstrap.config_ref.kind.is_empty() {
            format!(
                "spec.bootstrap.dataSecretName {}, {} required",
                secret(&current.bootstrap.data_secret_name),
                secret(&desired.bootstrap.data_secret_name)
            )
        } else {
            of_kind(&current.bootstrap.config_ref.kind)
        });
    }
    if current.infrastructure_ref != desired.infrastructure_ref {
        found.push(of_kind(&current.infrastructure_ref.kind));
    }
    if current.failure_domain != desired.failure_domain {
        found.push(format!("Failure domain {}, {} required", current.failure_domain, desired.failure_domain));
    }
    found
}

/// A hash of what counts in [`differences`], for labels of MachineSets. Upstream's hash depends on how Go prints
/// structs; nothing compares the two, since sets are matched by template.
pub fn hash(template: &MachineTemplateSpec) -> u32 {
    let spec = &template.spec;
    let parts = [
        spec.version.as_str(),
        spec.failure_domain.as_str(),
        &spec.infrastructure_ref.api_group,
        &spec.infrastructure_ref.kind,
        &spec.infrastructure_ref.name,
        &spec.bootstrap.config_ref.api_group,
        &spec.bootstrap.config_ref.kind,
        &spec.bootstrap.config_ref.name,
        spec.bootstrap.data_secret_name.as_deref().unwrap_or(""),
    ];
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    let digest = hasher.finalize();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(change: impl Fn(&mut MachineTemplateSpec)) -> MachineTemplateSpec {
        let mut template = MachineTemplateSpec::default();
        template.spec.version = "v1.33.0".to_owned();
        template.spec.infrastructure_ref.kind = "SimMachineTemplate".to_owned();
        template.spec.bootstrap.config_ref.kind = "KubeadmConfigTemplate".to_owned();
        change(&mut template);
        template
    }

    #[test]
    fn only_fields_that_are_not_updated_in_place_require_new_machines() {
        for (what, changed, expected) in [
            ("labels", template(|t| drop(t.metadata.labels.insert("a".into(), "b".into()))), vec![]),
            ("drain timeout", template(|t| t.spec.deletion.node_drain_timeout_seconds = Some(1)), vec![]),
            ("taints", template(|t| t.spec.taints = vec![Default::default()]), vec![]),
            (
                "version",
                template(|t| t.spec.version = "v1.34.0".into()),
                vec!["Version v1.33.0, v1.34.0 required"],
            ),
            (
                "infrastructure",
                template(|t| t.spec.infrastructure_ref.name = "b".into()),
                vec!["SimMachine is not up-to-date"],
            ),
            (
                "bootstrap",
                template(|t| t.spec.bootstrap.config_ref.name = "b".into()),
                vec!["KubeadmConfig is not up-to-date"],
            ),
            (
                "failure domain",
                template(|t| t.spec.failure_domain = "z".into()),
                vec!["Failure domain , z required"],
            ),
        ] {
            let before = template(|_| ());
            assert_eq!(differences(&before, &changed), expected, "{what}");
            assert_eq!(hash(&before) == hash(&changed), expected.is_empty(), "{what}");
        }
    }
}
