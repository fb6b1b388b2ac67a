//! `capstan doctor`: whether a management cluster and the machine it runs on are in order, and what to do if not.

use std::path::Path;

use anyhow::Result;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::ListOptions;
use capstan_object::Object;
use capstan_provider_kit::{Finding, Severity};
use capstan_view::{Part, Standing};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::exit::Exit;
use crate::kinds::known;
use crate::output::{How, OutputArgs, Show};
use crate::plugins::Plugins;
use crate::reach::{ADMIN, DATA_DIR, Management, Reach};

/// Certificates of machines are renewed by replacing the machines, which takes planning.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Arguments of `capstan doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Findings(Vec<Finding>);

impl Show for Findings {
    fn text(&self, _: &How) -> String {
        let line = |finding: &Finding| {
            let mark = match finding.severity {
                Severity::Fine => "ok   ",
                Severity::Warning => "warn ",
                Severity::Bad => "bad  ",
            };
            let mend = if finding.mend.is_empty() {
                String::new()
            } else {
                format!("\n       mend: {}", finding.mend)
            };
            format!("{mark}  {}{mend}\n", finding.what)
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

/// Looks at everything and says what it found; fails if something is bad.
pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let mut findings = Vec::new();
    let dir = args.reach.data_dir.clone().unwrap_or_else(|| DATA_DIR.into());
    if dir.is_dir() {
        findings.extend(data_directory(&dir));
    }
    match args.reach.run(plugins, async |management| Ok(server(&management).await)) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::bad(
            format!("no management cluster answers: {error:#}"),
            "start `capstan server`, or give --kubeconfig",
        )),
    }
    let bad = findings.iter().any(|finding| finding.severity == Severity::Bad);
    args.output.show(&Findings(findings))?;
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

/// What a data directory on this machine looks like.
fn data_directory(dir: &Path) -> Vec<Finding> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut findings = Vec::new();
    let shown = dir.display();
    for secret in [dir.join("pki"), dir.join(ADMIN)] {
        let Ok(metadata) = secret.metadata() else { continue };
        let open = metadata.permissions().mode() & 0o077;
        findings.push(match open {
            0 => Finding::fine(format!("{} is for its owner alone", secret.display())),
            _ => Finding::bad(
                format!(
                    "{} can be read by others (mode {:o})",
                    secret.display(),
                    metadata.permissions().mode() & 0o777
                ),
                format!("chmod go= {}", secret.display()),
            ),
        });
    }
    findings.push(Finding::warning(
        format!("Secrets in {shown} are stored in clear text"),
        "keep the directory on an encrypted disk, and backups as safe as the server",
    ));
    findings
}

async fn server(management: &Management) -> Vec<Finding> {
    let Management { client, authority, plugins, .. } = management;
    let unreadable = |what: &str, error: &dyn std::fmt::Display| {
        Finding::bad(format!("{what} cannot be read: {error}"), "use the kubeconfig of an administrator")
    };
    let mut findings = Vec::new();
    match client.document("/readyz").await {
        Ok(_) => findings.push(Finding::fine(format!("the server at {authority} is ready"))),
        Err(error) => findings.push(Finding::bad(
            format!("the server at {authority} is not ready: {error}"),
            "read its log; a full disk stops writes until there is room",
        )),
    }
    match known(client).await {
        Ok(kinds) if kinds.is_empty() => findings.push(Finding::bad(
            "the server has no kinds of Cluster API",
            "start `capstan server` without --api-only, or `capstan manager --install-crds`",
        )),
        Ok(kinds) => {
            let machines = kinds.iter().filter(|it| {
                it.kind.group.starts_with("infrastructure.") && it.kind.kind.ends_with("MachineTemplate")
            });
            let providers: Vec<&str> =
                machines.filter_map(|it| it.kind.kind.strip_suffix("MachineTemplate")).collect();
            findings.push(match providers.as_slice() {
                [] => Finding::bad(
                    "there is no infrastructure provider",
                    "start the server with one: see docs/server.md",
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

fn clusters_found(clusters: &[Cluster]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut well = 0;
    for cluster in clusters {
        let name = cluster.metadata().key();
        let part = capstan_object::to_value(cluster).ok().and_then(|value| Part::of(&value));
        let ask = format!("capstan why {} -n {}", name.name, name.namespace);
        match part.map(|part| part.standing()) {
            Some(Standing::Failing) => findings.push(Finding::bad(format!("cluster {name} fails"), ask)),
            Some(Standing::Waiting | Standing::Going) => {
                findings.push(Finding::warning(format!("cluster {name} is not as wanted yet"), ask));
            }
            Some(Standing::Paused) => {
                let mend = format!("capstan resume {} -n {}", name.name, name.namespace);
                findings
                    .push(Finding::warning(format!("cluster {name} is paused and not looked after"), mend));
            }
            _ => well += 1,
        }
    }
    findings.push(Finding::fine(format!("{well} of {} clusters are as wanted", clusters.len())));
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
            let mend = "replace it: set spec.rollout.before.certificatesExpiryDays of its control plane, or roll it out";
            findings.push(if left.is_negative() {
                Finding::bad(what, mend)
            } else {
                Finding::warning(what, mend)
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
    fn clusters_are_judged_by_how_they_stand() {
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
        let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            said,
            [
                "cluster n/slow is not as wanted yet",
                "cluster n/off is paused and not looked after",
                "1 of 3 clusters are as wanted"
            ]
        );
        assert_eq!(found[0].mend, "capstan why slow -n n");
    }

    #[test]
    fn certificates_that_end_soon_are_named() {
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
    fn keys_that_others_can_read_are_bad() {
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
