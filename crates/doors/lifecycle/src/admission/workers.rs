//! Rules of worker groups.

use std::collections::BTreeSet;

use capstan_capi_types::admission::FieldError;

use super::Errors;
use super::cluster::{health_check, machine_group};
use super::control_plane::{kubelet, labels, rolling, taints};
use crate::types::{Cluster, WorkerNodeGroupConfiguration};
use crate::version::{self, MOST_SKEW};

pub(super) fn validate(cluster: &Cluster, errors: &mut Errors) {
    let groups = &cluster.spec.worker_node_group_configurations;
    let path = "spec.workerNodeGroupConfigurations";
    if groups.is_empty() && !cluster.spec.control_plane_configuration.taints.is_empty() {
        errors.push(FieldError::forbidden(
            "spec.controlPlaneConfiguration.taints",
            "cannot taint control plane when there is no worker node",
        ));
    }
    let mut names = BTreeSet::new();
    for (at, group) in groups.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if !names.insert(group.name.as_str()) {
            let what = "worker node group names must be unique";
            errors.push(FieldError::invalid(format!("{path}.name"), group.name.as_str(), what));
        }
        self::group(cluster, group, &path, errors);
    }
}

fn group(cluster: &Cluster, group: &WorkerNodeGroupConfiguration, path: &str, errors: &mut Errors) {
    if group.name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), "must specify name for worker nodes"));
    }
    for why in capstan_schema::meta::dns1123_subdomain(&group.name) {
        if !group.name.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.name"), group.name.as_str(), why));
        }
    }
    machine_group(group.machine_group_ref.as_ref(), &format!("{path}.machineGroupRef"), errors);
    let count = group.count.unwrap_or(1);
    if count < 0 {
        let what = "worker node count must be zero or greater";
        errors.push(FieldError::invalid(format!("{path}.count"), count, what));
    }
    if let Some(bounds) = &group.autoscaling_configuration {
        let path = format!("{path}.autoscalingConfiguration");
        for (wrong, field, value, what) in [
            (bounds.min_count < 0, "minCount", bounds.min_count, "min count must be non negative"),
            (
                bounds.min_count > bounds.max_count,
                "minCount",
                bounds.min_count,
                "min count must be no greater than max count",
            ),
            (
                bounds.min_count > count,
                "minCount",
                bounds.min_count,
                "min count must be less than or equal to count",
            ),
            (
                bounds.max_count < count,
                "maxCount",
                bounds.max_count,
                "max count must be greater than or equal to count",
            ),
        ] {
            if wrong {
                errors.push(FieldError::invalid(format!("{path}.{field}"), value, what));
            }
        }
    }
    taints(&group.taints, &format!("{path}.taints"), errors);
    labels(&group.labels, &format!("{path}.labels"), errors);
    kubelet(group.kubelet_configuration.as_ref(), path, errors);
    if let Some(check) = &group.machine_health_check {
        health_check(check, &format!("{path}.machineHealthCheck"), errors);
    }
    if let Some(strategy) = &group.upgrade_rollout_strategy {
        let path = format!("{path}.upgradeRolloutStrategy");
        rolling(strategy, &path, errors);
        match &strategy.rolling_update {
            None => errors.push(FieldError::required(
                format!("{path}.rollingUpdate"),
                "set maxSurge and maxUnavailable",
            )),
            Some(update) if update.max_surge < 0 || update.max_unavailable < 0 => {
                let what = "maxSurge and maxUnavailable values cannot be negative";
                errors.push(FieldError::forbidden(format!("{path}.rollingUpdate"), what));
            }
            Some(update) if update.max_surge == 0 && update.max_unavailable == 0 => {
                let what = "maxSurge and maxUnavailable cannot both be 0";
                errors.push(FieldError::forbidden(format!("{path}.rollingUpdate"), what));
            }
            Some(_) => {}
        }
    }
    let Some(own) = group.kubernetes_version.as_deref().filter(|own| !own.is_empty()) else { return };
    let path = format!("{path}.kubernetesVersion");
    match (version::minor(own), version::minor(&cluster.spec.kubernetes_version)) {
        (Err(why), _) => errors.push(FieldError::invalid(path, own, why)),
        (Ok(own_minor), Ok(of_cluster)) if own_minor > of_cluster => {
            let what = "worker nodes cannot be newer than the control plane: upgrade the cluster first";
            errors.push(FieldError::invalid(path, own, what));
        }
        // The server may allow less, which is compared when objects are generated.
        (Ok(own_minor), Ok(of_cluster)) if of_cluster - own_minor > MOST_SKEW => {
            let what = format!(
                "worker nodes can be at most {MOST_SKEW} minor versions behind the control plane: upgrade the group first"
            );
            errors.push(FieldError::invalid(path, own, what));
        }
        _ => {}
    }
}
