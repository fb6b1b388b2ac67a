//! `capstan upgrade`: a cluster's Kubernetes version, control plane first.
//!
//! Versions of the workers are set together with the control plane's: MachineSets create no machine while their control
//! plane is being upgraded or is older than they are, so the controllers keep the order, not this command.

use anyhow::{Context, Result, bail};
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_capi_types::version::tolerant;
use capstan_controller::KindName;
use semver::Version;
use serde_json::{Value, json};

use crate::change::{Change, ControlPlane, apply_changes, refuse_topology};
use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{ActionReport, OutputArgs, eprint_line};
use crate::plugins::Plugins;
use crate::scale::deployments;
use crate::wait::{Goal, WaitArgs};

/// How many minor versions a kubelet may be behind its API server.
const KUBELET_SKEW: u64 = 3;

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
    /// New machine template of the workers
    #[arg(long, value_name = "NAME", conflicts_with = "control_plane_only")]
    worker_template: Option<String>,
    /// Do not upgrade the workers
    #[arg(long)]
    control_plane_only: bool,
    /// Validate the change on the server and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.connection.run(plugins, async |management| {
        let cluster: Cluster = management.find(&args.cluster).await?;
        refuse_topology(&cluster)?;
        if cluster.spec.paused == Some(true) {
            eprint_line(&format!(
                "cluster {0} is paused: the upgrade starts after `capstan resume {0}`",
                args.cluster
            ));
        }
        let control_plane = ControlPlane::of(&management, &cluster).await?;
        let workers = match args.control_plane_only {
            true => Vec::new(),
            false => deployments(&management, &args.cluster).await?,
        };
        let changes = changes(&control_plane, &workers, args)?;
        let mut report = ActionReport::new(args.output);
        if changes.is_empty() {
            report.note(&format!("cluster {} is already at version {}", args.cluster, args.to))?;
        }
        apply_changes(&management, &changes, args.dry_run, &mut report).await?;
        args.wait.follow(&management, &args.cluster, Goal::Ready, args.dry_run, &report).await
    })
}

fn changes(control_plane: &ControlPlane, workers: &[MachineDeployment], args: &Args) -> Result<Vec<Change>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let to = parsed(&args.to).context("--to")?;
    let target = format!("v{to}");
    let now = text(&control_plane.object["spec"]["version"]);
    let title = format!("{}/{}", control_plane.kind.kind, control_plane.name());
    check_step(&parsed(&now).with_context(|| format!("spec.version of {title}"))?, &to)
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
    for deployment in workers {
        let name = &deployment.metadata.name;
        let now = deployment.spec.template.spec.version.clone();
        if now.is_empty() {
            eprint_line(&format!("machinedeployment/{name} has no version in its spec and is not changed"));
            continue;
        }
        let own = parsed(&now)
            .with_context(|| format!("spec.template.spec.version of machinedeployment/{name}"))?;
        check_skew(&own, &to).with_context(|| format!("machinedeployment/{name} is at {now}"))?;
        let template = args.worker_template.as_deref();
        if now == target && template.is_none() {
            continue;
        }
        let mut spec = json!({"version": target});
        if let Some(name) = template {
            spec["infrastructureRef"] = json!({"name": name});
        }
        changes.push(Change {
            kind: KindName::of::<MachineDeployment>(),
            name: name.clone(),
            what: summary(&now, &target, template),
            patch: json!({"spec": {"template": {"spec": spec}}}),
        });
    }
    Ok(changes)
}

fn summary(from: &str, to: &str, template: Option<&str>) -> String {
    let template = template.map(|name| format!(", machines from template {name}")).unwrap_or_default();
    format!("version {from} → {to}{template}")
}

fn parsed(text: &str) -> Result<Version> {
    // Without the patch release it is ambiguous.
    let whole = text.split(['-', '+']).next().unwrap_or_default().matches('.').count() == 2;
    match tolerant(text).filter(|_| whole) {
        Some(version) => Ok(version),
        None => bail!("{text:?} is not a Kubernetes version such as v1.36.0"),
    }
}

/// Refuses downgrades and skipped minor versions.
fn check_step(from: &Version, to: &Version) -> Result<()> {
    if to < from {
        bail!("Kubernetes cannot be downgraded; restore an etcd backup into a new cluster instead");
    }
    if (to.major, to.minor) > (from.major, from.minor + 1) {
        bail!(
            "a control plane cannot skip minor versions: upgrade to v{}.{} first",
            from.major,
            from.minor + 1
        );
    }
    Ok(())
}

/// Refuses workers that are newer than their control plane, or too old for it.
pub fn check_skew(own: &Version, to: &Version) -> Result<()> {
    if own > to {
        bail!("newer than v{to}: workers must not be newer than their control plane");
    }
    if own.minor + KUBELET_SKEW < to.minor {
        bail!(
            "a kubelet may be at most {KUBELET_SKEW} minor versions older than its API server: upgrade it to at least v{}.{} first",
            to.major,
            to.minor - KUBELET_SKEW
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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

    fn decided(control_plane: &str, workers: &[&str], line: &[&str]) -> Result<Vec<String>> {
        let kind = KindName::namespaced("g", "v1", "KubeadmControlPlane", "p");
        let object = json!({"metadata": {"name": "cp"}, "spec": {"version": control_plane}});
        let workers: Vec<MachineDeployment> = workers
            .iter()
            .map(|version| {
                let mut deployment = MachineDeployment::default();
                deployment.metadata.name = "md".to_owned();
                deployment.spec.template.spec.version = (*version).to_owned();
                deployment
            })
            .collect();
        let changes = changes(&ControlPlane { kind, object }, &workers, &args(line))?;
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
}
