//! Changes of a ClusterClass in the light of the clusters that use it.

use capstan_schema::golang;

use super::FieldError;
use super::cluster_of_class::scaled_by_class;
use crate::core::{Cluster, ClusterClass};

/// What clusters of the class need and a change would take away.
pub fn validate_class_in_use(
    old: &ClusterClass,
    new: &ClusterClass,
    clusters: &[Cluster],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    versions(new, clusters, &mut errors);
    removed_workers(old, new, clusters, &mut errors);
    removed_health_checks(old, new, clusters, &mut errors);
    errors.extend(clusters.iter().flat_map(|cluster| scaled_by_class(cluster, new)));
    errors
}

fn versions(new: &ClusterClass, clusters: &[Cluster], errors: &mut Vec<FieldError>) {
    let versions = &new.spec.kubernetes_versions;
    if versions.is_empty() {
        return;
    }
    for cluster in clusters.iter().filter(|cluster| !versions.contains(&cluster.spec.topology.version)) {
        let message = format!(
            "Kubernetes Version {} is used by Cluster {} but not set in ClusterClass",
            cluster.spec.topology.version,
            golang::quote(&cluster.metadata.name)
        );
        errors.push(FieldError::forbidden("spec.kubernetesVersions", message));
    }
}

fn removed_workers(
    old: &ClusterClass,
    new: &ClusterClass,
    clusters: &[Cluster],
    errors: &mut Vec<FieldError>,
) {
    let (before, after) = (&old.spec.workers, &new.spec.workers);
    let used = |kind: &str, class: &str, cluster: &Cluster| {
        format!(
            "{kind}Class {} cannot be deleted because it is used by Cluster {}",
            golang::quote(class),
            golang::quote(&cluster.metadata.name)
        )
    };
    for cluster in clusters {
        for of in &cluster.spec.topology.workers.machine_deployments {
            let had = before.machine_deployments.iter().any(|class| class.class == of.class);
            if had && !after.machine_deployments.iter().any(|class| class.class == of.class) {
                let message = used("MachineDeployment", &of.class, cluster);
                errors.push(FieldError::forbidden("spec.workers.machineDeployments", message));
            }
        }
    }
    for cluster in clusters {
        for of in &cluster.spec.topology.workers.machine_pools {
            let had = before.machine_pools.iter().any(|class| class.class == of.class);
            if had && !after.machine_pools.iter().any(|class| class.class == of.class) {
                let message = used("MachinePool", &of.class, cluster);
                errors.push(FieldError::forbidden("spec.workers.machinePools", message));
            }
        }
    }
}

/// A cluster that enables a health check without one of its own uses the one of the class.
fn removed_health_checks(
    old: &ClusterClass,
    new: &ClusterClass,
    clusters: &[Cluster],
    errors: &mut Vec<FieldError>,
) {
    let mut forbid = |path: String, users: Vec<&str>| {
        if !users.is_empty() {
            let message = format!(
                "healthCheck cannot be deleted because it is used by Cluster(s) {}",
                golang::quote(&users.join(","))
            );
            errors.push(FieldError::forbidden(path, message));
        }
    };
    let (before, after) = (&old.spec.control_plane.health_check, &new.spec.control_plane.health_check);
    if *before != Default::default() && *after == Default::default() {
        let uses = |cluster: &&Cluster| {
            let own = &cluster.spec.topology.control_plane.health_check;
            own.enabled == Some(true) && !own.is_defined()
        };
        let users = clusters.iter().filter(uses).map(|cluster| &*cluster.metadata.name);
        forbid("spec.controlPlane.healthCheck".to_owned(), users.collect());
    }
    for class in &new.spec.workers.machine_deployments {
        let before = old.spec.workers.machine_deployments.iter().find(|old| old.class == class.class);
        let had = before.is_some_and(|before| before.health_check != Default::default());
        if !had || class.health_check != Default::default() {
            continue;
        }
        let uses = |cluster: &&Cluster| {
            cluster.spec.topology.workers.machine_deployments.iter().any(|of| {
                let own = &of.health_check;
                of.class == class.class && own.enabled == Some(true) && !own.is_defined()
            })
        };
        let users = clusters.iter().filter(uses).map(|cluster| &*cluster.metadata.name);
        forbid(format!("spec.workers.machineDeployments[{}].healthCheck", class.class), users.collect());
    }
}
