//! One fleet on one plane: created, at rest, deleted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::follow::{Follower, News};
use super::planes::{Kind, Plane};
use crate::api::Api;
use crate::bed::cluster::is_there;
use crate::bed::process::Usage;
use crate::discovery::Discovery;
use crate::text::human_duration;

const NAMESPACE: &str = "fleet";
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
/// Requests that whoever creates and deletes the fleet has under way at a time.
const AT_A_TIME: usize = 16;
/// A plane is at rest when it has written nothing for this long.
const QUIET: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(5);

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub idle: Duration,
    pub patience: Duration,
}

/// What one run gave. Counts are of the time from the first manifest to the last cluster that is Available.
#[derive(Debug)]
pub struct Outcome {
    pub kind: Kind,
    pub clusters: usize,
    pub available: Duration,
    pub cpu: Duration,
    /// Memory of all processes before the first cluster.
    pub resident_before: u64,
    /// The most that each process ever had, added up.
    pub peak: u64,
    pub resident_idle: u64,
    pub reconciles: Vec<(String, u64)>,
    pub writes: u64,
    /// From the last cluster that is Available to the plane at rest.
    pub settled: Duration,
    pub idle: Idle,
    pub deleted: Duration,
    /// Processor time of all processes until the end.
    pub cpu_of_all: Duration,
    pub processes: Vec<(String, Usage)>,
    /// Processor time of whoever made and watched the fleet.
    pub cpu_of_load: Duration,
    /// Share of the machine that programs other than the run's own used.
    pub others: f64,
}

/// A plane with nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub time: Duration,
    pub cpu: Duration,
    /// Writes without those to Leases.
    pub writes: u64,
    pub lease_writes: u64,
    pub reconciles: u64,
}

/// Makes a fleet, lets it rest, deletes it.
pub async fn fleet(mut plane: Plane, clusters: usize, times: Times) -> Result<Outcome> {
    let api = plane.api.clone();
    let discovery = Discovery::read(&api).await?;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await?.success()?;
    let (once, each) = plane.kind.manifests()?;
    for object in &once {
        discovery.create(&api, object, Some(NAMESPACE)).await?;
    }
    let names: BTreeSet<String> = (0..clusters).map(|number| format!("fleet-{number:05}")).collect();
    let at_rest = quiet(&mut plane, times.patience).await?;
    let (before, first_revision) = (totals(&plane.usage()?), at_rest.revision);
    let reconciled_before = plane.reconciles().await?;
    let events = Follower::new(&api, CLUSTERS).await?;

    let begun = Instant::now();
    let made = wait(events, &mut plane, &names, "Available", times.patience, |kind, cluster| {
        kind != "DELETED" && is_there(cluster, 1, 1)
    });
    let created = create(&api, &discovery, &each, &names);
    tokio::try_join!(created, made).context("the fleet was not made")?;
    let available = begun.elapsed();
    let after = totals(&plane.usage()?);
    let rest = quiet(&mut plane, times.patience).await?;
    let reconciles = difference(&plane.reconciles().await?, &reconciled_before);
    println!("  at rest after another {}", human_duration(rest.since));
    let resident_idle = totals(&plane.usage()?).resident;
    let idle = idle(&mut plane, times.idle).await?;

    let events = Follower::new(&api, CLUSTERS).await?;
    let begun = Instant::now();
    let gone = wait(events, &mut plane, &names, "deleted", times.patience, |kind, _| kind == "DELETED");
    tokio::try_join!(delete(&api, &names), gone).context("the fleet was not deleted")?;
    let deleted = begun.elapsed();
    quiet(&mut plane, times.patience).await?;
    let stays = |kind: &str, name: &str| {
        once.iter().any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    };
    let left = discovery.left_in(&api, NAMESPACE, stays).await?;
    ensure!(left.is_empty(), "{} objects outlive the fleet, {} among them", left.len(), left[0]);
    let processes = plane.usage()?;
    let end = totals(&processes);
    Ok(Outcome {
        kind: plane.kind,
        clusters,
        available,
        cpu: after.cpu.saturating_sub(before.cpu),
        resident_before: before.resident,
        peak: end.peak,
        resident_idle,
        reconciles,
        writes: rest.revision - first_revision,
        settled: rest.since,
        idle,
        deleted,
        cpu_of_all: end.cpu,
        processes,
        cpu_of_load: Duration::ZERO,
        others: 0.0,
    })
}

/// All processes together.
fn totals(processes: &[(String, Usage)]) -> Usage {
    processes.iter().fold(Usage::default(), |sum, (_, one)| Usage {
        resident: sum.resident + one.resident,
        peak: sum.peak + one.peak,
        cpu: sum.cpu + one.cpu,
    })
}

fn difference(now: &[(String, u64)], then: &[(String, u64)]) -> Vec<(String, u64)> {
    let earlier = |name: &str| then.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
    now.iter().map(|(name, count)| (name.clone(), count.saturating_sub(earlier(name)))).collect()
}

/// Creates the objects of every cluster.
async fn create(
    api: &Api,
    discovery: &Discovery,
    manifests: &[Value],
    names: &BTreeSet<String>,
) -> Result<()> {
    let text = serde_json::to_string(manifests)?;
    let all = names.iter().map(|name| {
        // Every object of the example is called by its cluster's name, alone or with an ending.
        let text = text.replace("\"quick\"", &format!("{name:?}"));
        let text = text.replace("\"quick-", &format!("\"{name}-"));
        async move {
            for object in serde_json::from_str::<Vec<Value>>(&text)? {
                discovery.create(api, &object, Some(NAMESPACE)).await?;
            }
            anyhow::Ok(())
        }
    });
    stream::iter(all).buffer_unordered(AT_A_TIME).try_collect().await
}

async fn delete(api: &Api, names: &BTreeSet<String>) -> Result<()> {
    let all = names
        .iter()
        .map(|name| async move { api.delete(&format!("{CLUSTERS}/{name}")).await?.success().map(drop) });
    stream::iter(all).buffer_unordered(AT_A_TIME).try_collect().await
}

/// Waits until an event has said of every cluster what is waited for.
async fn wait(
    mut events: Follower,
    plane: &mut Plane,
    names: &BTreeSet<String>,
    what: &str,
    patience: Duration,
    is_so: impl Fn(&str, &Value) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    let mut waiting = names.clone();
    let mut tell = tokio::time::interval(TELL_EVERY);
    tell.tick().await;
    let mut last = Value::Null;
    while !waiting.is_empty() {
        tokio::select! {
            news = events.next() => match news? {
                News::Changed { kind, object: cluster } => {
                    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
                    if is_so(&kind, &cluster) {
                        waiting.remove(name);
                    } else if waiting.contains(name) {
                        last = cluster;
                    }
                }
                News::Everything(clusters) => waiting.retain(|name| !match clusters.get(name) {
                    Some(cluster) => is_so("MODIFIED", cluster),
                    None => is_so("DELETED", &Value::Null),
                }),
            },
            _ = tell.tick() => {
                plane.check()?;
                let (all, done, time) = (names.len(), names.len() - waiting.len(), begun.elapsed());
                let left = match done {
                    0 => String::new(),
                    _ => format!(", about {} to go", human_duration(time * waiting.len() as u32 / done as u32)),
                };
                println!("  {done} of {all} {what} after {}{left}", human_duration(time));
                if time > patience {
                    bail!(
                        "{} of {all} clusters are not {what} within {patience:?}; {} says {}",
                        waiting.len(), last["metadata"]["name"], last["status"]["conditions"]
                    );
                }
            }
        }
    }
    println!("  {} {what} in {}", names.len(), human_duration(begun.elapsed()));
    Ok(())
}

/// A plane that has come to rest.
struct Rest {
    revision: u64,
    /// How long that took, without the time in which nothing happened.
    since: Duration,
}

/// Waits until nothing but Leases is written any more.
async fn quiet(plane: &mut Plane, patience: Duration) -> Result<Rest> {
    let begun = Instant::now();
    let mut leases = Follower::new(&plane.api, LEASES).await?;
    let (mut revision, mut last, mut lease_writes) = (plane.revision().await?, Instant::now(), 0);
    let mut look = tokio::time::interval(Duration::from_millis(500));
    while last.elapsed() < QUIET {
        tokio::select! {
            news = leases.next() => lease_writes += u64::from(matches!(news?, News::Changed { .. })),
            _ = look.tick() => {
                plane.check()?;
                let now = plane.revision().await?;
                // An event may come a moment after the revision that it is about: it is then made up for next time.
                if now > revision + lease_writes {
                    last = Instant::now();
                }
                (revision, lease_writes) = (now.max(revision), 0);
                ensure!(begun.elapsed() < patience, "the plane still writes after {patience:?}");
            }
        }
    }
    Ok(Rest { revision, since: last.duration_since(begun) })
}

/// What a plane at rest does.
async fn idle(plane: &mut Plane, time: Duration) -> Result<Idle> {
    println!("  watching it rest for {}", human_duration(time));
    let mut leases = Follower::new(&plane.api, LEASES).await?;
    let reconciled = plane.reconciles().await?;
    let (revision, cpu, begun) = (plane.revision().await?, totals(&plane.usage()?).cpu, Instant::now());
    let mut lease_writes = 0;
    let end = tokio::time::sleep(time);
    tokio::pin!(end);
    loop {
        tokio::select! {
            news = leases.next() => lease_writes += u64::from(matches!(news?, News::Changed { .. })),
            () = &mut end => break,
        }
    }
    plane.check()?;
    let cpu = totals(&plane.usage()?).cpu.saturating_sub(cpu);
    let writes = (plane.revision().await? - revision).saturating_sub(lease_writes);
    let reconciles = difference(&plane.reconciles().await?, &reconciled).iter().map(|(_, count)| count).sum();
    Ok(Idle { time: begun.elapsed(), cpu, writes, lease_writes, reconciles })
}
