//! What cannot change, and how versions may.

use capstan_capi_types::admission::FieldError;

use super::Errors;
use crate::endpoint;
use crate::names::{annotation, is_set};
use crate::types::Cluster;
use crate::version;

const IMMUTABLE: &str = "field is immutable";

pub(super) fn validate(new: &Cluster, old: &Cluster, errors: &mut Errors) {
    let (spec, before) = (&new.spec, &old.spec);
    let host = |cluster: &Cluster| {
        let endpoint = cluster.spec.control_plane_configuration.endpoint.clone().unwrap_or_default();
        // `host` and `host:6443` are the same.
        endpoint::parse(&endpoint.host)
            .map_or((endpoint.host.clone(), 0), |(host, port)| (host.to_owned(), port))
    };
    let (network, network_before) = (&spec.cluster_network, &before.cluster_network);
    let fixed = [
        (
            new.is_self_managed() != old.is_self_managed()
                || new.spec.management_cluster != before.management_cluster,
            "spec.managementCluster.name",
        ),
        (spec.datacenter_ref != before.datacenter_ref, "spec.datacenterRef"),
        (host(new) != host(old), "spec.controlPlaneConfiguration.endpoint"),
        (network.pods != network_before.pods, "spec.clusterNetwork.pods"),
        (network.services != network_before.services, "spec.clusterNetwork.services"),
        (network.dns != network_before.dns, "spec.clusterNetwork.dns"),
        (network.nodes != network_before.nodes, "spec.clusterNetwork.nodes"),
        (spec.proxy_configuration != before.proxy_configuration, "spec.proxyConfiguration"),
    ];
    let named = |cluster: &Cluster| cluster.metadata.annotations.get(annotation::CNI).cloned();
    // Another CNI beside the one that runs would take the nodes' network down.
    if named(new).unwrap_or_else(cilium) != named(old).unwrap_or_else(cilium) {
        let path = format!("metadata.annotations[{}]", annotation::CNI);
        errors.push(FieldError::forbidden(path, "the CNI of a cluster cannot be changed"));
    }
    let was_paused = is_set(&old.metadata, annotation::PAUSED);
    // Whoever pauses a cluster repairs it by hand. A cluster that managed itself gets its manager then.
    for (_, path) in fixed.into_iter().filter(|(changed, _)| *changed && !was_paused) {
        errors.push(FieldError::forbidden(path, IMMUTABLE));
    }
    for (removed, path) in [
        (
            before.bundles_ref.is_some() && spec.bundles_ref.is_none() && spec.eksa_version.is_none(),
            "spec.bundlesRef",
        ),
        (before.eksa_version.is_some() && spec.eksa_version.is_none(), "spec.eksaVersion"),
    ] {
        if removed {
            errors.push(FieldError::forbidden(path, "field cannot be removed after setting"));
        }
    }
    if is_set(&new.metadata, annotation::PAUSED) {
        return;
    }
    if was_paused && new.is_self_managed() {
        errors.push(FieldError::forbidden(
            "spec.managementCluster.name",
            "self-managed clusters are not supported: keep the cluster paused",
        ));
    }
    versions(new, old, errors);
}

fn cilium() -> String {
    "cilium".to_owned()
}

/// Kubernetes is upgraded one minor version at a time, and never downgraded.
fn versions(new: &Cluster, old: &Cluster, errors: &mut Errors) {
    step(&old.spec.kubernetes_version, &new.spec.kubernetes_version, "spec.kubernetesVersion", errors);
    for (at, group) in new.spec.worker_node_group_configurations.iter().enumerate() {
        let mut groups = old.spec.worker_node_group_configurations.iter();
        let Some(before) = groups.find(|before| before.name == group.name) else { continue };
        let (from, to) = (old.version_of(before), new.version_of(group));
        let path = format!("spec.workerNodeGroupConfigurations[{at}].kubernetesVersion");
        // A group may catch up with the cluster in one step: kubelets are replaced, not upgraded.
        if let (Ok(from), Ok(minor)) = (version::minor(from), version::minor(to))
            && minor < from
        {
            let what = format!("a downgrade from 1.{from} to 1.{minor} is not supported");
            errors.push(FieldError::invalid(path, to, what));
        }
    }
}

fn step(from: &str, to: &str, path: &str, errors: &mut Errors) {
    let (Ok(from), Ok(minor)) = (version::minor(from), version::minor(to)) else { return };
    if minor < from {
        let what = format!("a downgrade from 1.{from} to 1.{minor} is not supported");
        errors.push(FieldError::invalid(path, to, what));
    } else if minor > from + 1 {
        let what = format!(
            "an upgrade from 1.{from} to 1.{minor} skips a minor version: upgrade to 1.{} first",
            from + 1
        );
        errors.push(FieldError::invalid(path, to, what));
    }
}
