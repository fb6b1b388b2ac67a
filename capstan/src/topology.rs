//! Clusters of a ClusterClass: their parts follow `spec.topology` of the Cluster, so commands refuse to change the parts and
//! print the command that changes the topology.

use anyhow::{Result, bail};
use capstan_capi_types::core::Cluster;
use serde_json::{Value, json};

use crate::versions::parsed;

/// Refuses a cluster with a topology: its controller would revert changes of the parts. `commands` do the same to the topology.
pub fn refuse(cluster: &Cluster, commands: impl FnOnce(&Cluster) -> Result<Vec<String>>) -> Result<()> {
    if cluster.spec.topology.version.is_empty() {
        return Ok(());
    }
    let commands: Vec<String> = commands(cluster)?.iter().map(|command| format!("  {command}")).collect();
    bail!(
        "cluster {} uses a ClusterClass, which reverts changes of its parts: change spec.topology of the Cluster instead\n{}",
        cluster.metadata.name,
        commands.join("\n")
    )
}

/// The command that opens the Cluster in an editor.
pub fn edit(cluster: &Cluster) -> String {
    let meta = &cluster.metadata;
    format!("kubectl edit cluster {} -n {}", meta.name, meta.namespace)
}

fn patch(cluster: &Cluster, kind: &str, body: &Value) -> String {
    let meta = &cluster.metadata;
    format!("kubectl patch cluster {} -n {} --type {kind} -p '{body}'", meta.name, meta.namespace)
}

/// The command that upgrades a cluster to a version.
pub fn upgrade(cluster: &Cluster, to: &str) -> Result<String> {
    let version = format!("v{}", parsed(to)?);
    Ok(patch(cluster, "merge", &json!({"spec": {"topology": {"version": version}}})))
}

/// The commands that change numbers of machines.
pub fn scale(
    cluster: &Cluster,
    control_plane: Option<u32>,
    workers: &[(String, u32)],
) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    if let Some(replicas) = control_plane {
        let body = json!({"spec": {"topology": {"controlPlane": {"replicas": replicas}}}});
        commands.push(patch(cluster, "merge", &body));
    }
    let topology = &cluster.spec.topology.workers;
    let deployments = topology.machine_deployments.iter().map(|one| one.name.as_str()).enumerate();
    let pools = topology.machine_pools.iter().map(|one| one.name.as_str()).enumerate();
    let all: Vec<(&str, usize, &str)> = deployments
        .map(|(at, name)| ("machineDeployments", at, name))
        .chain(pools.map(|(at, name)| ("machinePools", at, name)))
        .collect();
    for (name, replicas) in workers {
        // Objects are named after the cluster and the part of the topology, and may have a suffix.
        let short = name.strip_prefix(&format!("{}-", cluster.metadata.name)).unwrap_or(name);
        let is = |part: &str| part == name || part == short || short.starts_with(&format!("{part}-"));
        let Some((list, at, _)) = all.iter().find(|(_, _, part)| is(part)) else {
            let names: Vec<&str> = all.iter().map(|(_, _, part)| *part).collect();
            bail!(
                "cluster {} uses a ClusterClass, and its topology has no workers named {name}; there are: {}",
                cluster.metadata.name,
                names.join(", ")
            );
        };
        let path = format!("/spec/topology/workers/{list}/{at}/replicas");
        commands.push(patch(cluster, "json", &json!([{"op": "add", "path": path, "value": replicas}])));
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::topology::{MachineDeploymentTopology, MachinePoolTopology};

    use super::*;

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.metadata.name = "demo".to_owned();
        cluster.metadata.namespace = "a".to_owned();
        cluster.spec.topology.version = "v1.35.0".to_owned();
        let deployment =
            |name: &str| MachineDeploymentTopology { name: name.to_owned(), ..Default::default() };
        cluster.spec.topology.workers.machine_deployments = vec![deployment("blue"), deployment("green")];
        let pool = MachinePoolTopology { name: "pool".to_owned(), ..Default::default() };
        cluster.spec.topology.workers.machine_pools = vec![pool];
        cluster
    }

    #[test]
    fn a_cluster_of_a_class_is_refused_with_the_command_that_changes_its_topology() {
        let patch =
            |kind: &str, body: &str| format!("kubectl patch cluster demo -n a --type {kind} -p '{body}'");
        let upgraded = upgrade(&cluster(), "1.36.0").expect("a command");
        assert_eq!(upgraded, patch("merge", r#"{"spec":{"topology":{"version":"v1.36.0"}}}"#));
        let scaled = |control_plane, workers: &[(&str, u32)]| {
            let workers: Vec<_> = workers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            scale(&cluster(), control_plane, &workers).map_err(|error| error.to_string())
        };
        let path = |list: &str, at: u32| {
            let path = format!("/spec/topology/workers/{list}/{at}/replicas");
            patch("json", &format!(r#"[{{"op":"add","path":"{path}","value":3}}]"#))
        };
        let control_plane = patch("merge", r#"{"spec":{"topology":{"controlPlane":{"replicas":3}}}}"#);
        for (replicas, workers, expected) in [
            (Some(3), &[][..], vec![control_plane]),
            (None, &[("green", 3)][..], vec![path("machineDeployments", 1)]),
            (None, &[("demo-green-x7k2p", 3)][..], vec![path("machineDeployments", 1)]),
            (None, &[("demo-pool", 3)][..], vec![path("machinePools", 0)]),
        ] {
            assert_eq!(scaled(replicas, workers), Ok(expected), "{workers:?}");
        }
        let error = scaled(None, &[("red", 3)]).expect_err("no such workers");
        assert!(error.ends_with("no workers named red; there are: blue, green, pool"), "{error}");

        let refused = refuse(&cluster(), |cluster| Ok(vec![edit(cluster)])).expect_err("refused").to_string();
        assert!(refused.ends_with("instead\n  kubectl edit cluster demo -n a"), "{refused}");
        assert!(refuse(&Cluster::default(), |_| Ok(Vec::new())).is_ok());
    }
}
