//! `capstan doctor`: checks of a management cluster and of its data directory.

use std::path::Path;

use anyhow::Result;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{ApiError, Client, ListOptions, NotSettled, catalogue, code_in};
use capstan_object::{Object, ObjectMeta};
use capstan_provider_kit::{Finding, Severity};
use capstan_view::{Part, State};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::codes;
use crate::connection::{ADMIN, ConnectionArgs, DATA_DIR, Management};
use crate::exit::Exit;
use crate::kinds::{ServedKind, list, served_kinds};
use crate::output::{OutputArgs, Show, TextOptions};
use crate::plugins::Plugins;

/// Machines get new certificates by a rollout, which takes planning.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The server stops writing when its disk is full.
const DISK_NEARLY_FULL: u64 = 90;

/// Arguments of `capstan doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Findings(Vec<Finding>);

impl Show for Findings {
    fn text(&self, _: &TextOptions) -> String {
        let line = |finding: &Finding| {
            let mark = match finding.severity {
                Severity::Fine => "ok   ",
                Severity::Warning => "warn ",
                Severity::Bad => "bad  ",
            };
            let fix = if finding.mend.is_empty() {
                String::new()
            } else {
                format!("\n       fix: {}", finding.mend)
            };
            format!("{mark}  {}{fix}\n", finding.what)
        };
        self.0.iter().map(line).collect()
    }

    fn names(&self) -> Vec<String> {
        self.0
            .iter()
            .filter(|it| it.severity != Severity::Fine)
            .map(|it| format!("finding/{}", it.what))
            .collect()
    }
}

/// Fails if a finding is bad.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let mut findings = Vec::new();
    let dir = args.connection.data_dir.clone().unwrap_or_else(|| DATA_DIR.into());
    if dir.is_dir() {
        findings.extend(data_directory(&dir));
    }
    match args.connection.run(plugins, async |management| Ok(server(&management).await)) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::bad(
            format!("cannot reach a management cluster: {error:#}"),
            "start `capstan server`, or use --kubeconfig",
        )),
    }
    let bad = findings.iter().any(|finding| finding.severity == Severity::Bad);
    args.output.show(&Findings(findings))?;
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

fn data_directory(dir: &Path) -> Vec<Finding> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut findings = Vec::new();
    for secret in [dir.join("pki"), dir.join(ADMIN)] {
        let Ok(metadata) = secret.metadata() else { continue };
        let open = metadata.permissions().mode() & 0o077;
        findings.push(match open {
            0 => Finding::fine(format!("{} is readable by its owner only", secret.display())),
            _ => Finding::bad(
                format!(
                    "{} is readable by others (mode {:o})",
                    secret.display(),
                    metadata.permissions().mode() & 0o777
                ),
                format!("chmod go= {}", secret.display()),
            ),
        });
    }
    if let Ok(stat) = rustix::fs::statvfs(dir) {
        findings.extend(disk(dir, stat.f_blocks, stat.f_bavail));
    }
    findings.extend(crate::encryption::findings(dir));
    findings
}

/// A warning if the disk is nearly full; sizes are in blocks.
fn disk(dir: &Path, all: u64, available: u64) -> Option<Finding> {
    let used = all.saturating_sub(available).saturating_mul(100).checked_div(all)?;
    (used >= DISK_NEARLY_FULL).then(|| {
        Finding::warning(
            format!(
                "the disk of {} is {used} % full; the server stops writing when it is full",
                dir.display()
            ),
            "free space on it, or move the data directory to a larger disk",
        )
    })
}

async fn server(management: &Management) -> Vec<Finding> {
    let Management { client, authority, plugins, .. } = management;
    let unreadable = |what: &str, error: &dyn std::fmt::Display| {
        Finding::bad(format!("cannot read {what}: {error}"), "use the kubeconfig of an administrator")
    };
    let mut findings = Vec::new();
    match client.document("/readyz").await {
        Ok(_) => findings.push(Finding::fine(format!("the server at {authority} is ready"))),
        Err(error @ ApiError::Transport(_)) => {
            // Nothing else can be read either.
            findings.push(Finding::bad(
                format!("the server at {authority} does not answer: {:#}", anyhow::Error::from(error)),
                "start `capstan server`, or use --kubeconfig for another one",
            ));
            return findings;
        }
        Err(error) => findings.push(Finding::bad(
            format!("the server at {authority} is not ready: {error}"),
            "read its log; a full disk stops writes until space is free",
        )),
    }
    match served_kinds(client).await {
        Ok(kinds) if kinds.is_empty() => findings.push(Finding::bad(
            "the server has no Cluster API kinds",
            "start `capstan server` without --api-only, or `capstan manager --install-crds`",
        )),
        Ok(kinds) => {
            findings.extend(not_settled(plugins, client, &kinds).await);
            let machines = kinds.iter().filter(|it| {
                it.kind.group.starts_with("infrastructure.") && it.kind.kind.ends_with("MachineTemplate")
            });
            let providers: Vec<&str> =
                machines.filter_map(|it| it.kind.kind.strip_suffix("MachineTemplate")).collect();
            findings.push(match providers.as_slice() {
                [] => Finding::bad(
                    "no infrastructure provider is installed",
                    "start the server with one; see docs/server.md",
                ),
                names => Finding::fine(format!("infrastructure providers: {}", names.join(", "))),
            });
        }
        Err(error) => findings.push(unreadable("the kinds of the server", &error)),
    }
    let all = ListOptions::default();
    match client.list_all::<Cluster>("", &all).await {
        Ok(clusters) => findings.extend(clusters_found(&clusters)),
        Err(error) => findings.push(unreadable("clusters", &error)),
    }
    match client.list_all::<Machine>("", &all).await {
        Ok(machines) => findings.extend(certificates(&machines, Timestamp::now())),
        Err(error) => findings.push(unreadable("machines", &error)),
    }
    for provider in plugins.providers() {
        findings.extend(provider.check(client).await);
    }
    findings
}

/// Objects on which a controller repeats the same change, or keeps failing.
async fn not_settled(plugins: &Plugins, client: &Client, kinds: &[ServedKind]) -> Vec<Finding> {
    let lists = kinds.iter().map(|known| list(client, &known.kind, ""));
    // A kind that cannot be listed is reported with the clusters and machines.
    let objects = join_all(lists).await.into_iter().flatten().flatten();
    objects.flat_map(|object| marks(plugins, &object)).collect()
}

fn marks(plugins: &Plugins, object: &Value) -> Vec<Finding> {
    let Ok(meta) = ObjectMeta::deserialize(&object["metadata"]) else { return Vec::new() };
    let finding = |mark: NotSettled| {
        let code = code_in(&mark.message).and_then(|code| codes::entry(plugins, code));
        Finding::bad(mark.message, code.unwrap_or(catalogue::NOT_SETTLED).0.mend)
    };
    NotSettled::of(&meta).into_iter().map(finding).collect()
}

fn clusters_found(clusters: &[Cluster]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ready = 0;
    for cluster in clusters {
        let name = cluster.metadata().key();
        let part = capstan_object::to_value(cluster).ok().and_then(|value| Part::of(&value));
        let why = format!("capstan why {} -n {}", name.name, name.namespace);
        match part.map(|part| part.state()) {
            Some(State::Failing) => findings.push(Finding::bad(format!("cluster {name} is failing"), why)),
            Some(State::Waiting | State::Deleting) => {
                findings.push(Finding::warning(format!("cluster {name} is not ready"), why));
            }
            Some(State::Paused) => {
                let fix = format!("capstan resume {} -n {}", name.name, name.namespace);
                findings.push(Finding::warning(format!("cluster {name} is paused"), fix));
            }
            _ => ready += 1,
        }
    }
    findings.push(Finding::fine(format!("{ready} of {} clusters are ready", clusters.len())));
    findings
}

fn certificates(machines: &[Machine], now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for machine in machines {
        let Some(expiry) = &machine.status.certificates_expiry_date else { continue };
        let left = expiry.timestamp().duration_since(now);
        if left < EXPIRES_SOON {
            let name = machine.metadata().key();
            let days = left.as_hours() / 24;
            let what = format!("certificates of machine {name} expire in {days} days");
            let fix =
                "set spec.rollout.before.certificatesExpiryDays of its control plane, or start a rollout";
            findings.push(if left.is_negative() {
                Finding::bad(what, fix)
            } else {
                Finding::warning(what, fix)
            });
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fine(format!(
            "no certificate of {} machines expires within 30 days",
            machines.len()
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_reported_by_state() {
        let cluster = |name: &str, condition: &str, status: &str| -> Cluster {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": name, "namespace": "n"},
                "status": {"conditions": [{"type": condition, "status": status, "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
            }))
            .expect("a cluster")
        };
        let found = clusters_found(&[
            cluster("good", "Available", "True"),
            cluster("slow", "Available", "False"),
            cluster("off", "Paused", "True"),
        ]);
        let reported: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            reported,
            ["cluster n/slow is not ready", "cluster n/off is paused", "1 of 3 clusters are ready"]
        );
        assert_eq!(found[0].mend, "capstan why slow -n n");
    }

    #[test]
    fn a_controller_that_does_not_settle_or_keeps_failing_is_bad() {
        let plugins = Plugins::new(crate::providers());
        for (message, mend) in [
            ("E-NOT-SETTLED: controller machine does not settle on Machine n/m", "undo the last change"),
            ("E-OBSERVE: controller machine fails on Machine n/m: no answer", "the message names what"),
            ("E-SIM-SITE: controller machine fails on Machine n/m: no answer", "start `capstan sim site`"),
        ] {
            let mark = format!("2026-01-01T00:00:00Z {message}");
            let found = marks(
                &plugins,
                &serde_json::json!({"metadata": {"name": "m",
                    "annotations": {"capstan.dev/not-settled-machine": mark}}}),
            );
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].severity, found[0].what.as_str()), (Severity::Bad, message));
            assert!(found[0].mend.starts_with(mend), "{}", found[0].mend);
        }
        assert_eq!(marks(&plugins, &serde_json::json!({"metadata": {"name": "m"}})).len(), 0);
    }

    #[test]
    fn certificates_that_expire_soon_are_reported() {
        let machine = |date: &str| -> Machine {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": "m", "namespace": "n"}, "status": {"certificatesExpiryDate": date},
            }))
            .expect("a machine")
        };
        let now = "2026-01-01T00:00:00Z".parse().expect("a moment");
        for (date, health) in [
            ("2027-01-01T00:00:00Z", Severity::Fine),
            ("2026-01-20T00:00:00Z", Severity::Warning),
            ("2025-12-31T00:00:00Z", Severity::Bad),
        ] {
            assert_eq!(certificates(&[machine(date)], now)[0].severity, health, "{date}");
        }
    }

    #[test]
    fn a_nearly_full_disk_is_a_warning() {
        let dir = Path::new("/data");
        for (available, percent) in [(1000, None), (101, None), (100, Some("90 %")), (0, Some("100 %"))] {
            let found = disk(dir, 1000, available);
            assert_eq!(found.is_some(), percent.is_some(), "{available}");
            assert!(found.is_none_or(|it| it.what.contains(percent.unwrap_or_default())), "{available}");
        }
        assert!(disk(dir, 0, 0).is_none(), "a file system without blocks");
    }

    #[test]
    fn keys_that_others_can_read_are_reported() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(ADMIN);
        std::fs::write(&file, "").expect("written");
        for (mode, health) in [(0o600, Severity::Fine), (0o644, Severity::Bad)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(data_directory(dir.path())[0].severity, health, "{mode:o}");
        }
    }
}
