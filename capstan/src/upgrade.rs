//! `capstan upgrade`: a cluster's Kubernetes version, control plane first.
//!
//! Versions of the workers are set together with the control plane's: MachineSets make no machine while their control
//! plane is being upgraded or is older than they are, so the order is kept by the controllers, not by this command.

use anyhow::{Context, Result, bail};
use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_capi_types::version::tolerant;
use capstan_controller::KindName;
use semver::Version;
use serde_json::{Value, json};

use crate::change::{Change, ControlPlane, make, owns_its_parts};
use crate::exit::Exit;
use crate::output::{Deeds, OutputArgs, talk};
use crate::plugins::Plugins;
use crate::reach::Reach;
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
    reach: Reach,
    /// Version of Kubernetes, such as v1.36.0
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// Machine template of the control plane from now on, where an image has one version of Kubernetes
    #[arg(long, value_name = "NAME")]
    control_plane_template: Option<String>,
    /// Machine template of the workers from now on
    #[arg(long, value_name = "NAME", conflicts_with = "control_plane_only")]
    worker_template: Option<String>,
    /// Leave the workers at their version
    #[arg(long)]
    control_plane_only: bool,
    /// Have the server judge the change, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Upgrades a cluster.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    args.reach.run(plugins, async |management| {
        let cluster: Cluster = management.find(&args.cluster).await?;
        owns_its_parts(&cluster)?;
        if cluster.spec.paused == Some(true) {
            talk(&format!(
                "cluster {0} is paused: nothing happens before `capstan resume {0}`",
                args.cluster
            ));
        }
        let control_plane = ControlPlane::of(&management, &cluster).await?;
        let workers = match args.control_plane_only {
            true => Vec::new(),
            false => deployments(&management, &args.cluster).await?,
        };
        let changes = changes(&control_plane, &workers, args)?;
        let mut deeds = Deeds::new(args.output);
        if changes.is_empty() {
            deeds.remark(&format!("cluster {} has version {} already", args.cluster, args.to))?;
        }
        make(&management, &changes, args.dry_run, &mut deeds).await?;
        args.wait.follow(&management, &args.cluster, Goal::Ready, args.dry_run, &deeds).await
    })
}

fn changes(control_plane: &ControlPlane, workers: &[MachineDeployment], args: &Args) -> Result<Vec<Change>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let to = parsed(&args.to).context("--to")?;
    let wanted = format!("v{to}");
    let now = text(&control_plane.object["spec"]["version"]);
    let title = format!("{}/{}", control_plane.kind.kind, control_plane.name());
    step(&parsed(&now).with_context(|| format!("spec.version of {title}"))?, &to)
        .with_context(|| format!("{title} cannot go from {now} to {wanted}"))?;
    let mut changes = Vec::new();
    let template = args.control_plane_template.as_deref();
    if now != wanted || template.is_some() {
        let mut spec = json!({"version": wanted});
        if let Some(name) = template {
            spec["machineTemplate"] = json!({"spec": {"infrastructureRef": {"name": name}}});
        }
        changes.push(control_plane.change(words(&now, &wanted, template), spec));
    }
    for deployment in workers {
        let name = &deployment.metadata.name;
        let now = deployment.spec.template.spec.version.clone();
        if now.is_empty() {
            talk(&format!("machinedeployment/{name} names no version and is left as it is"));
            continue;
        }
        let own = parsed(&now)
            .with_context(|| format!("spec.template.spec.version of machinedeployment/{name}"))?;
        behind(&own, &to).with_context(|| format!("machinedeployment/{name} is at {now}"))?;
        let template = args.worker_template.as_deref();
        if now == wanted && template.is_none() {
            continue;
        }
        let mut spec = json!({"version": wanted});
        if let Some(name) = template {
            spec["infrastructureRef"] = json!({"name": name});
        }
        changes.push(Change {
            kind: KindName::of::<MachineDeployment>(),
            name: name.clone(),
            what: words(&now, &wanted, template),
            patch: json!({"spec": {"template": {"spec": spec}}}),
        });
    }
    Ok(changes)
}

fn words(from: &str, to: &str, template: Option<&str>) -> String {
    let template = template.map(|name| format!(", machines from template {name}")).unwrap_or_default();
    format!("version {from} → {to}{template}")
}

fn parsed(text: &str) -> Result<Version> {
    // Without a patch release it would be anybody's guess which one is meant.
    let whole = text.split(['-', '+']).next().unwrap_or_default().matches('.').count() == 2;
    match tolerant(text).filter(|_| whole) {
        Some(version) => Ok(version),
        None => bail!("{text:?} is no version of Kubernetes: write it like v1.36.0"),
    }
}

/// Whether a control plane can go there in one step.
fn step(from: &Version, to: &Version) -> Result<()> {
    if to < from {
        bail!("Kubernetes cannot be downgraded: restore a backup of etcd into a new cluster instead");
    }
    if (to.major, to.minor) > (from.major, from.minor + 1) {
        bail!(
            "a control plane passes through every minor version: upgrade to v{}.{} first",
            from.major,
            from.minor + 1
        );
    }
    Ok(())
}

/// Whether workers can stand behind, or beside, a control plane of that version.
pub fn behind(own: &Version, to: &Version) -> Result<()> {
    if own > to {
        bail!("it is newer than v{to}: workers are never newer than their control plane");
    }
    if own.minor + KUBELET_SKEW < to.minor {
        bail!(
            "kubelets work with API servers up to {KUBELET_SKEW} minor versions newer: upgrade it to at least v{}.{} first",
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
    fn the_control_plane_goes_first_and_only_where_it_can() {
        for (control_plane, workers, line, said) in [
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
            ("v1.36.0", &["v1.37.0"][..], &["--to", "v1.36.1"][..], Err("never newer")),
            ("v1.35.0", &[][..], &["--to", "latest"][..], Err("write it like v1.36.0")),
            ("v1.35.0", &[][..], &["--to", "v1.36"][..], Err("write it like v1.36.0")),
        ] {
            match (decided(control_plane, workers, line), said) {
                (Ok(changes), Ok(said)) => assert_eq!(changes.join("; "), said),
                (Err(error), Err(said)) => assert!(format!("{error:#}").contains(said), "{error:#}"),
                (changes, said) => panic!("{control_plane} {workers:?} {line:?}: {changes:?}, not {said:?}"),
            }
        }
    }
}
