//! `cargo xtask topology-diff`: compares the objects of managed topologies with those of Cluster API's topology controller.
//!
//! ClusterClasses and Clusters that upstream publishes in its modules are created on kube-apiserver with upstream's
//! managers and on `capstan server` with ours, and then changed step by step. No infrastructure provider runs on either
//! side. After each step, when both are at rest, everything that belongs to the topologies must be equal up to generated
//! names. Then a table of invalid requests must be refused alike.

mod admission;
mod normalise;
mod roles;
mod scenario;
mod side;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::api::Reply;
use crate::bed::managers::DRIVERS_OF_TOPOLOGIES;
use crate::bed::ports::free_port;
use crate::bed::{Controllers, Managers, Server, Workdir, capstan};
use crate::differences::{self, Difference, judge};
use crate::peers::Cache;
use crate::text::Lap;
use scenario::{Scenario, Step};
use side::{Objects, Side};

/// How long differences may last: a controller may be about to try again.
const PATIENCE: Duration = Duration::from_secs(12);

#[derive(Debug, Args)]
pub struct Options {
    /// Only scenarios whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Only the table of invalid requests
    #[arg(long)]
    admission: bool,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let cache = Cache::locate()?;
    let mut workdir = Workdir::new("topology-diff")?;
    let mut lap = Lap::start();
    let definitions = source::definitions(&cache)?;
    let mut upstream = Server::kube(&workdir.folder("kube")?, Controllers::Plane).await?;
    let mut managers =
        Managers::start_some(&workdir.folder("managers")?, &upstream.kubeconfig, &DRIVERS_OF_TOPOLOGIES)
            .await?;
    let arguments = ["--controllers=core,bootstrap,control-plane"];
    let mut server =
        Server::capstan_with(&workdir.folder("capstan")?, &binary, free_port()?, &arguments).await?;
    let theirs = Side::new("Cluster API", upstream.api()?, &definitions).await?;
    let ours = Side::new("capstan", server.api()?, &definitions).await?;
    lap.end("both planes are ready");

    let planes = Planes { theirs, ours };
    let mut differences = Vec::new();
    if !options.admission {
        let scenarios = scenario::load(&cache, options.only.as_deref())?;
        planes.prepare(scenarios.iter().map(|scenario| scenario.namespace.as_str())).await?;
        differences = planes.drive(&scenarios).await?;
        lap.end("scenarios");
    }
    if options.admission || options.only.is_none() {
        differences.extend(admission::compare(&planes, &cache).await?);
        lap.end("invalid requests");
    }
    upstream.check()?;
    managers.check()?;
    server.check()?;
    judge("topology-diff", &differences, options.only.is_none() && !options.admission)?;
    workdir.passed();
    Ok(())
}

/// Upstream's plane and ours.
struct Planes {
    theirs: Side,
    ours: Side,
}

impl Planes {
    async fn prepare(&self, namespaces: impl Iterator<Item = &str>) -> Result<()> {
        for namespace in namespaces {
            let body = json!({"metadata": {"name": namespace}});
            for side in [&self.theirs, &self.ours] {
                side.api.post("/api/v1/namespaces", &body).await?.success()?;
            }
        }
        Ok(())
    }

    /// Takes every scenario through its steps, all of them at a time. Returns each difference once, at the step where it
    /// appears.
    async fn drive(&self, scenarios: &[Scenario]) -> Result<Vec<Difference>> {
        let mut all: Vec<Difference> = Vec::new();
        let rounds = scenarios.iter().map(|scenario| scenario.steps.len()).max().unwrap_or_default();
        let mut compared = 0;
        // Scenarios with a step that one plane could not take.
        let mut stopped: BTreeSet<&str> = BTreeSet::new();
        for round in 0..rounds {
            let steps: Vec<(&Scenario, &Step)> = scenarios
                .iter()
                .filter(|scenario| !stopped.contains(scenario.name.as_str()))
                .filter_map(|scenario| Some((scenario, scenario.steps.get(round)?)))
                .collect();
            for (scenario, step) in &steps {
                let refused = self.take(scenario, step).await?;
                if !refused.is_empty() {
                    stopped.insert(scenario.name.as_str());
                }
                all.extend(refused);
            }
            let deadline = Instant::now() + PATIENCE;
            let (found, objects) = loop {
                let (theirs, ours) = tokio::try_join!(self.theirs.at_rest(), self.ours.at_rest())?;
                let (found, objects) = differences(&steps, &theirs, &ours);
                let is_new = |it: &Difference| !all.iter().any(|known| is_same(known, it));
                let new: Vec<Difference> = found.into_iter().filter(is_new).collect();
                if new.is_empty() || Instant::now() > deadline {
                    break (new, objects);
                }
            };
            compared += objects;
            let (count, new) = (steps.len(), found.len());
            println!("  step {round}: {count} scenarios, {objects} objects, {new} new differences");
            all.extend(found);
        }
        println!("  {} scenarios, {compared} objects compared", scenarios.len());
        Ok(all)
    }

    /// Sends the requests of a step to both. A request that a plane cannot take is a difference.
    async fn take(&self, scenario: &Scenario, step: &Step) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        for action in &step.actions {
            let theirs = outcome(self.theirs.act(&scenario.namespace, action, false).await);
            let ours = outcome(self.ours.act(&scenario.namespace, action, false).await);
            if theirs != ACCEPTED || ours != ACCEPTED {
                found.push(Difference {
                    scenario: scenario.name.clone(),
                    step: step.name.clone(),
                    object: "request".to_owned(),
                    path: format!("{action:?}").chars().take(120).collect(),
                    theirs,
                    ours,
                });
            }
        }
        Ok(found)
    }
}

const ACCEPTED: &str = "accepted";

fn outcome(reply: Result<Reply>) -> String {
    match reply {
        Ok(reply) if reply.status.is_success() => ACCEPTED.to_owned(),
        Ok(reply) => format!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body)),
        Err(error) => format!("{error:#}"),
    }
}

/// The same place and values, at whatever step.
fn is_same(one: &Difference, other: &Difference) -> bool {
    let place = |it: &Difference| {
        (it.scenario.clone(), it.object.clone(), it.path.clone(), it.theirs.clone(), it.ours.clone())
    };
    place(one) == place(other)
}

/// Differences in the namespaces of scenarios, and how many objects were compared.
fn differences(steps: &[(&Scenario, &Step)], theirs: &Objects, ours: &Objects) -> (Vec<Difference>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    for (scenario, step) in steps {
        let of = |objects: &Objects| objects.get(&scenario.namespace).cloned().unwrap_or_default();
        let (theirs, ours) = (of(theirs), of(ours));
        let (their_roles, our_roles) = (roles::of(&theirs), roles::of(&ours));
        let theirs = normalise::normalised(&theirs, &their_roles, &our_roles);
        let ours: BTreeMap<_, _> = normalise::normalised(&ours, &our_roles, &their_roles);
        count += theirs.len();
        for (object, path, theirs, ours) in differences::objects(&theirs, &ours) {
            found.push(Difference {
                scenario: scenario.name.clone(),
                step: step.name.clone(),
                object,
                path,
                theirs,
                ours,
            });
        }
    }
    (found, count)
}
