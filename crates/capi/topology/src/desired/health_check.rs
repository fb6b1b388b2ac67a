//! MachineHealthChecks of a topology.

use std::collections::BTreeMap;

use capstan_capi_types::admission::Admission;
use capstan_capi_types::core::cluster_class::MachineDeploymentClass;
use capstan_capi_types::core::topology::{
    MachineDeploymentTopology, MachineDeploymentTopologyHealthCheckRemediation,
};
use capstan_capi_types::core::{
    MachineHealthCheck, MachineHealthCheckChecks, MachineHealthCheckRemediation, label,
};
use capstan_object::{ObjectMeta, OwnerReference};

use crate::blueprint::Blueprint;
use crate::current::Current;

/// The check of the control plane's machines, named like the control plane.
pub(super) fn of_control_plane(
    blueprint: &Blueprint,
    current: &Current,
    name: &str,
) -> Option<MachineHealthCheck> {
    blueprint.control_plane_machines.as_ref()?;
    let class = &blueprint.class.spec.control_plane.health_check;
    let topology = &blueprint.topology.control_plane.health_check;
    let own = topology.checks != MachineHealthCheckChecks::default()
        || topology.remediation != MachineHealthCheckRemediation::default();
    if !own && *class == Default::default() || topology.enabled == Some(false) {
        return None;
    }
    let (checks, remediation) = match own {
        true => (&topology.checks, &topology.remediation),
        false => (&class.checks, &class.remediation),
    };
    let selector = [(label::TOPOLOGY_OWNED, ""), (label::CONTROL_PLANE, "")];
    Some(check(current, name, &selector, checks.clone(), remediation.clone()))
}

/// The check of a group of workers, named like its MachineDeployment.
pub(super) fn of_deployment(
    current: &Current,
    class: &MachineDeploymentClass,
    topology: &MachineDeploymentTopology,
    name: &str,
) -> Option<MachineHealthCheck> {
    let own = topology.health_check.checks != MachineHealthCheckChecks::default()
        || topology.health_check.remediation != MachineDeploymentTopologyHealthCheckRemediation::default();
    if !own && class.health_check == Default::default() || topology.health_check.enabled == Some(false) {
        return None;
    }
    let (checks, remediation) = match own {
        true => (&topology.health_check.checks, &topology.health_check.remediation),
        false => (&class.health_check.checks, &class.health_check.remediation),
    };
    let remediation = MachineHealthCheckRemediation {
        trigger_if: remediation.trigger_if.clone(),
        template_ref: remediation.template_ref.clone(),
    };
    let selector = [(label::TOPOLOGY_OWNED, ""), (label::TOPOLOGY_DEPLOYMENT_NAME, &topology.name)];
    Some(check(current, name, &selector, checks.clone(), remediation))
}

fn check(
    current: &Current,
    name: &str,
    selector: &[(&str, &str)],
    checks: MachineHealthCheckChecks,
    remediation: MachineHealthCheckRemediation,
) -> MachineHealthCheck {
    let cluster = &current.cluster;
    let mut check = MachineHealthCheck {
        metadata: ObjectMeta::named(cluster.metadata.namespace.as_str(), name),
        ..Default::default()
    };
    check.metadata.labels.insert(label::TOPOLOGY_OWNED.to_owned(), String::new());
    check.metadata.owner_references.push(OwnerReference::to(cluster));
    check.spec.cluster_name.clone_from(&cluster.metadata.name);
    let labels = selector.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    check.spec.selector.match_labels = labels.collect::<BTreeMap<_, _>>();
    check.spec.checks = checks;
    check.spec.remediation = remediation;
    // What admission would add is no difference. The defaults of this kind cannot fail.
    let _ = Admission::default(&mut check, None);
    check
}
