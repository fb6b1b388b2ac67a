//! Reads what a decision about a topology depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::admission;
use capstan_capi_types::core::{Cluster, ClusterClass, MachineDeployment, MachinePool};
use capstan_controller::{ObjectRef, ObserveError, View};
use capstan_object::Object;

use super::current::{blueprint, created, current};
use super::observed::{Difference, Observed, Topology};
use super::orphans::orphans;
use super::{ClusterTopologies, class_of};
use super::{asking, class_changes};
use crate::current::Current;
use crate::desired::{Desired, rotation};

pub(super) async fn observe(
    controller: &ClusterTopologies,
    cluster: &Arc<Cluster>,
    view: &View,
) -> Result<Observed, ObserveError> {
    if paused::why(Some(cluster), &cluster.metadata, Cluster::KIND.kind).is_some() {
        // Nothing is asked of extensions meanwhile.
        return Ok(Observed::NotManaged);
    }
    if cluster.metadata.is_deleting() && cluster.has_topology() {
        return asking::deletion(controller, view, cluster).await;
    }
    let Some(class) = class_of(cluster).filter(|_| !cluster.metadata.is_deleting()) else {
        return Ok(Observed::NotManaged);
    };
    let Some(class) = view.get::<ClusterClass>(&class)? else {
        return Ok(Observed::NoClass(format!("ClusterClass {class} does not exist")));
    };
    if class_changes::discovery_failed(&class) {
        return Ok(Observed::Failed(format!(
            "ClusterClass {} is not successfully reconciled: status of its VariablesReady condition must be True",
            class.metadata.key()
        )));
    }
    if class.metadata.generation != class.status.observed_generation {
        return Ok(Observed::ClassNotReconciled {
            patience: controller.patience(&cluster.key(), &class, view.now()),
        });
    }
    controller.class_is_ready(&cluster.key());
    let mut topology = cluster.spec.topology.clone();
    if let Err(errors) = admission::default_variables(&mut topology, &class) {
        return Ok(Observed::Failed(joined(&errors)));
    }
    let mut defaulted = Cluster::clone(cluster);
    defaulted.spec.topology = topology.clone();
    let mut errors = admission::validate_with_class(&defaulted, None, &class);
    errors.extend(admission::validate_variables(&topology, None, &class));
    if !errors.is_empty() {
        return Ok(Observed::Failed(joined(&errors)));
    }
    let blueprint = match blueprint(view, &class, topology).await? {
        Ok(blueprint) => blueprint,
        Err(why) => return Ok(Observed::Failed(why)),
    };
    let mut current = match current(view, cluster, &blueprint).await? {
        Ok(current) => current,
        Err(why) => return Ok(Observed::Failed(why)),
    };
    let mut desired = match asking::desired(controller, view, &blueprint, &current).await? {
        Ok(desired) => desired,
        Err(stopped) => return Ok(stopped),
    };
    let mut differences = BTreeMap::new();
    if current.referenced {
        differences = compare(controller, view, &current, &mut desired).await?;
    } else {
        created(view, &mut current, &desired).await?;
    }
    let (orphans, former_kinds) = orphans(view, &class, &current, &desired).await?;
    let taken = taken(view, &current, &desired)?;
    let extended = class.spec.patches.iter().any(|patch| patch.external.is_some());
    Ok(Observed::Topology(Box::new(Topology {
        current,
        desired,
        differences,
        orphans,
        taken,
        extended,
        former_kinds,
    })))
}

/// Objects that have the names of workers to be created. Applying would take them over, whoever made them.
fn taken(view: &View, current: &Current, desired: &Desired) -> Result<BTreeSet<ObjectRef>, ObserveError> {
    let mut taken = BTreeSet::new();
    let upgrade = &desired.upgrade;
    for (name, wanted) in &desired.deployments {
        let created =
            !current.deployments.contains_key(name) && !upgrade.deployments.pending_create.contains(name);
        if created && view.get::<MachineDeployment>(&wanted.object.key())?.is_some() {
            taken.insert(ObjectRef::to(&wanted.object));
        }
    }
    for (name, wanted) in &desired.pools {
        let created = !current.pools.contains_key(name) && !upgrade.pools.pending_create.contains(name);
        if created && view.get::<MachinePool>(&wanted.object.key())?.is_some() {
            taken.insert(ObjectRef::to(&wanted.object));
        }
    }
    Ok(taken)
}

fn joined(errors: &[admission::FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Where things differ from what is desired. Templates that differ are replaced.
async fn compare(
    controller: &ClusterTopologies,
    view: &View,
    current: &Current,
    desired: &mut Desired,
) -> Result<BTreeMap<ObjectRef, Difference>, ObserveError> {
    let cluster = current.cluster.key();
    let mut found = BTreeMap::new();
    let mut note = |target: ObjectRef, difference: Option<Difference>| {
        found.extend(difference.map(|difference| (target, difference)));
    };
    if let Some(running) = &current.infrastructure {
        let difference = controller.difference(view, &cluster, &desired.infrastructure, running).await?;
        note(desired.infrastructure.reference(), difference);
    }
    if let Some(check) = &desired.control_plane_health_check
        && let Some(running) = current.health_checks.get(&check.metadata.name)
    {
        note(ObjectRef::to(check), controller.difference_of(view, &cluster, check, running).await?);
    }
    if !desired.upgrade.control_plane_pending {
        if let (Some(machines), Some(running)) =
            (&desired.control_plane_machines, &current.control_plane_machines)
        {
            let difference = controller.difference(view, &cluster, machines, running).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_control_plane_machines(desired, &current.cluster);
            } else {
                note(machines.reference(), difference);
            }
        }
        if let Some(running) = &current.control_plane {
            let difference = controller.difference(view, &cluster, &desired.control_plane, running).await?;
            note(desired.control_plane.reference(), difference);
        }
    }
    for (name, deployment) in &mut desired.deployments {
        let Some(running) = current.deployments.get(name) else { continue };
        if let Some(check) = &deployment.health_check
            && let Some(running) = current.health_checks.get(&check.metadata.name)
        {
            note(ObjectRef::to(check), controller.difference_of(view, &cluster, check, running).await?);
        }
        let held = desired.upgrade.deployments.pending.contains(&running.object.metadata.name);
        if held || running.object.metadata.is_deleting() {
            continue;
        }
        if let Some(template) = &running.infrastructure {
            let difference =
                controller.difference(view, &cluster, &deployment.infrastructure, template).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_infrastructure(deployment, &current.cluster, name);
            } else {
                note(deployment.infrastructure.reference(), difference);
            }
        }
        if let Some(template) = &running.bootstrap {
            let difference = controller.difference(view, &cluster, &deployment.bootstrap, template).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_bootstrap(deployment, &current.cluster, name);
            } else {
                note(deployment.bootstrap.reference(), difference);
            }
        }
        let difference =
            controller.difference_of(view, &cluster, &deployment.object, &running.object).await?;
        note(ObjectRef::to(&deployment.object), difference);
    }
    for (name, pool) in &desired.pools {
        let Some(running) = current.pools.get(name) else { continue };
        let held = desired.upgrade.pools.pending.contains(&running.object.metadata.name);
        if held || running.object.metadata.is_deleting() {
            continue;
        }
        for (intent, found) in
            [(&pool.infrastructure, &running.infrastructure), (&pool.bootstrap, &running.bootstrap)]
        {
            if let Some(found) = found {
                note(intent.reference(), controller.difference(view, &cluster, intent, found).await?);
            }
        }
        let difference = controller.difference_of(view, &cluster, &pool.object, &running.object).await?;
        note(ObjectRef::to(&pool.object), difference);
    }
    Ok(found)
}
