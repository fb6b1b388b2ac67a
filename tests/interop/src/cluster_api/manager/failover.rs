//! `cargo xtask failover`: two replicas of `capstan manager` on kube-apiserver. The leader is killed in the middle of a
//! rollout, again and again: no machine is made twice, no step is lost, and the time of each hand-over is printed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::tally::Tally;
use super::{Bed, MACHINES, NAMESPACE, holder, manifests};
use crate::api::Api;
use crate::bed::cluster::Cluster;
use crate::bed::manager::Manager;
use crate::bed::site::Site;
use crate::bed::{Controllers, Server, Workdir, capstan, wait};
use crate::self_checks::Part;
use crate::text::Lap;

const CONTROL_PLANE: i64 = 3;
const WORKERS: i64 = 3;
/// Longest time until another manager holds the Lease: its duration, and some retries.
const HAND_OVER: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// How often the leader is killed, over all parts
    #[arg(long, default_value_t = 4)]
    kills: u32,
    /// Only this part of the kills, for example `2/4` [default: all]
    #[arg(long, default_value = "1/1", value_parser = Part::parse)]
    part: Part,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("failover")?;
    let mut lap = Lap::start();
    let mut server = Server::kube(&workdir.folder("server")?, Controllers::Plane).await?;
    let api = server.api()?;
    let folder = workdir.folder("managers")?;
    let site = Site::start(&folder, &binary).await?;
    let bed = Bed { folder, binary, kubeconfig: server.kubeconfig.clone(), site };
    // The first is the leader: the others wait for its Lease.
    let mut managers = VecDeque::new();
    for number in 0..2 {
        managers.push_back(bed.start(&format!("manager-{number}"), &["--install-crds"]).await?);
    }
    let mut healthy = || server.check();
    let cluster = Cluster::prepare(&api, NAMESPACE, manifests()?).await?;
    let machines = Tally::start(&api, MACHINES).await?;
    cluster.create().await?;
    cluster.scale(CONTROL_PLANE, WORKERS).await?;
    cluster.wait_available(CONTROL_PLANE, WORKERS, &mut healthy).await?;
    lap.end("two managers, 3+3 available");

    let mut times = Vec::new();
    for kill in options.part.take(0..options.kills) {
        let rollout = Rollout::of(kill);
        let (made, leader) = (machines.count()?, holder(&api).await?.context("no leader")?);
        rollout.start(&cluster).await?;
        // Kills are spread over the rollout.
        let reached = made + kill as usize / 2 % 3;
        wait::until("the rollout is under way", HAND_OVER, || async {
            Ok((machines.count()? >= reached).then_some(()))
        })
        .await?;
        let took = kill_leader(&bed, &api, &mut managers, &leader, kill).await?;
        let wanted = rollout.machines();
        wait::until("the rollout continues", Duration::from_secs(300), || async {
            Ok((machines.count()? >= made + wanted).then_some(()))
        })
        .await?;
        settled(&cluster, &rollout, kill, &mut healthy).await?;
        let new = machines.count()? - made;
        ensure!(new == wanted, "kill {kill}, {rollout:?}: {new} machines were made, not {wanted}");
        let running = bed.site.machines().await?.len();
        let all = usize::try_from(CONTROL_PLANE + WORKERS)?;
        ensure!(running == all, "kill {kill}, {rollout:?}: {running} machines run, not {all}");
        println!(
            "  kill {}: {rollout:?} after {} new machines, hand-over in {took:.1?}",
            kill + 1,
            reached - made
        );
        times.push(took);
    }
    times.sort_unstable();
    if let (Some(least), Some(most)) = (times.first(), times.last()) {
        println!("hand-over: {least:.1?} to {most:.1?}, median {:.1?}", times[times.len() / 2]);
    }
    lap.end("the leader was killed in the middle of rollouts");
    cluster.delete(&mut healthy).await?;
    let left = bed.site.machines().await?;
    ensure!(left.is_empty(), "machines are left after deletion: {left:?}");
    lap.end("deleted, nothing left");
    workdir.passed();
    Ok(())
}

/// Kills the leader, waits for the next and starts a replacement. Returns the time of the hand-over.
async fn kill_leader(
    bed: &Bed,
    api: &Api,
    managers: &mut VecDeque<Manager>,
    leader: &str,
    kill: u32,
) -> Result<Duration> {
    let mut first = managers.pop_front().context("no manager")?;
    let begin = Instant::now();
    first.kill()?;
    wait::until("another leader", HAND_OVER, || async {
        Ok(holder(api).await?.filter(|holder| holder != leader))
    })
    .await?;
    let took = begin.elapsed();
    managers.push_back(bed.start(&format!("manager-{}", kill + 2), &[]).await?);
    Ok(took)
}

/// Waits until the rollout of this kill is done and the old machines are gone.
async fn settled(
    cluster: &Cluster<'_>,
    rollout: &Rollout,
    kill: u32,
    healthy: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    wait::until("the rollout is done", Duration::from_secs(300), || {
        let checked = healthy();
        async move {
            checked?;
            let status = cluster.get().await?["status"].take();
            let (part, total) = match rollout {
                Rollout::ControlPlane => (&status["controlPlane"], CONTROL_PLANE),
                Rollout::Workers => (&status["workers"], WORKERS),
            };
            let done =
                ["upToDateReplicas", "availableReplicas", "replicas"].iter().all(|it| part[*it] == total);
            Ok(done.then_some(()))
        }
    })
    .await
    .with_context(|| format!("kill {kill}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rollout {
    ControlPlane,
    Workers,
}

impl Rollout {
    fn of(kill: u32) -> Self {
        if kill.is_multiple_of(2) { Self::Workers } else { Self::ControlPlane }
    }

    /// Machines that it makes.
    fn machines(self) -> usize {
        match self {
            Self::ControlPlane => CONTROL_PLANE as usize,
            Self::Workers => WORKERS as usize,
        }
    }

    /// Machines older than now are to be replaced. A change of the template's labels or annotations would be made in place.
    async fn start(self, cluster: &Cluster<'_>) -> Result<()> {
        // Whole seconds, as the API writes times: a machine of this second is not older.
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
        let due = json!({"spec": {"rollout": {"after": now.to_string()}}});
        match self {
            Self::ControlPlane => cluster.change(due, json!({})).await,
            Self::Workers => cluster.change(json!({}), due).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_alternate_between_control_plane_and_workers() {
        let all: Vec<Rollout> = (0..4).map(Rollout::of).collect();
        assert_eq!(all, [Rollout::Workers, Rollout::ControlPlane, Rollout::Workers, Rollout::ControlPlane]);
    }
}
