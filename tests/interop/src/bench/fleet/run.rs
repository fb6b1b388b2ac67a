//! One fleet on one plane: created, idle, deleted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::planes::{Kind, Plane};
use crate::api::Api;
use crate::bed::cluster::is_there;
use crate::bed::process::Usage;
use crate::bench::follow::{Follower, FollowerEvent};
use crate::discovery::Discovery;
use crate::text::human_duration;

const NAMESPACE: &str = "fleet";
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
/// Concurrent requests of the load generator.
const AT_A_TIME: usize = 16;
/// A plane is idle when it has written nothing for this long.
const QUIET: Duration = Duration::from_secs(5);
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub idle: Duration,
    pub timeout: Duration,
}

/// Result of one run. Counters cover the time from the first manifest until the last cluster is Available.
#[derive(Debug)]
pub struct Outcome {
    pub kind: Kind,
    /// Of an earlier build of ours, which this one is compared with.
    pub is_baseline: bool,
    pub clusters: usize,
    pub available: Duration,
    pub cpu: Duration,
    /// Memory of all processes before the first cluster.
    pub resident_before: u64,
    /// Sum of the peak memory of each process.
    pub peak: u64,
    pub resident_idle: u64,
    pub reconciles: Vec<(String, u64)>,
    pub writes: u64,
    /// From the last Available cluster until the plane is idle.
    pub settled: Duration,
    pub idle: Idle,
    pub deleted: Duration,
    /// CPU time of all processes over the whole run.
    pub cpu_of_all: Duration,
    pub processes: Vec<(String, Usage)>,
    /// CPU time of the load generator.
    pub cpu_of_load: Duration,
    /// Share of the machine that other programs used.
    pub others: f64,
}

/// Measurements of an idle plane.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub time: Duration,
    pub cpu: Duration,
    /// Writes, not counting Leases.
    pub writes: u64,
    pub lease_writes: u64,
    pub reconciles: u64,
}

/// Creates a fleet, waits until it is idle, deletes it.
pub async fn fleet(mut plane: Plane, clusters: usize, times: Times) -> Result<Outcome> {
    let api = plane.api.clone();
    let discovery = Discovery::read(&api).await?;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await?.success()?;
    let (once, each) = plane.kind.manifests()?;
    for object in &once {
        discovery.create(&api, object, Some(NAMESPACE)).await?;
    }
    let names: BTreeSet<String> = (0..clusters).map(|number| format!("fleet-{number:05}")).collect();
    let at_rest = quiet(&mut plane, times.timeout).await?;
    let (before, first_revision) = (totals(&plane.usage()?), at_rest.revision);
    let reconciled_before = plane.reconciles().await?;
    let events = Follower::new(&api, CLUSTERS).await?;

    let begun = Instant::now();
    let made = wait(events, &mut plane, &names, "Available", times.timeout, |kind, cluster| {
        kind != "DELETED" && is_there(cluster, 1, 1)
    });
    let created = create(&api, &discovery, &each, &names);
    tokio::try_join!(created, made).context("the fleet was not created")?;
    let available = begun.elapsed();
    let after = totals(&plane.usage()?);
    let rest = quiet(&mut plane, times.timeout).await?;
    let reconciles = difference(&plane.reconciles().await?, &reconciled_before);
    println!("  idle after another {}", human_duration(rest.since));
    let resident_idle = totals(&plane.usage()?).resident;
    let idle = idle(&mut plane, times.idle).await?;

    let events = Follower::new(&api, CLUSTERS).await?;
    let begun = Instant::now();
    let gone = wait(events, &mut plane, &names, "deleted", times.timeout, |kind, _| kind == "DELETED");
    tokio::try_join!(delete(&api, &names), gone).context("the fleet was not deleted")?;
    let deleted = begun.elapsed();
    quiet(&mut plane, times.timeout).await?;
    let stays = |kind: &str, name: &str| {
        once.iter().any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    };
    let left = discovery.left_in(&api, NAMESPACE, stays).await?;
    ensure!(
        left.is_empty(),
        "{} objects are left after the fleet was deleted, such as {}",
        left.len(),
        left[0]
    );
    let processes = plane.usage()?;
    let end = totals(&processes);
    Ok(Outcome {
        kind: plane.kind,
        is_baseline: false,
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

/// Sum over all processes.
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
        // Every object of the example has the cluster's name, alone or as a prefix.
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

/// Waits until a condition holds for every cluster.
async fn wait(
    mut events: Follower,
    plane: &mut Plane,
    names: &BTreeSet<String>,
    what: &str,
    timeout: Duration,
    is_so: impl Fn(&str, &Value) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    let mut waiting = names.clone();
    let mut report = tokio::time::interval(REPORT_INTERVAL);
    report.tick().await;
    let mut last = Value::Null;
    while !waiting.is_empty() {
        tokio::select! {
            news = events.next() => match news? {
                FollowerEvent::Changed { kind, object: cluster } => {
                    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
                    if is_so(&kind, &cluster) {
                        waiting.remove(name);
                    } else if waiting.contains(name) {
                        last = cluster;
                    }
                }
                FollowerEvent::Everything(clusters) => waiting.retain(|name| !match clusters.get(name) {
                    Some(cluster) => is_so("MODIFIED", cluster),
                    None => is_so("DELETED", &Value::Null),
                }),
            },
            _ = report.tick() => {
                plane.check()?;
                let (all, done, time) = (names.len(), names.len() - waiting.len(), begun.elapsed());
                let left = match done {
                    0 => String::new(),
                    _ => format!(", about {} to go", human_duration(time * waiting.len() as u32 / done as u32)),
                };
                println!("  {done} of {all} {what} after {}{left}", human_duration(time));
                if time > timeout {
                    bail!(
                        "{} of {all} clusters are not {what} within {timeout:?}; {} says {}",
                        waiting.len(), last["metadata"]["name"], last["status"]["conditions"]
                    );
                }
            }
        }
    }
    println!("  {} {what} in {}", names.len(), human_duration(begun.elapsed()));
    Ok(())
}

struct Rest {
    revision: u64,
    /// Time until the plane was idle, without the idle interval itself.
    since: Duration,
}

/// Waits until nothing but Leases is written.
async fn quiet(plane: &mut Plane, timeout: Duration) -> Result<Rest> {
    let begun = Instant::now();
    let mut leases = Follower::new(&plane.api, LEASES).await?;
    let (mut revision, mut last, mut lease_writes) = (plane.revision().await?, Instant::now(), 0);
    let mut look = tokio::time::interval(Duration::from_millis(500));
    while last.elapsed() < QUIET {
        tokio::select! {
            news = leases.next() => lease_writes += u64::from(matches!(news?, FollowerEvent::Changed { .. })),
            _ = look.tick() => {
                plane.check()?;
                let now = plane.revision().await?;
                // A Lease event can arrive after the revision it belongs to. It is then counted in the next interval.
                if now > revision + lease_writes {
                    last = Instant::now();
                }
                (revision, lease_writes) = (now.max(revision), 0);
                ensure!(begun.elapsed() < timeout, "the plane is not idle after {timeout:?}");
            }
        }
    }
    Ok(Rest { revision, since: last.duration_since(begun) })
}

/// Measures an idle plane.
async fn idle(plane: &mut Plane, time: Duration) -> Result<Idle> {
    println!("  measuring the idle plane for {}", human_duration(time));
    let mut leases = Follower::new(&plane.api, LEASES).await?;
    let reconciled = plane.reconciles().await?;
    let (revision, cpu, begun) = (plane.revision().await?, totals(&plane.usage()?).cpu, Instant::now());
    let mut lease_writes = 0;
    let end = tokio::time::sleep(time);
    tokio::pin!(end);
    loop {
        tokio::select! {
            news = leases.next() => lease_writes += u64::from(matches!(news?, FollowerEvent::Changed { .. })),
            () = &mut end => break,
        }
    }
    plane.check()?;
    let cpu = totals(&plane.usage()?).cpu.saturating_sub(cpu);
    let writes = (plane.revision().await? - revision).saturating_sub(lease_writes);
    let reconciles = difference(&plane.reconciles().await?, &reconciled).iter().map(|(_, count)| count).sum();
    Ok(Idle { time: begun.elapsed(), cpu, writes, lease_writes, reconciles })
}
