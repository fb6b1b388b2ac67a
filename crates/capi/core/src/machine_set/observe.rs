//! Reads what a decision about a MachineSet depends on, and names what triggers one.

use std::sync::Arc;

use capstan_capi_types::core::{
    Cluster, ContractVersionedObjectReference, Machine, MachineDeployment, MachineSet, annotation, label,
};
use capstan_controller::{Caches, Change, GATHER, ObjectRef, ObserveError, View, Watches};
use capstan_object::Key;

use super::observed::{Arrival, Observed, Part, Templated};
use crate::clone;
use crate::contract::{Definition, Lookup, contract_version, look_up};
use crate::in_place::begins;
use crate::members::{CLUSTER, of_cluster};
use crate::paused::concerns_members;
use crate::selector::selects;

pub async fn observe(set: &MachineSet, view: &View) -> Result<Observed, ObserveError> {
    let namespace = set.metadata.namespace.as_str();
    let cluster = view.get::<Cluster>(&Key::new(namespace, set.spec.cluster_name.as_str()))?;
    let deployment = match set.metadata.labels.get(label::DEPLOYMENT_NAME) {
        Some(name) => view.get::<MachineDeployment>(&Key::new(namespace, name.as_str()))?,
        None => None,
    };
    let control_plane = match &cluster {
        Some(cluster) => look_up(view, &cluster.spec.control_plane_ref, namespace).await?,
        None => Lookup::NotReferenced,
    };
    let template = &set.spec.template.spec;
    let infrastructure_template = look_up(view, &template.infrastructure_ref, namespace).await?;
    let bootstrap_template = look_up(view, &template.bootstrap.config_ref, namespace).await?;
    let machines = machines(set, view)?;
    let mut parts = Vec::new();
    for machine in machines.iter().filter(|machine| !machine.metadata.is_deleting()) {
        for reference in [&machine.spec.infrastructure_ref, &machine.spec.bootstrap.config_ref] {
            parts.extend(look_up(view, reference, namespace).await?.object().map(Part::of));
        }
    }
    let mut made = Vec::new();
    for template in [&infrastructure_template, &bootstrap_template] {
        let Some(template) = template.object() else { continue };
        let Some(kind) = contract_version(view, clone::kind_of(template))? else { continue };
        let value = label::value(&set.metadata.name);
        for object in view.external_labelled(&kind, namespace, label::SET_NAME, &value).await? {
            let metadata = object.metadata().clone();
            made.push(Part { reference: ObjectRef::new(kind.clone(), metadata.key()), metadata });
        }
    }
    let move_target = match set.metadata.annotations.get(annotation::MOVE_MACHINES_TO) {
        Some(name) if !name.is_empty() => view.get::<MachineSet>(&Key::new(namespace, name.as_str()))?,
        _ => None,
    };
    let arrivals = arrivals(&machines, view).await?;
    Ok(Observed {
        cluster,
        deployment,
        move_target,
        arrivals,
        machines,
        control_plane,
        infrastructure_template,
        bootstrap_template,
        parts,
        made,
    })
}

/// Machines whose update in place has to begin, with everything that needs.
async fn arrivals(machines: &[Arc<Machine>], view: &View) -> Result<Vec<Arrival>, ObserveError> {
    let mut arrivals = Vec::new();
    for machine in machines.iter().filter(|machine| begins(machine)) {
        arrivals.push(Arrival {
            machine: machine.clone(),
            infrastructure: with_template(&machine.spec.infrastructure_ref, machine, view).await?,
            bootstrap: with_template(&machine.spec.bootstrap.config_ref, machine, view).await?,
        });
    }
    Ok(arrivals)
}

/// An object of a machine, and the template that its annotations name.
async fn with_template(
    reference: &ContractVersionedObjectReference,
    machine: &Machine,
    view: &View,
) -> Result<Templated, ObserveError> {
    let namespace = machine.metadata.namespace.as_str();
    let object = look_up(view, reference, namespace).await?;
    let origin = object.object().and_then(|object| clone::origin(&object.metadata));
    let template = match origin {
        Some(origin) => look_up(view, &origin, namespace).await?,
        None => Lookup::NotReferenced,
    };
    Ok(Templated { object, template })
}

fn machines(set: &MachineSet, view: &View) -> Result<Vec<Arc<Machine>>, ObserveError> {
    let mut machines =
        view.labelled::<Machine>(&set.metadata.namespace, label::CLUSTER_NAME, &set.spec.cluster_name)?;
    machines.retain(|machine| {
        selects(&set.spec.selector, &machine.metadata.labels)
            && machine.metadata.controller().is_none_or(|owner| owner.uid == set.metadata.uid)
    });
    Ok(machines)
}

/// Watches its machines, machines it may adopt, its deployment and its cluster.
pub fn watches(watches: &mut Watches<MachineSet>) {
    watches
        .owned_within::<Machine>(GATHER)
        .related::<Machine>(adopters)
        .related::<MachineDeployment>(|change, caches| {
            let parts = caches.of::<MachineSet>().and_then(|sets| {
                sets.labelled(&change.key.namespace, label::DEPLOYMENT_NAME, &change.key.name)
            });
            parts.unwrap_or_default().iter().map(|set| set.metadata.key()).collect()
        })
        .related::<Cluster>(|change, caches| {
            if !concerns_members(change) {
                return Vec::new();
            }
            of_cluster::<MachineSet>(caches, &change.key)
        })
        .index::<MachineSet>(CLUSTER, |set| vec![set.spec.cluster_name.clone()])
        .index_label::<MachineSet>(label::DEPLOYMENT_NAME)
        .index_label::<Machine>(label::CLUSTER_NAME)
        .read::<Definition>();
}

fn adopters(change: &Change<Machine>, caches: &Caches) -> Vec<Key> {
    match &change.new {
        Some(machine) if machine.metadata.controller().is_none() => {
            keys(caches, &change.key.namespace, |set| selects(&set.spec.selector, &machine.metadata.labels))
        }
        _ => Vec::new(),
    }
}

fn keys(caches: &Caches, namespace: &str, wanted: impl Fn(&MachineSet) -> bool) -> Vec<Key> {
    let sets = caches.of::<MachineSet>().and_then(|cache| cache.list(namespace)).unwrap_or_default();
    sets.iter().filter(|set| wanted(set)).map(|set| set.metadata.key()).collect()
}
