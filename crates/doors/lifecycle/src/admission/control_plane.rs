//! Rules of the control plane.

use capstan_capi_types::admission::FieldError;
use capstan_capi_types::kubernetes::Taint;
use serde_json::Value;

use super::Errors;
use super::cluster::{health_check, machine_group};
use crate::endpoint;
use crate::types::{Cluster, UpgradeRolloutStrategy};

const PATH: &str = "spec.controlPlaneConfiguration";

pub(super) fn validate(cluster: &Cluster, errors: &mut Errors) {
    let control_plane = &cluster.spec.control_plane_configuration;
    if control_plane.count <= 0 {
        let what = "control plane node count must be positive";
        errors.push(FieldError::invalid(format!("{PATH}.count"), control_plane.count, what));
    } else if control_plane.count % 2 == 0 {
        let what = "control plane node count cannot be an even number when using stacked etcd topology";
        errors.push(FieldError::invalid(format!("{PATH}.count"), control_plane.count, what));
    }
    let host = control_plane.endpoint.as_ref().map_or("", |endpoint| endpoint.host.as_str());
    if host.is_empty() {
        let what = "cluster controlPlaneConfiguration.Endpoint.Host is not set or is empty";
        errors.push(FieldError::required(format!("{PATH}.endpoint.host"), what));
    } else if let Err(why) = endpoint::parse(host) {
        errors.push(FieldError::invalid(format!("{PATH}.endpoint.host"), host, why));
    }
    machine_group(control_plane.machine_group_ref.as_ref(), &format!("{PATH}.machineGroupRef"), errors);
    taints(&control_plane.taints, &format!("{PATH}.taints"), errors);
    labels(&control_plane.labels, &format!("{PATH}.labels"), errors);
    for (at, name) in control_plane.cert_sans.iter().enumerate() {
        let wildcard = name.strip_prefix("*.").unwrap_or(name);
        if !endpoint::is_address(name) && !endpoint::is_name(wildcard) {
            let what = "must be an IP or domain name";
            errors.push(FieldError::invalid(format!("{PATH}.certSans[{at}]"), name.as_str(), what));
        }
    }
    for name in control_plane.api_server_extra_args.keys() {
        if RESERVED_ARGS.contains(&name.as_str()) {
            let what = "the flag is set by the controller: remove it";
            errors.push(FieldError::forbidden(format!("{PATH}.apiServerExtraArgs[{name}]"), what));
        }
    }
    kubelet(control_plane.kubelet_configuration.as_ref(), PATH, errors);
    let policy = &control_plane.audit_policy_content;
    if !policy.is_empty() {
        let read: Result<Value, _> = serde_saphyr::from_str(policy);
        if !read.is_ok_and(|policy| policy["kind"] == "Policy" && policy["rules"].is_array()) {
            let what = "use a Policy of audit.k8s.io/v1 with rules, as YAML";
            errors.push(FieldError::forbidden(format!("{PATH}.auditPolicyContent"), what));
        }
    }
    if let Some(check) = &control_plane.machine_health_check {
        health_check(check, &format!("{PATH}.machineHealthCheck"), errors);
    }
    if let Some(strategy) = &control_plane.upgrade_rollout_strategy {
        let path = format!("{PATH}.upgradeRolloutStrategy");
        rolling(strategy, &path, errors);
        let surge = strategy.rolling_update.as_ref().map_or(1, |update| update.max_surge);
        if !(0..=1).contains(&surge) {
            let what = "maxSurge for control plane must be 0 or 1";
            errors.push(FieldError::invalid(format!("{path}.rollingUpdate.maxSurge"), surge, what));
        }
        if surge == 0 && control_plane.count < 3 {
            let what = "maxSurge 0 needs at least three control plane machines";
            errors.push(FieldError::invalid(format!("{path}.rollingUpdate.maxSurge"), surge, what));
        }
    }
}

/// Flags of the API server that generation sets.
const RESERVED_ARGS: [&str; 9] = [
    "audit-policy-file",
    "audit-log-path",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "cloud-provider",
    "profiling",
    "tls-cipher-suites",
    "encryption-provider-config",
];

/// Only rolling updates are possible on CloudStack.
pub(super) fn rolling(strategy: &UpgradeRolloutStrategy, path: &str, errors: &mut Errors) {
    if !matches!(strategy.kind.as_str(), "" | "RollingUpdate") {
        let path = format!("{path}.type");
        errors.push(FieldError::not_supported(path, strategy.kind.as_str(), &["RollingUpdate"]));
    }
}

pub(super) fn taints(taints: &[Taint], path: &str, errors: &mut Errors) {
    for (at, taint) in taints.iter().enumerate() {
        if taint.key.is_empty() {
            errors.push(FieldError::required(format!("{path}[{at}].key"), "a taint has a key"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effects.contains(&taint.effect.as_str()) {
            let path = format!("{path}[{at}].effect");
            errors.push(FieldError::not_supported(path, taint.effect.as_str(), &effects));
        }
    }
}

pub(super) fn labels(labels: &std::collections::BTreeMap<String, String>, path: &str, errors: &mut Errors) {
    for (key, value) in labels {
        // The provider puts the name of the availability zone there.
        let value = value.replace("ds.meta_data.failuredomain", "zone");
        for why in capstan_schema::meta::qualified_name(key) {
            errors.push(FieldError::invalid(path, key.as_str(), why));
        }
        for why in capstan_schema::meta::label_value(&value) {
            errors.push(FieldError::invalid(format!("{path}[{key}]"), value.as_str(), why));
        }
    }
}

/// What machines need to become nodes is not the user's.
pub(super) fn kubelet(configuration: Option<&Value>, path: &str, errors: &mut Errors) {
    let Some(configuration) = configuration else { return };
    for field in ["providerID", "cloudProvider"] {
        if configuration.get(field).is_some() {
            let what = "the field is set by the controller: remove it";
            errors.push(FieldError::forbidden(format!("{path}.kubeletConfiguration.{field}"), what));
        }
    }
    if configuration.get("kind").is_some_and(|kind| kind != "KubeletConfiguration") {
        let path = format!("{path}.kubeletConfiguration.kind");
        errors.push(FieldError::not_supported(
            path,
            configuration["kind"].clone(),
            &["KubeletConfiguration"],
        ));
    }
}
