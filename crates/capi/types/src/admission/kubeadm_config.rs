//! `KubeadmConfig` and `KubeadmConfigTemplate`.

use std::collections::BTreeSet;

use super::common::{shown, validate_template_meta};
use super::{Admission, Features, FieldError};
use crate::bootstrap::{
    Encoding, FileSource, Format, IgnitionSpec, KubeadmConfig, KubeadmConfigSpec, KubeadmConfigTemplate,
    PartitionTableType, PasswdSource, SecretFileSource,
};

const NOT_WITH_IGNITION: &str = r#"not supported when spec.format is set to: "ignition""#;
const IGNITION_IS_OFF: &str = "can be set only if the KubeadmBootstrapFormatIgnition feature gate is enabled";

impl Admission for KubeadmConfig {
    fn validate(&self, _old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_spec(&self.spec, "spec", features, &mut errors);
        errors
    }
}

impl Admission for KubeadmConfigTemplate {
    fn validate(&self, _old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate_spec(&self.spec.template.spec, "spec.template.spec", features, &mut errors);
        validate_template_meta(&self.spec.template.metadata, "spec.template.metadata", &mut errors);
        errors
    }
}

/// Validates a configuration in any kind.
pub(super) fn validate_spec(
    spec: &KubeadmConfigSpec,
    path: &str,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    validate_files(spec, path, errors);
    validate_users(spec, path, errors);
    validate_ignition(spec, path, features, errors);
    for (at, partition) in spec.disk_setup.partitions.iter().enumerate() {
        let total: i32 = partition.disk_layout.iter().map(|part| part.percentage).sum();
        if total > 100 {
            errors.push(FieldError::invalid(
                format!("{path}.diskSetup.partitions[{at}].diskLayout"),
                total,
                "the sum of all partition percentages must not be greater than 100",
            ));
        }
    }
    let user = &spec.join_configuration.discovery.file.kube_config.user;
    if !user.auth_provider.name.is_empty() && !user.exec.command.is_empty() {
        errors.push(FieldError::invalid(
            format!("{path}.joinConfiguration.discovery.file.kubeconfig.user"),
            shown(user),
            "only one of authProvider or exec must be defined",
        ));
    }
}

/// Timeouts of init and join must be equal: v1beta1 has only one.
pub(super) fn validate_equal_timeouts(spec: &KubeadmConfigSpec, path: &str, errors: &mut Vec<FieldError>) {
    let text = |seconds: Option<i32>| seconds.map_or_else(|| "unset".to_owned(), |it| it.to_string());
    let init = text(spec.init_configuration.timeouts.control_plane_component_health_check_seconds);
    let join = text(spec.join_configuration.timeouts.control_plane_component_health_check_seconds);
    if init == join {
        return;
    }
    for (configuration, value) in [("initConfiguration", &init), ("joinConfiguration", &join)] {
        errors.push(FieldError::invalid(
            format!("{path}.{configuration}.timeouts.controlPlaneComponentHealthCheckSeconds"),
            value.as_str(),
            format!(
                "controlPlaneComponentHealthCheckSeconds must be set to the same value both in \
                 initConfiguration.timeouts ({init}) and in joinConfiguration.timeouts ({join})"
            ),
        ));
    }
}

fn validate_secret(secret: &SecretFileSource, path: &str, errors: &mut Vec<FieldError>) {
    for (field, value) in [("name", &secret.name), ("key", &secret.key)] {
        if value.is_empty() {
            errors.push(FieldError::required(
                format!("{path}.secret.{field}"),
                format!("secret file source must specify non-empty secret {field}"),
            ));
        }
    }
}

fn validate_files(spec: &KubeadmConfigSpec, path: &str, errors: &mut Vec<FieldError>) {
    let mut known = BTreeSet::new();
    for (at, file) in spec.files.iter().enumerate() {
        let path = format!("{path}.files[{at}]");
        if file.content_from != FileSource::default() {
            if !file.content.is_empty() {
                errors.push(FieldError::invalid(
                    path.as_str(),
                    shown(file),
                    "only one of content or contentFrom may be specified for a single file",
                ));
            }
            validate_secret(&file.content_from.secret, &format!("{path}.contentFrom"), errors);
        }
        if !known.insert(&file.path) {
            errors.push(FieldError::invalid(
                format!("{path}.path"),
                shown(file),
                "path property must be unique among all files",
            ));
        }
    }
}

fn validate_users(spec: &KubeadmConfigSpec, path: &str, errors: &mut Vec<FieldError>) {
    for (at, user) in spec.users.iter().enumerate() {
        if user.passwd_from == PasswdSource::default() {
            continue;
        }
        let path = format!("{path}.users[{at}]");
        if !user.passwd.is_empty() {
            errors.push(FieldError::invalid(
                path.as_str(),
                shown(user),
                "only one of passwd or passwdFrom may be specified for a single user",
            ));
        }
        validate_secret(&user.passwd_from.secret, &format!("{path}.passwdFrom"), errors);
    }
}

fn validate_ignition(
    spec: &KubeadmConfigSpec,
    path: &str,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    let is_ignition = spec.format == Some(Format::Ignition);
    let has_settings = spec.ignition != IgnitionSpec::default();
    if !features.ignition {
        for (set, field) in [(is_ignition, "format"), (has_settings, "ignition")] {
            if set {
                errors.push(FieldError::forbidden(format!("{path}.{field}"), IGNITION_IS_OFF));
            }
        }
        return;
    }
    if !is_ignition {
        if has_settings {
            errors.push(FieldError::invalid(
                format!("{path}.format"),
                spec.format.map(Format::as_str).unwrap_or_default(),
                r#"must be set to "ignition" if spec.ignition is set"#,
            ));
        }
        return;
    }
    let mut forbid = |field: String| errors.push(FieldError::forbidden(field, NOT_WITH_IGNITION));
    for (at, user) in spec.users.iter().enumerate() {
        if user.inactive == Some(true) {
            forbid(format!("{path}.users[{at}].inactive"));
        }
    }
    for (at, file) in spec.files.iter().enumerate() {
        if matches!(file.encoding, Some(Encoding::Gzip | Encoding::GzipBase64)) {
            forbid(format!("{path}.files[{at}].encoding"));
        }
    }
    if !spec.boot_commands.is_empty() {
        forbid(format!("{path}.bootCommands"));
    }
    for (at, filesystem) in spec.disk_setup.filesystems.iter().enumerate() {
        let path = format!("{path}.diskSetup.filesystems[{at}]");
        for (field, value) in [("replaceFS", &filesystem.replace_fs), ("partition", &filesystem.partition)] {
            if !value.is_empty() {
                forbid(format!("{path}.{field}"));
            }
        }
    }
    for (at, partition) in spec.disk_setup.partitions.iter().enumerate() {
        if partition.table_type == Some(PartitionTableType::Mbr) {
            errors.push(FieldError::invalid(
                format!("{path}.diskSetup.partitions[{at}].tableType"),
                "mbr",
                r#"only partition type "gpt" is supported when spec.format is set to "ignition""#,
            ));
        }
    }
}
