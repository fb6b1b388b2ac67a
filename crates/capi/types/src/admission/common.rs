//! Rules of several kinds.

use std::collections::BTreeMap;

use capstan_object::{IntOrString, LabelSelector, ObjectMeta};
use capstan_schema::field::FieldError;
use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::LabelSelector as Selector;
use serde::Serialize;
use serde_json::{Value, json};

use super::Features;
use crate::core::naming;
use crate::core::{
    Bootstrap, ContractVersionedObjectReference, MachineHealthCheckChecks, MachineNamingSpec,
    MachineSetPreflightCheck, MachineSpec, MachineTaint, TemplateMeta, annotation, label,
};
use crate::version;

/// The message for a changed immutable field.
pub const IMMUTABLE: &str = "field is immutable";

/// An invalid value in messages.
pub(super) fn shown<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Prefixes a version with `v`.
pub(super) fn default_version(version: &mut String) {
    if !version.is_empty() && !version.starts_with('v') {
        version.insert(0, 'v');
    }
}

/// The label with the cluster's name is required.
pub(super) fn default_cluster_label(meta: &mut ObjectMeta, cluster: &str) {
    meta.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.to_owned());
}

impl ContractVersionedObjectReference {
    /// The reference must not be empty.
    pub fn is_defined(&self) -> bool {
        *self != Self::default()
    }
}

/// A version must be complete and start with `v`.
pub(super) fn validate_version(text: &str, path: &str, errors: &mut Vec<FieldError>) {
    if text.is_empty() {
        return;
    }
    if !text.starts_with('v') {
        errors.push(FieldError::invalid(path, text, "must start with v"));
    }
    if !version::is_semantic(text) {
        errors.push(FieldError::invalid(path, text, "must be a valid semantic version"));
    }
}

/// A source of boot data is required.
pub(super) fn validate_bootstrap(bootstrap: &Bootstrap, path: &str, errors: &mut Vec<FieldError>) {
    if !bootstrap.config_ref.is_defined() && bootstrap.data_secret_name.is_none() {
        errors.push(FieldError::required(
            path,
            format!("expected either {path}.dataSecretName or {path}.configRef to be populated"),
        ));
    }
}

/// The cluster name is immutable.
pub(super) fn validate_cluster_name(new: &str, old: Option<&str>, errors: &mut Vec<FieldError>) {
    if old.is_some_and(|old| old != new) {
        errors.push(FieldError::forbidden("spec.clusterName", IMMUTABLE));
    }
}

/// Validates cluster, version and taints of a machine template.
pub(super) fn validate_machine_template(
    cluster: &str,
    spec: &MachineSpec,
    meta: &TemplateMeta,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    validate_template(cluster, spec, meta, errors);
    validate_taints(&spec.taints, "spec.template.spec.taints", features, errors);
    validate_worker_taints(&spec.taints, "spec.template.spec.taints", features, errors);
}

/// Validates cluster, version, labels and annotations of a machine template.
pub(super) fn validate_template(
    cluster: &str,
    spec: &MachineSpec,
    meta: &TemplateMeta,
    errors: &mut Vec<FieldError>,
) {
    if cluster != spec.cluster_name {
        errors.push(FieldError::invalid(
            "spec.clusterName",
            cluster,
            "spec.clusterName and spec.template.spec.clusterName must be set to the same value",
        ));
    }
    validate_version(&spec.version, "spec.template.spec.version", errors);
    validate_template_meta(meta, "spec.template.metadata", errors);
}

/// Parses a label selector.
pub(super) fn selector(selector: &LabelSelector) -> Result<Selector, String> {
    Selector::from_object(&shown(selector)).map_err(|error| error.to_string())
}

pub(super) fn selects(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    selector.matches(|key| labels.get(key).map(String::as_str))
}

/// Validates labels and annotations of a template.
pub fn validate_template_meta(meta: &TemplateMeta, path: &str, errors: &mut Vec<FieldError>) {
    let path = Path::at(path);
    errors.extend(meta::validate_labels(Some(&shown(&meta.labels)), &path.field("labels")));
    errors.extend(meta::validate_annotations(Some(&shown(&meta.annotations)), &path.field("annotations")));
}

/// Rejects taints that other controllers manage.
pub(super) fn validate_taints(
    taints: &[MachineTaint],
    path: &str,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    if !features.machine_taints && !taints.is_empty() {
        errors.push(FieldError::forbidden(
            path,
            "taints are not allowed to be set when the feature gate MachineTaintPropagation is disabled",
        ));
    }
    for (at, taint) in taints.iter().enumerate() {
        let key = taint.key.as_str();
        let path = format!("{path}[{at}].key");
        let problem = match key {
            "node.cluster.x-k8s.io/uninitialized" | "node.cluster.x-k8s.io/outdated-revision" => {
                Some("taint key is not allowed")
            }
            "node-role.kubernetes.io/master" => {
                Some("taint is deprecated since 1.24 and should not be used anymore")
            }
            _ if key.starts_with("node.kubernetes.io/") && key != "node.kubernetes.io/out-of-service" => {
                Some(
                    "taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service",
                )
            }
            _ if key.starts_with("node.cloudprovider.kubernetes.io/") => {
                Some("taint key must not have the prefix node.cloudprovider.kubernetes.io/")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            errors.push(FieldError::invalid(path.as_str(), key, problem));
        }
        for problem in meta::qualified_name(key) {
            errors.push(FieldError::invalid(path.as_str(), key, problem));
        }
    }
}

/// Rejects a worker with the control plane label.
pub(super) fn validate_worker_taints(
    taints: &[MachineTaint],
    path: &str,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    if !features.machine_taints {
        return;
    }
    for (at, taint) in taints.iter().enumerate() {
        if taint.key == "node-role.kubernetes.io/control-plane" {
            errors.push(FieldError::invalid(
                format!("{path}[{at}].key"),
                taint.key.as_str(),
                "taint is not allowed for worker Machines",
            ));
        }
    }
}

/// An integer or a percentage.
pub(super) fn validate_percentage(value: Option<&IntOrString>, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(IntOrString::String(text)) = value
        && text.strip_suffix('%').is_none_or(|number| number.parse::<i32>().is_err())
    {
        errors.push(FieldError::invalid(
            path,
            text.as_str(),
            format!("must be either an int or a percentage: {}", percentage_problem(text)),
        ));
    }
}

/// Error texts of `intstr.GetScaledValueFromIntOrPercent`.
fn percentage_problem(text: &str) -> String {
    match text.strip_suffix('%') {
        None => "invalid value for IntOrString: invalid type: string is not a percentage".to_owned(),
        Some(number) => format!(
            "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: invalid syntax",
            json!(text),
            json!(number)
        ),
    }
}

/// Minimum timeout: no machine boots faster.
const LEAST_NODE_STARTUP_TIMEOUT_SECONDS: i32 = 30;

/// Health checks leave machines time to boot; zero disables the check. `path` is that of the object with the checks.
pub(super) fn validate_node_startup_timeout(
    checks: &MachineHealthCheckChecks,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(seconds) = checks.node_startup_timeout_seconds
        && seconds != 0
        && seconds < LEAST_NODE_STARTUP_TIMEOUT_SECONDS
    {
        let path = format!("{path}.checks.nodeStartupTimeoutSeconds");
        errors.push(FieldError::invalid(path, seconds, "must be at least 30s"));
    }
}

/// Surge and unavailability must not both be zero.
pub(super) fn validate_rolling_update(
    max_unavailable: Option<&IntOrString>,
    max_surge: Option<&IntOrString>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    validate_percentage(max_unavailable, &format!("{path}.rollingUpdate.maxUnavailable"), errors);
    validate_percentage(max_surge, &format!("{path}.rollingUpdate.maxSurge"), errors);
    if max_unavailable == Some(&IntOrString::Int(0)) && max_surge == Some(&IntOrString::Int(0)) {
        errors.push(FieldError::invalid(
            format!("{path}.rollingUpdate"),
            "0",
            "maxUnavailable and maxSurge cannot both be 0",
        ));
    }
}

/// A naming template must produce unique and valid names.
pub(super) fn validate_naming(
    machine_naming: &MachineNamingSpec,
    owner: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let template = machine_naming.template.as_str();
    if template.is_empty() {
        return;
    }
    let path = format!("{path}.template");
    if !template.contains("{{ .random }}") {
        errors.push(FieldError::invalid(
            path.as_str(),
            template,
            "invalid template, {{ .random }} is missing",
        ));
    }
    let owner_name = owner.to_lowercase();
    let values =
        [("cluster.name", "cluster"), (&*format!("{owner}.name"), owner_name.as_str()), ("random", "abcde")];
    match naming::render(template, &values) {
        Err(problem) => {
            errors.push(FieldError::invalid(path.as_str(), template, format!("invalid template: {problem}")));
        }
        Ok(name) => {
            for problem in meta::dns1123_subdomain(&name) {
                errors.push(FieldError::invalid(
                    path.as_str(),
                    template,
                    format!(
                        "invalid template, generated names would not be valid Kubernetes object names: {problem}"
                    ),
                ));
            }
        }
    }
}

/// Only known checks can be skipped.
pub(super) fn validate_skipped_preflight_checks(
    annotations: &BTreeMap<String, String>,
    errors: &mut Vec<FieldError>,
) {
    use MachineSetPreflightCheck as Check;
    const ALL: [Check; 5] = [
        Check::All,
        Check::ControlPlaneIsStable,
        Check::ControlPlaneVersionSkew,
        Check::KubeadmVersionSkew,
        Check::KubernetesVersionSkew,
    ];
    let Some(skipped) = annotations.get(annotation::SKIP_PREFLIGHT_CHECKS).filter(|text| !text.is_empty())
    else {
        return;
    };
    let unknown: Vec<&str> = skipped
        .split(',')
        .map(str::trim)
        .filter(|word| ALL.iter().all(|check| check.as_str() != *word))
        .collect();
    if !unknown.is_empty() {
        let known = ALL.map(Check::as_str).join(" ");
        errors.push(FieldError::invalid(
            format!("metadata.annotations.{}", annotation::SKIP_PREFLIGHT_CHECKS),
            unknown,
            format!("skipped preflight check(s) must be among: [{known}]"),
        ));
    }
}

/// Default replicas: within the autoscaler's bounds, else 1.
pub(super) fn default_replicas(
    replicas: &mut Option<i32>,
    annotations: &BTreeMap<String, String>,
    old: Option<Option<i32>>,
) -> Result<(), FieldError> {
    if replicas.is_some() {
        return Ok(());
    }
    let size = |name: &str| -> Result<Option<i32>, FieldError> {
        let Some(text) = annotations.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            FieldError::invalid(
                format!("metadata.annotations.{name}"),
                text.as_str(),
                "must be a number of machines",
            )
        })
    };
    let bounds = match (
        annotations.get(annotation::AUTOSCALER_MIN_SIZE),
        annotations.get(annotation::AUTOSCALER_MAX_SIZE),
    ) {
        (Some(_), Some(_)) => {
            (size(annotation::AUTOSCALER_MIN_SIZE)?, size(annotation::AUTOSCALER_MAX_SIZE)?)
        }
        _ => (None, None),
    };
    *replicas = Some(match (bounds, old.flatten()) {
        // Bounds may contradict each other: the lower one is compared first.
        ((Some(min), Some(_)), Some(old)) if old < min => min,
        ((Some(_), Some(max)), Some(old)) => old.min(max),
        ((Some(min), Some(_)), None) => min,
        _ => 1,
    });
    Ok(())
}
