//! `capstan upgrade`: a cluster's Kubernetes version, control plane first.
//!
//! Versions of the workers are set together with the control plane's: MachineSets create no machine while their control
//! plane is being upgraded or is older than they are, so the controllers keep the order, not this command.

use anyhow::{Context, Result};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::ListOptions;
use serde_json::{Value, json};

use crate::change::{Change, ControlPlane, apply_changes};
use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::output::{ActionReport, OutputArgs, eprint_line};
use crate::plan;
use crate::plugins::Plugins;
use crate::topology;
use crate::versions::{JoinedVersions, is_initialized, parsed};
use crate::wait::{Goal, WaitArgs};
use crate::workers::{self, WorkerGroup};

/// Arguments of `capstan upgrade`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Kubernetes version, such as v1.36.0
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// New machine template of the control plane; needed where an image has one Kubernetes version
    #[arg(long, value_name = "NAME")]
    control_plane_template: Option<String>,
    /// New machine template of the workers; those of MachinePools keep their infrastructure
    #[arg(long, value_name = "NAME", conflicts_with = "control_plane_only")]
    worker_template: Option<String>,
    /// Do not upgrade the workers
    #[arg(long)]
    control_plane_only: bool,
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

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let cluster: Cluster = management.find(&args.cluster).await?;
        topology::refuse(&cluster, |cluster| Ok(vec![topology::upgrade(cluster, &args.to)?]))?;
        if cluster.spec.paused == Some(true) {
            eprint_line(&format!(
                "cluster {0} is paused: the upgrade starts after `capstan resume {0} -n {1}`",
                args.cluster, management.namespace
            ));
        }
        let control_plane = ControlPlane::of(&management, &cluster).await?;
        let workers = match args.control_plane_only {
            true => Vec::new(),
            false => workers::groups(&management, &args.cluster).await?,
        };
        let machines = machines(&management, &args.cluster).await?;
        let changes = changes(&control_plane, &workers, &JoinedVersions::of(&machines), args)?;
        let mut report = ActionReport::new(args.output);
        if changes.is_empty() {
            report.note(&format!("cluster {} is already at version {}", args.cluster, args.to))?;
        }
        if !args.no_plan {
            plan::check(&management, &args.cluster, &changes, args.dry_run).await?;
        }
        apply_changes(&management, &changes, args.dry_run, &mut report).await?;
        args.wait.follow(&management, &args.cluster, Goal::Ready, args.dry_run, &report).await
    })
}

async fn machines(management: &Management, cluster: &str) -> Result<Vec<Machine>> {
    let all: Vec<Machine> =
        management.client.list_all(&management.namespace, &ListOptions::default()).await?;
    Ok(all.into_iter().filter(|machine| machine.spec.cluster_name == cluster).collect())
}

fn changes(
    control_plane: &ControlPlane,
    workers: &[WorkerGroup],
    joined: &JoinedVersions,
    args: &Args,
) -> Result<Vec<Change>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let to = parsed(&args.to).context("--to")?;
    let target = format!("v{to}");
    let now = text(&control_plane.object["spec"]["version"]);
    let title = format!("{}/{}", control_plane.kind.kind, control_plane.name());
    let current = parsed(&now).with_context(|| format!("spec.version of {title}"))?;
    joined
        .check_control_plane(is_initialized(&control_plane.object), &current, &to)
        .with_context(|| format!("{title} cannot go from {now} to {target}"))?;
    let mut changes = Vec::new();
    let template = args.control_plane_template.as_deref();
    if now != target || template.is_some() {
        let mut spec = json!({"version": target});
        if let Some(name) = template {
            spec["machineTemplate"] = json!({"spec": {"infrastructureRef": {"name": name}}});
        }
        changes.push(control_plane.change(summary(&now, &target, template), spec));
    }
    for group in workers {
        let (title, now) = (group.title(), &group.version);
        if now.is_empty() {
            eprint_line(&format!("{title} has no version in its spec and is not changed"));
            continue;
        }
        let own = parsed(now).with_context(|| format!("spec.template.spec.version of {title}"))?;
        joined.check_workers(group, &own, &to).with_context(|| format!("{title} is at {now}"))?;
        // The infrastructure of a pool is no template.
        let template = args.worker_template.as_deref().filter(|_| !group.is_pool());
        if *now == target && template.is_none() {
            continue;
        }
        let mut spec = json!({"version": target});
        if let Some(name) = template {
            spec["infrastructureRef"] = json!({"name": name});
        }
        changes.push(Change {
            kind: group.kind.clone(),
            name: group.name.clone(),
            what: summary(now, &target, template),
            patch: json!({"spec": {"template": {"spec": spec}}}),
        });
    }
    Ok(changes)
}

fn summary(from: &str, to: &str, template: Option<&str>) -> String {
    let template = template.map(|name| format!(", machines from template {name}")).unwrap_or_default();
    format!("version {from} → {to}{template}")
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::{MachineDeployment, MachinePool, label};
    use capstan_controller::KindName;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &[&str]) -> Args {
        Line::parse_from(["upgrade", "c"].iter().chain(line)).args
    }

    /// All machines have joined with the versions in the specs.
    fn decided(control_plane: &str, workers: &[&str], line: &[&str]) -> Result<Vec<String>> {
        let joined = |version: &str, (key, value): (&str, &str)| {
            let mut machine = Machine::default();
            machine.spec.version = version.to_owned();
            machine.status.node_ref.name = "node".to_owned();
            machine.metadata.labels.insert(key.to_owned(), value.to_owned());
            machine
        };
        let mut machines = vec![joined(control_plane, (label::CONTROL_PLANE, ""))];
        machines.extend(workers.iter().map(|version| joined(version, (label::DEPLOYMENT_NAME, "md"))));
        let kind = KindName::namespaced("g", "v1", "KubeadmControlPlane", "p");
        let object = json!({"metadata": {"name": "cp"}, "spec": {"version": control_plane}});
        let workers: Vec<WorkerGroup> = workers
            .iter()
            .map(|version| {
                let mut deployment = MachineDeployment::default();
                deployment.metadata.name = "md".to_owned();
                deployment.spec.template.spec.version = (*version).to_owned();
                WorkerGroup::of_deployment(&deployment)
            })
            .collect();
        let changes =
            changes(&ControlPlane { kind, object }, &workers, &JoinedVersions::of(&machines), &args(line))?;
        Ok(changes.into_iter().map(|change| format!("{}: {}", change.name, change.what)).collect())
    }

    #[test]
    fn the_control_plane_is_upgraded_first_one_minor_version_at_a_time() {
        for (control_plane, workers, line, expected) in [
            (
                "v1.35.0",
                &["v1.35.0"][..],
                &["--to", "v1.36.0"][..],
                Ok("cp: version v1.35.0 → v1.36.0; md: version v1.35.0 → v1.36.0"),
            ),
            (
                "v1.35.0",
                &["v1.35.0"][..],
                &["--to", "1.35.4"][..],
                Ok("cp: version v1.35.0 → v1.35.4; md: version v1.35.0 → v1.35.4"),
            ),
            ("v1.36.0", &["v1.35.0"][..], &["--to", "v1.36.0"][..], Ok("md: version v1.35.0 → v1.36.0")),
            ("v1.36.0", &["v1.36.0"][..], &["--to", "v1.36.0"][..], Ok("")),
            (
                "v1.35.0",
                &[][..],
                &["--to", "v1.36.0", "--control-plane-template", "new"][..],
                Ok("cp: version v1.35.0 → v1.36.0, machines from template new"),
            ),
            ("v1.34.0", &[][..], &["--to", "v1.36.0"][..], Err("upgrade to v1.35 first")),
            ("v1.36.0", &[][..], &["--to", "v1.35.0"][..], Err("cannot be downgraded")),
            ("v1.35.0", &["v1.32.0"][..], &["--to", "v1.36.0"][..], Err("at least v1.33 first")),
            ("v1.36.0", &["v1.37.0"][..], &["--to", "v1.36.1"][..], Err("must not be newer")),
            ("v1.35.0", &[][..], &["--to", "latest"][..], Err("such as v1.36.0")),
            ("v1.35.0", &[][..], &["--to", "v1.36"][..], Err("such as v1.36.0")),
        ] {
            match (decided(control_plane, workers, line), expected) {
                (Ok(changes), Ok(expected)) => assert_eq!(changes.join("; "), expected),
                (Err(error), Err(expected)) => assert!(format!("{error:#}").contains(expected), "{error:#}"),
                (changes, expected) => {
                    panic!("{control_plane} {workers:?} {line:?}: {changes:?}, not {expected:?}")
                }
            }
        }
    }

    #[test]
    fn machine_pools_are_upgraded_and_keep_their_infrastructure() {
        let mut pool = MachinePool::default();
        pool.metadata.name = "mp".to_owned();
        pool.spec.template.spec.version = "v1.35.0".to_owned();
        let kind = KindName::namespaced("g", "v1", "KubeadmControlPlane", "p");
        let object = json!({"metadata": {"name": "cp"}, "spec": {"version": "v1.36.0"}});
        let control_plane = ControlPlane { kind, object };
        let line = ["--to", "v1.36.0", "--worker-template", "new"];
        let groups = [WorkerGroup::of_pool(&pool)];
        let found = changes(&control_plane, &groups, &JoinedVersions::default(), &args(&line));
        let found = found.expect("changes");
        assert_eq!((found[0].kind.kind.as_ref(), found[0].name.as_str()), ("MachinePool", "mp"));
        assert_eq!(found[0].patch, json!({"spec": {"template": {"spec": {"version": "v1.36.0"}}}}));
    }
}
