//! `capstan scale`.

use anyhow::{Context as _, Result, bail};
use capstan_capi_types::core::Cluster;
use serde_json::json;

use crate::change::{Change, ControlPlane, apply_changes};
use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{ActionReport, OutputArgs, eprint_line};
use crate::plan;
use crate::plugins::Plugins;
use crate::topology;
use crate::wait::{Goal, WaitArgs};
use crate::workers::{self, WorkerGroup};

/// Arguments of `capstan scale`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["control_plane", "workers"]))]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Machines of the control plane; an odd number
    #[arg(long, value_name = "N")]
    control_plane: Option<u32>,
    /// Machines of a MachineDeployment or MachinePool, named in full or without the prefix CLUSTER-
    #[arg(long, value_name = "NAME=N", value_parser = named_count)]
    workers: Vec<(String, u32)>,
    /// Validate the change on the server, print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not simulate the change and ask the cloud about it first
    #[arg(long)]
    no_plan: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn named_count(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text:?} is not NAME=N, such as md-0=3");
    let (name, count) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), count.parse().map_err(|_| wrong())?))
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let cluster: Cluster = management.find(&args.cluster).await?;
        topology::refuse(&cluster, |cluster| topology::scale(cluster, args.control_plane, &args.workers))?;
        let mut changes = Vec::new();
        if let Some(count) = args.control_plane {
            let control_plane = ControlPlane::of(&management, &cluster).await?;
            changes.extend(control_plane_change(&control_plane, count)?);
        }
        if !args.workers.is_empty() {
            let groups = workers::groups(&management, &args.cluster).await?;
            for (name, count) in &args.workers {
                changes.extend(worker_change(&args.cluster, &management.namespace, &groups, name, *count)?);
            }
        }
        let mut report = ActionReport::new(args.output);
        if changes.is_empty() {
            report.note(&format!("cluster {} already has these numbers of machines", args.cluster))?;
        }
        if !args.no_plan {
            plan::check(&management, &args.cluster, &changes, args.dry_run).await?;
        }
        apply_changes(&management, &changes, args.dry_run, &mut report).await?;
        args.wait.follow(&management, &args.cluster, Goal::Ready, args.dry_run, &report).await
    })
}

fn control_plane_change(control_plane: &ControlPlane, count: u32) -> Result<Option<Change>> {
    let spec = &control_plane.object["spec"];
    let external = !spec["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["external"].is_null();
    if count == 0 {
        bail!(
            "--control-plane 0: a cluster needs a control plane; to delete the cluster, run `capstan delete`"
        );
    }
    if control_plane.kind.kind == "KubeadmControlPlane" && !external && count.is_multiple_of(2) {
        bail!(
            "--control-plane {count}: etcd runs on these machines and needs an odd number for quorum: \
             use {} or {}",
            count - 1,
            count + 1
        );
    }
    let now = spec["replicas"].as_u64().unwrap_or(1);
    let what = format!("replicas {now} → {count}");
    Ok((now != u64::from(count)).then(|| control_plane.change(what, json!({"replicas": count}))))
}

fn worker_change(
    cluster: &str,
    namespace: &str,
    groups: &[WorkerGroup],
    name: &str,
    count: u32,
) -> Result<Option<Change>> {
    let what = "machinedeployment or machinepool";
    let found = workers::named(cluster, namespace, what, groups, |group| &group.name, name)?;
    if let Some(key) = &found.autoscaled {
        eprint_line(&format!(
            "warning: an autoscaler manages {} ({key}) and may change it back",
            found.title()
        ));
    }
    let now = found.replicas;
    let count = i32::try_from(count).context("too many machines")?;
    Ok((now != count).then(|| Change {
        kind: found.kind.clone(),
        name: found.name.clone(),
        what: format!("replicas {now} → {count}"),
        patch: json!({"spec": {"replicas": count}}),
    }))
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::{MachineDeployment, MachinePool};
    use capstan_controller::KindName;
    use serde_json::Value;

    use super::*;

    fn control_plane(spec: Value) -> ControlPlane {
        ControlPlane {
            kind: KindName::namespaced(
                "controlplane.cluster.x-k8s.io",
                "v1beta2",
                "KubeadmControlPlane",
                "x",
            ),
            object: json!({"metadata": {"name": "cp"}, "spec": spec}),
        }
    }

    #[test]
    fn a_control_plane_with_its_own_etcd_has_an_odd_number_of_machines() {
        let external =
            json!({"replicas": 3, "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": {"external": {}}}}});
        for (spec, count, expected) in [
            (json!({"replicas": 1}), 3, Ok(Some("replicas 1 → 3"))),
            (json!({}), 3, Ok(Some("replicas 1 → 3"))),
            (json!({"replicas": 3}), 3, Ok(None)),
            (external, 2, Ok(Some("replicas 3 → 2"))),
            (json!({"replicas": 1}), 2, Err("use 1 or 3")),
            (json!({"replicas": 1}), 0, Err("capstan delete")),
        ] {
            let change = control_plane_change(&control_plane(spec.clone()), count);
            match (change, expected) {
                (Ok(change), Ok(expected)) => {
                    assert_eq!(change.map(|it| it.what).as_deref(), expected, "{spec} {count}")
                }
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (change, expected) => panic!("{spec} {count}: {change:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn workers_are_found_by_their_name_or_the_part_after_the_clusters() {
        let mut deployment = MachineDeployment::default();
        deployment.metadata.name = "quick-workers".to_owned();
        deployment.spec.replicas = Some(1);
        let mut pool = MachinePool::default();
        pool.metadata.name = "quick-pool".to_owned();
        pool.spec.replicas = Some(2);
        let all = [WorkerGroup::of_deployment(&deployment), WorkerGroup::of_pool(&pool)];
        for (name, kind, full, what) in [
            ("quick-workers", "MachineDeployment", "quick-workers", "replicas 1 → 3"),
            ("workers", "MachineDeployment", "quick-workers", "replicas 1 → 3"),
            ("pool", "MachinePool", "quick-pool", "replicas 2 → 3"),
        ] {
            let change = worker_change("quick", "default", &all, name, 3).expect("found").expect("a change");
            let found = (change.kind.kind.as_ref(), change.name.as_str(), change.what.as_str());
            assert_eq!(found, (kind, full, what));
        }
        assert_eq!(worker_change("quick", "default", &all, "workers", 1).expect("found"), None);
        let error = worker_change("quick", "default", &all, "md-1", 1).expect_err("none of that name");
        assert_eq!(
            error.to_string(),
            "no machinedeployment or machinepool of cluster quick named md-1 in namespace default; there are: quick-workers, \
             quick-pool"
        );
    }

    #[test]
    fn counts_are_named() {
        assert_eq!(named_count("md-0=3"), Ok(("md-0".to_owned(), 3)));
        for wrong in ["3", "md-0=", "md-0=-1", "md-0=many"] {
            assert!(named_count(wrong).is_err_and(|said| said.contains("NAME=N")), "{wrong}");
        }
    }
}
