//! `cargo xtask planner-goldens`: replays upstream's recorded rollouts with our planner.
//!
//! Upstream keeps logs of simulated rollouts next to its planner: a fixed or seeded random order of the
//! MachineDeployment, MachineSet and Machine controllers, and the machines of each set after each step. The same
//! start and order must give the same log here, line by line, except for the explanations of a step. The comparison
//! must also notice broken planners.

mod go_rand;
mod golden;
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capstan_capi_core::machine_deployment::rollout::{Plan, Rollout, Strategy, plan};

use crate::peers::catalog::{CLUSTER_API, CLUSTER_API_MODULE};
use crate::peers::module_dir;
use go_rand::{GoRand, StartValues};
use golden::Golden;
use world::{Planner, World};

/// Number of sequences in the pinned module. Another number means that the wrong folder was read.
const SEQUENCES: usize = 46;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only sequences whose title contains this text
    #[arg(long)]
    only: Option<String>,
    /// Print our log of every sequence replayed
    #[arg(long)]
    show: bool,
}

/// Replays every sequence, and some with planners that are wrong on purpose.
pub fn run(options: &Options) -> Result<()> {
    let goldens = read_goldens()?;
    if goldens.len() != SEQUENCES {
        bail!("{} sequences instead of {SEQUENCES}", goldens.len());
    }
    let start = StartValues::of_installed_go()?;
    let chosen: Vec<_> = goldens
        .iter()
        .filter(|golden| options.only.as_ref().is_none_or(|text| golden.name.contains(text)))
        .collect();
    let mut failed = 0;
    for golden in &chosen {
        match replay(golden, &start, World::real_planner(), options.show) {
            Ok(steps) => println!("same   {:>4} lines  {}", steps, golden.name),
            Err(error) => {
                failed += 1;
                println!("DIFFERS            {}\n{error:#}", golden.name);
            }
        }
    }
    for (broken, planner) in BROKEN {
        let noticed =
            goldens.iter().filter(|golden| replay(golden, &start, *planner, false).is_err()).count();
        println!("a planner that {broken}: noticed in {noticed} of {} sequences", goldens.len());
        if noticed == 0 {
            bail!("the comparison does not notice a planner that {broken}");
        }
    }
    if failed > 0 {
        bail!("{failed} of {} sequences differ", chosen.len());
    }
    println!("planner-goldens: {} of {} sequences are the same", chosen.len(), goldens.len());
    Ok(())
}

/// Planners with one bug each.
const BROKEN: &[(&str, Planner)] = &[
    ("creates one machine too many", |rollout| {
        let mut rollout = rollout.clone();
        if let Strategy::RollingUpdate { max_surge: capstan_object::IntOrString::Int(surge), .. } =
            &mut rollout.strategy
        {
            *surge += 1;
        }
        plan(&rollout)
    }),
    ("gives up old machines without waiting for new ones", |rollout| {
        let mut rollout = rollout.clone();
        rollout.current.available = rollout.current.wanted;
        plan(&rollout)
    }),
    ("never shrinks an old set", |rollout| unshrunk(rollout, plan(rollout))),
];

fn unshrunk(rollout: &Rollout, mut planned: Plan) -> Plan {
    for (facts, set) in rollout.old.iter().zip(&mut planned.old) {
        set.replicas = set.replicas.max(facts.wanted);
    }
    planned
}

fn read_goldens() -> Result<Vec<Golden>> {
    let folder = module_dir(CLUSTER_API_MODULE, &format!("v{CLUSTER_API}"))?
        .join("core/reconcilers/machinedeployment/testdata");
    let mut paths: Vec<PathBuf> = Vec::new();
    for kind in ["rollingupdate", "ondelete"] {
        let folder = folder.join(kind);
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            paths.push(entry?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "golden"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path)?;
            Golden::parse(&text).with_context(|| path.display().to_string())
        })
        .collect()
}

/// Replays one sequence until it has as many lines as the recording, or differs.
fn replay(golden: &Golden, start: &StartValues, planner: Planner, show: bool) -> Result<usize> {
    let recorded = golden.steps();
    let last = golden.final_state()?;
    let mut world = golden.world(planner)?;
    let mut random = golden.seed()?.map(|seed| GoRand::new(start, seed));
    world.log.push("[Test] Initial state".to_owned());
    world.log.extend(world.summary());
    // The line with the parameters is copied: it is the input.
    let parameters =
        recorded.iter().find(|line| line.starts_with("[Test] Rollout ")).context("no parameters")?;
    world.log.push((*parameters).to_owned());

    let mut outcome = Ok(());
    for iteration in 1.. {
        let tasks = tasks(&world);
        let order = match &mut random {
            Some(random) => random_order(tasks.len(), random),
            None => (0..tasks.len()).collect(),
        };
        for task in order {
            outcome = outcome.and_then(|()| world.run(&tasks[task], iteration, random.as_mut()));
        }
        if world.summary() == last {
            world.log.push("[Test] Final state".to_owned());
            world.log.extend(world.summary());
            break;
        }
        if outcome.is_err() || world.log.len() > recorded.len() {
            break;
        }
    }
    if show {
        println!("{}", world.log.join("\n"));
    }
    compare(&recorded, &world.log)?;
    outcome?;
    Ok(recorded.len())
}

fn compare(recorded: &[&str], ours: &[String]) -> Result<()> {
    for at in 0..recorded.len().max(ours.len()) {
        let (theirs, our) = (recorded.get(at), ours.get(at));
        if theirs.copied() != our.map(String::as_str) {
            let none = "(nothing more)";
            bail!(
                "line {}:\n  recorded: {}\n  ours:     {}",
                at + 1,
                theirs.unwrap_or(&none),
                our.map_or(none, String::as_str)
            );
        }
    }
    Ok(())
}

fn tasks(world: &World) -> Vec<String> {
    let mut tasks = vec!["md".to_owned()];
    tasks.extend(world.sets.iter().map(world::Set::name));
    // The set that the deployment may create in this round.
    tasks.push(format!("ms{}", world.sets.len() + 1));
    if matches!(world.deployment.strategy, Strategy::OnDelete) {
        tasks.push("delete-machine".to_owned());
        tasks.extend(
            world.sets.iter().flat_map(|set| &set.machines).map(|machine| format!("m{}", machine.number)),
        );
    }
    tasks
}

/// An order in which three of ten tasks are skipped and three of ten are repeated.
fn random_order(count: usize, random: &mut GoRand) -> Vec<usize> {
    let mut drawn = BTreeSet::new();
    let mut order = Vec::new();
    while drawn.len() < count {
        let task = loop {
            let task = random.below(count);
            if drawn.insert(task) {
                break task;
            }
        };
        if random.below(10) < 3 {
            continue;
        }
        order.push(task);
        if random.below(10) < 3 {
            drawn.remove(&task);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_an_extra_and_a_changed_line_are_differences() {
        let recorded = ["a", "b", "c"];
        let ours = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert!(compare(&recorded, &ours(&["a", "b", "c"])).is_ok());
        for wrong in [&["a", "b"][..], &["a", "b", "c", "d"], &["a", "x", "c"]] {
            assert!(compare(&recorded, &ours(wrong)).is_err(), "{wrong:?}");
        }
    }
}
