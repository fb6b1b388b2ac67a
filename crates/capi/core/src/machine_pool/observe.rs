//! Reads what a decision about a MachinePool depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_types::core::cluster::condition::CONTROL_PLANE_INITIALIZED;
use capstan_capi_types::core::{Cluster, Machine, MachinePool, label};
use capstan_controller::{ObserveError, View, Wake};
use capstan_object::{Conditions, Key, Object};

use super::cluster_of;
use super::observed::{Observed, ObservedNodes};
use crate::contract::{Definition, External, InfrastructurePool, definition_name, kind_name, look_up};
use crate::workload::{NodeError, Nodes};

pub(super) async fn observe(
    pool: &Arc<MachinePool>,
    view: &View,
    nodes: &Nodes,
    wake: Option<&Wake>,
) -> Result<Observed, ObserveError> {
    let namespace = &pool.metadata.namespace;
    let Some(cluster) = view.get::<Cluster>(&cluster_of(pool))? else { return Ok(Observed::default()) };
    let template = &pool.spec.template.spec;
    let infrastructure_ref = &template.infrastructure_ref;
    let definition = definition_name(&infrastructure_ref.api_group, &infrastructure_ref.kind);
    let mut seen = Observed {
        bootstrap: look_up(view, &template.bootstrap.config_ref, namespace).await?,
        infrastructure: look_up(view, infrastructure_ref, namespace).await?,
        infrastructure_kind_exists: view.get::<Definition>(&Key::new("", definition))?.is_some(),
        machines: machines(pool, view)?,
        ..Observed::default()
    };
    if let Some(infrastructure) = seen.infrastructure.object() {
        seen.infrastructure_machines = infrastructure_machines(pool, infrastructure, view).await?;
    }
    if cluster.status.conditions.is_condition_true(CONTROL_PLANE_INITIALIZED) {
        seen.nodes = of_pool(pool, &seen, view, nodes, wake).await;
    }
    seen.cluster = Some(cluster);
    Ok(seen)
}

/// Machines with the pool's label that no other object controls.
fn machines(pool: &MachinePool, view: &View) -> Result<Vec<Arc<Machine>>, ObserveError> {
    let meta = &pool.metadata;
    let mut machines =
        view.labelled::<Machine>(&meta.namespace, label::POOL_NAME, &label::value(&meta.name))?;
    machines.retain(|machine| {
        machine.spec.cluster_name == pool.spec.cluster_name
            && machine.metadata.controller().is_none_or(|owner| owner.uid == meta.uid)
    });
    Ok(machines)
}

/// The provider's machines of a pool: objects of the reported kind with the labels of the pool and its cluster.
async fn infrastructure_machines(
    pool: &MachinePool,
    infrastructure: &External,
    view: &View,
) -> Result<Option<Vec<External>>, ObserveError> {
    let reported = InfrastructurePool(infrastructure).machine_kind().ok().flatten();
    let Some(kind) = reported.filter(|kind| !kind.is_empty()) else { return Ok(None) };
    let of_pool = &infrastructure.kind;
    let name = definition_name(&of_pool.group, &kind);
    if view.get::<Definition>(&Key::new("", name))?.is_none() {
        return Ok(None);
    }
    let kind = kind_name(&of_pool.group, &of_pool.version, &kind);
    let meta = &pool.metadata;
    let value = label::value(&meta.name);
    let mut found = Vec::new();
    for object in view.external_labelled(&kind, &meta.namespace, label::POOL_NAME, &value).await? {
        let of_cluster = object.metadata().labels.get(label::CLUSTER_NAME);
        if of_cluster != Some(&pool.spec.cluster_name) {
            continue;
        }
        let value = object.value().map_err(|error| ObserveError::Unreadable {
            kind: kind.kind.to_string(),
            key: object.metadata().key(),
            why: error.to_string(),
        })?;
        found.push(External::new(kind.clone(), infrastructure.contract, value));
    }
    found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(Some(found))
}

/// The Nodes of all providerIDs that the pool has or is about to get, and those that it refers to.
async fn of_pool(
    pool: &MachinePool,
    seen: &Observed,
    view: &View,
    nodes: &Nodes,
    wake: Option<&Wake>,
) -> ObservedNodes {
    let offered = seen.infrastructure.object().and_then(|it| InfrastructurePool(it).provider_ids().ok()?);
    let ids: BTreeSet<&str> = pool
        .spec
        .provider_id_list
        .iter()
        .chain(offered.iter().flatten())
        .map(String::as_str)
        .filter(|id| !id.is_empty())
        .collect();
    if ids.is_empty() && pool.status.node_refs.is_empty() {
        return ObservedNodes::NotAsked;
    }
    let read = async {
        let cluster = cluster_of(pool);
        let (mut by_id, mut referenced) = (BTreeMap::new(), Vec::new());
        for id in ids {
            if let Some(wake) = wake {
                nodes.wake_on::<MachinePool>(&cluster, id, &pool.key(), wake);
            }
            if let Some(node) = nodes.by_provider_id(view, &cluster, id).await? {
                by_id.insert(id.to_owned(), node);
            }
        }
        for reference in &pool.status.node_refs {
            referenced.extend(nodes.by_name(view, &cluster, &reference.name).await?);
        }
        Ok::<_, NodeError>(ObservedNodes::Known { by_id, referenced })
    };
    read.await.unwrap_or_else(|error| ObservedNodes::NotConnected(error.to_string()))
}
