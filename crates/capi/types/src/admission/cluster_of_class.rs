//! Clusters in the light of their class.

use capstan_schema::golang;

use super::FieldError;
use super::common::{validate_node_startup_timeout, validate_percentage};
use crate::core::cluster_class::ClusterClassSpec;
use crate::core::topology::{ClusterVariable, MachineDeploymentTopology, Topology};
use crate::core::{Cluster, ClusterClass, annotation};
use crate::{variables, version};

const VERSION: &str = "spec.topology.version";

/// Adds defaults of the class's variables to a cluster, except where there are errors.
pub fn default_variables(topology: &mut Topology, class: &ClusterClass) -> Result<(), Vec<FieldError>> {
    let definitions = &class.status.variables;
    let mut errors = Vec::new();
    match variables::with_defaults(&topology.variables, definitions, true, "spec.topology.variables") {
        Ok(defaulted) => topology.variables = defaulted,
        Err(found) => errors.extend(found),
    }
    let of_control_plane = (OVERRIDES_OF_CONTROL_PLANE.to_owned(), &mut topology.control_plane.variables);
    let workers = &mut topology.workers;
    let of_deployments = workers.machine_deployments.iter_mut();
    let of_deployments =
        of_deployments.map(|of| (overrides_path("machineDeployments", &of.name), &mut of.variables));
    let of_pools = workers.machine_pools.iter_mut();
    let of_pools = of_pools.map(|of| (overrides_path("machinePools", &of.name), &mut of.variables));
    for (path, part) in std::iter::once(of_control_plane).chain(of_deployments).chain(of_pools) {
        // Definitions that contradict each other are reported once.
        if part.overrides.is_empty() {
            continue;
        }
        match variables::with_defaults(&part.overrides, definitions, false, &path) {
            Ok(defaulted) => part.overrides = defaulted,
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

const OVERRIDES_OF_CONTROL_PLANE: &str = "spec.topology.controlPlane.variables.overrides";

fn overrides_path(workers: &str, name: &str) -> String {
    format!("spec.topology.workers.{workers}[{name}].variables.overrides")
}

/// Validates the values of variables, or the change from the values of `old`.
pub fn validate_variables(
    topology: &Topology,
    old: Option<&Topology>,
    class: &ClusterClass,
) -> Vec<FieldError> {
    let definitions = &class.status.variables;
    let old = old.cloned().unwrap_or_default();
    let validate = variables::validate_values;
    let mut errors =
        validate(&topology.variables, &old.variables, definitions, true, "spec.topology.variables");
    let mut of_part = |new: &[ClusterVariable], old: &[ClusterVariable], path: &str| {
        if !new.is_empty() {
            errors.extend(validate(new, old, definitions, false, path));
        }
    };
    of_part(
        &topology.control_plane.variables.overrides,
        &old.control_plane.variables.overrides,
        OVERRIDES_OF_CONTROL_PLANE,
    );
    for deployment in &topology.workers.machine_deployments {
        let before = old.workers.machine_deployments.iter().find(|old| old.name == deployment.name);
        of_part(
            &deployment.variables.overrides,
            before.map_or(&[], |before| &before.variables.overrides),
            &overrides_path("machineDeployments", &deployment.name),
        );
    }
    for pool in &topology.workers.machine_pools {
        let before = old.workers.machine_pools.iter().find(|old| old.name == pool.name);
        of_part(
            &pool.variables.overrides,
            before.map_or(&[], |before| &before.variables.overrides),
            &overrides_path("machinePools", &pool.name),
        );
    }
    errors
}

/// What a class says about a cluster of it, or about a change of the cluster; variables aside, whose definitions are
/// known only once the class is reconciled.
pub fn validate_with_class(
    cluster: &Cluster,
    old: Option<&Cluster>,
    class: &ClusterClass,
) -> Vec<FieldError> {
    let topology = &cluster.spec.topology;
    let mut errors = Vec::new();
    validate_version_of_class(cluster, old, class, &mut errors);
    let workers = &topology.workers;
    let spec = &class.spec.workers;
    let deployments: Vec<(&str, &str)> =
        workers.machine_deployments.iter().map(|it| (&*it.name, &*it.class)).collect();
    let pools: Vec<(&str, &str)> = workers.machine_pools.iter().map(|it| (&*it.name, &*it.class)).collect();
    let deployment_classes: Vec<&str> = spec.machine_deployments.iter().map(|it| &*it.class).collect();
    let pool_classes: Vec<&str> = spec.machine_pools.iter().map(|it| &*it.class).collect();
    for (kind, field, topologies, classes) in [
        ("MachineDeployment", "machineDeployments", deployments, deployment_classes),
        ("MachinePool", "machinePools", pools, pool_classes),
    ] {
        for (at, (name, of)) in topologies.iter().enumerate() {
            let path = format!("spec.topology.workers.{field}[{at}]");
            if !classes.contains(of) {
                let message = format!(
                    "{kind}Class with name {} does not exist in ClusterClass {}",
                    golang::quote(of),
                    golang::quote(&class.metadata.name)
                );
                errors.push(FieldError::invalid(format!("{path}.class"), *of, message));
            }
            if topologies[..at].iter().any(|(known, _)| known == name) {
                let message = format!(
                    "name must be unique. {kind} with name {} is defined more than once",
                    golang::quote(name)
                );
                errors.push(FieldError::invalid(format!("{path}.name"), *name, message));
            }
        }
    }
    validate_health_checks(topology, &class.spec, &mut errors);
    if topology.control_plane.replicas == Some(0) {
        let message = "cannot be 0: a cluster needs a control plane";
        errors.push(FieldError::invalid("spec.topology.controlPlane.replicas", 0, message));
    }
    if let Some(old) = old {
        errors.extend(skipped_minor(cluster, old, class));
    }
    errors
}

/// Replicas of MachineDeployments that an autoscaler sets, as their class says.
pub fn scaled_by_class(cluster: &Cluster, class: &ClusterClass) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for deployment in &cluster.spec.topology.workers.machine_deployments {
        let of = class.spec.workers.machine_deployments.iter().find(|of| of.class == deployment.class);
        let annotations = of.map(|of| &of.metadata.annotations);
        let scaled = [annotation::AUTOSCALER_MIN_SIZE, annotation::AUTOSCALER_MAX_SIZE]
            .iter()
            .any(|name| annotations.is_some_and(|annotations| annotations.contains_key(*name)));
        if let (Some(replicas), true) = (deployment.replicas, scaled) {
            let message = format!(
                "cannot be set for cluster {} in namespace {} if the source class {} of this MachineDeploymentTopology has autoscaler annotations",
                golang::quote(&cluster.metadata.name),
                golang::quote(&cluster.metadata.namespace),
                golang::quote(&deployment.class)
            );
            let path = format!("spec.topology.workers.machineDeployments[{}].replicas", deployment.name);
            errors.push(FieldError::invalid(path, replicas, message));
        }
    }
    errors
}

fn validate_health_checks(topology: &Topology, class: &ClusterClassSpec, errors: &mut Vec<FieldError>) {
    const NOWHERE: &str = "cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass";
    let path = "spec.topology.controlPlane.healthCheck";
    let check = &topology.control_plane.health_check;
    if check.is_defined() {
        if !class.control_plane.machine_infrastructure.template_ref.is_defined() {
            let message = "can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass";
            errors.push(FieldError::forbidden(path, message));
        }
        validate_node_startup_timeout(&check.checks, path, errors);
        let most = check.remediation.trigger_if.unhealthy_less_than_or_equal_to.as_ref();
        let path = format!("{path}.remediation.triggerIf.unhealthyLessThanOrEqualTo");
        validate_percentage(most, &path, errors);
    } else if check.enabled == Some(true) && class.control_plane.health_check == Default::default() {
        errors.push(FieldError::forbidden(format!("{path}.enable"), NOWHERE));
    }
    for deployment in &topology.workers.machine_deployments {
        let path = format!("spec.topology.workers.machineDeployments[{}].healthCheck", deployment.name);
        let check = &deployment.health_check;
        let of = class.workers.machine_deployments.iter().find(|of| of.class == deployment.class);
        if check.is_defined() {
            validate_health_check(deployment, &path, errors);
        } else if check.enabled == Some(true) && of.is_some_and(|of| of.health_check == Default::default()) {
            errors.push(FieldError::forbidden(format!("{path}.enable"), NOWHERE));
        }
    }
}

fn validate_health_check(deployment: &MachineDeploymentTopology, path: &str, errors: &mut Vec<FieldError>) {
    let check = &deployment.health_check;
    validate_node_startup_timeout(&check.checks, path, errors);
    let path = format!("{path}.remediation");
    let most = check.remediation.trigger_if.unhealthy_less_than_or_equal_to.as_ref();
    validate_percentage(most, &format!("{path}.triggerIf.unhealthyLessThanOrEqualTo"), errors);
    validate_percentage(check.remediation.max_in_flight.as_ref(), &format!("{path}.maxInFlight"), errors);
}

/// A class may list the versions that clusters have.
fn validate_version_of_class(
    cluster: &Cluster,
    old: Option<&Cluster>,
    class: &ClusterClass,
    errors: &mut Vec<FieldError>,
) {
    let text = cluster.spec.topology.version.as_str();
    let versions = &class.spec.kubernetes_versions;
    let unchanged = old.is_some_and(|old| old.spec.topology.version == text);
    if !versions.is_empty() && !unchanged && !versions.iter().any(|known| known == text) {
        let message = "version must match one of the versions defined in the ClusterClass";
        errors.push(FieldError::invalid(VERSION, text, message));
    }
}

fn skipped_minor(cluster: &Cluster, old: &Cluster, class: &ClusterClass) -> Option<FieldError> {
    let text = cluster.spec.topology.version.as_str();
    let (new, old) = (version::tolerant(text)?, version::tolerant(&old.spec.topology.version)?);
    if is_unsafe(cluster) || !skips_a_minor(class, &old, &new) {
        return None;
    }
    let message = format!("version cannot be increased from \"{old}\" to \"{new}\"");
    Some(FieldError::invalid(VERSION, text, message))
}

/// The user takes responsibility for the change of the version.
fn is_unsafe(cluster: &Cluster) -> bool {
    cluster.metadata.annotations.contains_key(annotation::TOPOLOGY_UNSAFE_UPDATE_VERSION)
}

/// A class with a list of versions, or an extension that makes plans, may pass several minors.
fn skips_a_minor(class: &ClusterClass, old: &semver::Version, new: &semver::Version) -> bool {
    let planned = !class.spec.kubernetes_versions.is_empty()
        || !class.spec.upgrade.external.generate_upgrade_plan_extension.is_empty();
    !planned && version::skips_a_minor(old, new)
}

/// The version that the whole cluster must have before it may get another: the one before, in a change that nothing else
/// speaks against. As upstream writes it: without `v`.
pub fn version_to_arrive(cluster: &Cluster, old: &Cluster, class: &ClusterClass) -> Option<String> {
    if is_unsafe(cluster) || !old.has_topology() {
        return None;
    }
    let before = version::tolerant(&old.spec.topology.version)?;
    if let Some(new) = version::tolerant(&cluster.spec.topology.version)
        && (new == before
            || version::plain(&new) < version::plain(&before)
            || skips_a_minor(class, &before, &new))
    {
        return None;
    }
    Some(before.to_string())
}
