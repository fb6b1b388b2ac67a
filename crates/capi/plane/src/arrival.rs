//! Whether the version of a topology has arrived everywhere: in the control plane, in its MachineDeployments and in its
//! MachinePools. Until then the topology cannot get another.

use capstan_apiserver::status::Status;
use capstan_capi_core::contract::{ControlPlane, Definition, External, definition_name, kind_name, served};
use capstan_capi_topology::current::{self, CurrentPool};
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachinePool, label};
use capstan_capi_types::version;
use capstan_controller::KindName;
use capstan_object::{Key, Object};
use serde::Deserialize;
use serde_json::Value;

use crate::rules::RelatedObjects;

/// What does not have `version` yet, in upstream's words.
pub(crate) async fn problems(
    namespace: &str,
    cluster: &Cluster,
    version: &str,
    others: &dyn RelatedObjects,
) -> Result<Vec<String>, Status> {
    let mut problems = Vec::new();
    let control_plane = control_plane(namespace, cluster, others).await?;
    problems.extend(control_plane.and_then(|found| of_control_plane(&found, version)).err());
    let name = cluster.metadata.name.as_str();
    let deployments: Vec<MachineDeployment> = of_topology(namespace, name, others).await?;
    if !deployments.is_empty() {
        let labels = [(label::CLUSTER_NAME, name)];
        let machines = others.list(&KindName::of::<Machine>(), namespace, &labels).await?;
        let machines: Vec<Machine> = typed(&machines);
        problems.extend(of_deployments(&deployments, &machines, version).err());
    }
    let pools: Vec<MachinePool> = of_topology(namespace, name, others).await?;
    problems.extend(of_pools(&pools, version).err());
    Ok(problems)
}

fn typed<T: Object>(objects: &[Value]) -> Vec<T> {
    objects.iter().filter_map(|object| T::deserialize(object).ok()).collect()
}

/// Workers of a topology.
async fn of_topology<T: Object>(
    namespace: &str,
    cluster: &str,
    others: &dyn RelatedObjects,
) -> Result<Vec<T>, Status> {
    let labels = [(label::CLUSTER_NAME, cluster), (label::TOPOLOGY_OWNED, "")];
    Ok(typed(&others.list(&KindName::of::<T>(), namespace, &labels).await?))
}

/// The control plane of a cluster, or why it cannot be read.
async fn control_plane(
    namespace: &str,
    cluster: &Cluster,
    others: &dyn RelatedObjects,
) -> Result<Result<External, String>, Status> {
    let failed = |why: String| {
        Ok(Err(format!(
            "failed to check if control plane is upgrading: failed to get control plane object: {why}"
        )))
    };
    let reference = &cluster.spec.control_plane_ref;
    if !reference.is_defined() {
        return failed("the Cluster has no spec.controlPlaneRef yet".to_owned());
    }
    let name = definition_name(&reference.api_group, &reference.kind);
    let definition = others.find(&KindName::of::<Definition>(), &Key::new("", name.as_str())).await?;
    let definition = definition.and_then(|definition| Definition::deserialize(definition).ok());
    let Some((contract, version)) = definition.and_then(|it| served(&it.metadata.labels)) else {
        return failed(format!("{name} is not installed, or has no version of Cluster API's contract"));
    };
    let kind = kind_name(&reference.api_group, &version, &reference.kind);
    let key = Key::new(namespace, reference.name.as_str());
    match others.find(&kind, &key).await? {
        Some(found) => Ok(Ok(External::new(kind, contract, found))),
        None => failed(format!("{} {key} does not exist", reference.kind)),
    }
}

fn is(text: &str, version: &str) -> bool {
    version::tolerant(text).is_some_and(|found| found.to_string() == version)
}

fn of_control_plane(control_plane: &External, version: &str) -> Result<(), String> {
    let found = ControlPlane(control_plane).version().ok().flatten().unwrap_or_default();
    if !is(&found, version) {
        let found = found.trim_start_matches('v');
        return Err(format!(
            "Cluster.spec.topology.version {version} was not propagated to control plane yet (control plane version {found})"
        ));
    }
    if current::is_provisioning(control_plane) {
        return Err("control plane is currently provisioning".to_owned());
    }
    if current::is_upgrading(control_plane) {
        return Err("control plane is still completing a previous upgrade".to_owned());
    }
    Ok(())
}

fn of_deployments(
    deployments: &[MachineDeployment],
    machines: &[Machine],
    version: &str,
) -> Result<(), String> {
    let behind = |deployment: &&MachineDeployment| {
        let wanted = deployment.spec.template.spec.version.as_str();
        let selector = &deployment.spec.selector.match_labels;
        let selected = |machine: &&Machine| {
            selector.iter().all(|(key, value)| machine.metadata.labels.get(key) == Some(value))
        };
        !is(wanted, version) || machines.iter().filter(selected).any(|machine| !has(machine, wanted))
    };
    let names = deployments.iter().filter(behind).map(|deployment| &*deployment.metadata.name);
    upgrading("MachineDeployments", names.collect())
}

/// The machine has a version, and so does its kubelet: it is upgraded last when a machine is upgraded in place.
fn has(machine: &Machine, version: &str) -> bool {
    let kubelet = machine.status.node_info.as_ref().map_or("", |info| &*info.kubelet_version);
    machine.spec.version == version && (kubelet.is_empty() || kubelet == version)
}

/// Upstream asks the nodes of a pool. Here the pool's status says which versions they have, so that a workload cluster
/// that cannot be reached does not keep the topology from being changed.
fn of_pools(pools: &[MachinePool], version: &str) -> Result<(), String> {
    let behind = |pool: &&MachinePool| {
        !is(&pool.spec.template.spec.version, version) || CurrentPool::is_upgrading(pool)
    };
    upgrading("MachinePools", pools.iter().filter(behind).map(|pool| &*pool.metadata.name).collect())
}

fn upgrading(kind: &str, names: Vec<&str>) -> Result<(), String> {
    match names.is_empty() {
        true => Ok(()),
        false => Err(format!("there are still {kind} completing a previous upgrade: [{}]", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use capstan_capi_core::contract::ContractVersion;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_control_plane_must_have_the_version_in_spec_and_status() {
        for (spec, status, expected) in [
            ("v1.35.0", json!({"version": "v1.35.0"}), Ok(())),
            (
                "v1.34.0",
                json!({"version": "v1.34.0"}),
                Err(
                    "Cluster.spec.topology.version 1.35.0 was not propagated to control plane yet (control plane version 1.34.0)",
                ),
            ),
            ("v1.35.0", json!({}), Err("control plane is currently provisioning")),
            (
                "v1.35.0",
                json!({"versions": [{"version": "v1.34.0"}, {"version": "v1.35.0"}]}),
                Err("control plane is still completing a previous upgrade"),
            ),
        ] {
            let kind = KindName::namespaced("cp", "v1", "ControlPlane", "controlplanes");
            let value = json!({"metadata": {"name": "c"}, "spec": {"version": spec}, "status": status});
            let control_plane = External::new(kind, ContractVersion::V1Beta2, value);
            let found = of_control_plane(&control_plane, "1.35.0");
            assert_eq!(found, expected.map_err(str::to_owned), "{spec}");
        }
    }

    #[test]
    fn machines_of_a_deployment_and_their_kubelets_must_have_the_version() {
        let deployment: MachineDeployment = serde_json::from_value(json!({
            "metadata": {"name": "md"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"version": "v1.35.0"}}},
        }))
        .expect("a deployment");
        let still = Err("there are still MachineDeployments completing a previous upgrade: [md]".to_owned());
        for (labels, version, kubelet, expected) in [
            (json!({"a": "b"}), "v1.35.0", "v1.35.0", Ok(())),
            (json!({"a": "b"}), "v1.35.0", "", Ok(())),
            (json!({"a": "b"}), "v1.34.0", "", still.clone()),
            (json!({"a": "b"}), "v1.35.0", "v1.34.0", still.clone()),
            (json!({"a": "other"}), "v1.34.0", "", Ok(())),
        ] {
            let machine: Machine = serde_json::from_value(json!({
                "metadata": {"name": "m", "labels": labels},
                "spec": {"version": version},
                "status": {"nodeInfo": {"kubeletVersion": kubelet}},
            }))
            .expect("a machine");
            let deployments = std::slice::from_ref(&deployment);
            assert_eq!(of_deployments(deployments, &[machine], "1.35.0"), expected, "{version} {kubelet}");
        }
        assert_eq!(of_deployments(&[deployment], &[], "1.34.0"), still);
    }

    #[test]
    fn nodes_of_a_pool_must_have_the_version() {
        for (versions, expected) in [
            (json!([{"version": "v1.35.0"}]), Ok(())),
            (
                json!([{"version": "v1.34.0"}]),
                Err("there are still MachinePools completing a previous upgrade: [mp]".to_owned()),
            ),
        ] {
            let pool: MachinePool = serde_json::from_value(json!({
                "metadata": {"name": "mp"},
                "spec": {"template": {"spec": {"version": "v1.35.0"}}},
                "status": {"versions": versions},
            }))
            .expect("a pool");
            assert_eq!(of_pools(&[pool], "1.35.0"), expected);
        }
    }
}
