//! `cargo xtask upstream-on-capstan`: Cluster API's own managers must work on our API server as on kube-apiserver.
//!
//! Clusters of upstream's in-memory ClusterClass become Available, are scaled up, and are deleted completely. Error
//! lines that the managers also log on kube-apiserver are recorded in `tests/upstream/baseline.json` (`--baseline`).

mod baseline;
pub mod clusterctl;
mod explained;
mod fleet;
mod shapes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::bed::machine::Machine;
use crate::bed::process::{Usage, usage_of};
use crate::bed::{Flavour, Managers, Server, Workdir, kubeconfig};
use crate::text::{Lap, human_bytes, human_duration, table};
use baseline::Baseline;
use fleet::Fleet;
use shapes::Shapes;

#[derive(Debug, Args)]
pub struct Options {
    /// Run on etcd, kube-apiserver and kube-controller-manager and record timings and error lines
    #[arg(long)]
    baseline: bool,
    /// Number of clusters
    #[arg(long, default_value_t = 10)]
    clusters: usize,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

#[derive(Debug)]
struct Outcome {
    phases: Vec<(&'static str, Duration)>,
    usage: Vec<(String, Usage)>,
    shapes: Shapes,
    /// Share of the machine that other programs used.
    others: f64,
    workdir: Workdir,
}

/// Share from which on the machine counts as busy and slowness is explained.
const BUSY: f64 = 0.25;

pub async fn run(options: Options) -> Result<()> {
    if options.baseline {
        let mut outcome = run_on(Flavour::Kube, &options).await?;
        print(&outcome, None);
        outcome.workdir.passed();
        return Baseline::record(&outcome, options.clusters);
    }
    let known = match Baseline::load() {
        Ok(known) => known,
        Err(why) => {
            println!("{why:#}; running kube-apiserver first");
            let mut outcome = run_on(Flavour::Kube, &options).await?;
            print(&outcome, None);
            outcome.workdir.passed();
            Baseline::of(&outcome, options.clusters)?
        }
    };
    let mut outcome = run_on(Flavour::Capstan, &options).await?;
    print(&outcome, Some(&known));
    judge(&outcome, &known)?;
    outcome.workdir.passed();
    Ok(())
}

/// Fails on error lines that are neither in the baseline nor explained.
fn judge(outcome: &Outcome, known: &Baseline) -> Result<()> {
    let explanations = explained::load()?;
    let busy = outcome.others > BUSY;
    println!("other programs used {:.0} % of the machine", outcome.others * 100.0);
    let (mut met, mut unexplained) = (BTreeMap::new(), 0);
    for (shape, example) in outcome.shapes.all().filter(|(shape, _)| !known.shapes.contains(*shape)) {
        // A line without an error, such as a panic, is its own cause.
        let error = shapes::error_text(example).unwrap_or_else(|| shape.clone());
        match explained::explain(&explanations, &error, busy) {
            Ok(names) => names.into_iter().for_each(|name| *met.entry(name).or_insert(0) += 1),
            Err(cause) => {
                unexplained += 1;
                println!("\nnot on kube-apiserver: {shape}\n    e.g. {example}\n    because {cause}");
            }
        }
    }
    for (name, count) in &met {
        println!("explained: {name} ({count} distinct lines)");
    }
    if unexplained > 0 {
        bail!(
            "{unexplained} kinds of error line are ours alone; if kube-apiserver shows them now and then, \
               `cargo xtask upstream-on-capstan --baseline` adds what it shows"
        );
    }
    println!("no error line that the managers do not also print on kube-apiserver");
    Ok(())
}

async fn run_on(flavour: Flavour, options: &Options) -> Result<Outcome> {
    println!("{} clusters on {}", options.clusters, flavour.name());
    let workdir = Workdir::new("upstream")?;
    let mut phases = Vec::new();
    let mut lap = Lap::start();
    let machine = Machine::now()?;
    let mut server = Server::start(flavour, &workdir.folder("server")?, options.capstan.as_deref()).await?;
    phases.push(lap.end("server ready"));
    let mut managers = Managers::start(&workdir.folder("managers")?, &server.kubeconfig).await?;
    phases.push(lap.end("CRDs and managers ready"));

    let api = server.api()?;
    let fleet = Fleet::prepare(&api, options.clusters).await?;
    phases.push(lap.end("ClusterClass created"));
    fleet.create().await?;
    let mut healthy = || server.check().and_then(|()| managers.check());
    fleet.wait_available(1, 1, &mut healthy).await?;
    phases.push(lap.end("1+1 available"));
    fleet.scale(3, 3).await?;
    fleet.wait_available(3, 3, &mut healthy).await?;
    phases.push(lap.end("scaled to 3+3"));
    let mut usage = server.usage()?;
    usage.extend(managers.usage()?);
    let mut healthy = || server.check().and_then(|()| managers.check());
    fleet.delete(&mut healthy).await?;
    phases.push(lap.end("deleted, nothing left"));
    fleet.delete_namespace().await?;
    phases.push(lap.end("namespace gone"));

    let own: Duration =
        server.usage()?.into_iter().chain(managers.usage()?).map(|(_, usage)| usage.cpu).sum();
    let own = own + usage_of(std::process::id())?.cpu;
    let others = Machine::now()?.used_by_others_since(&machine, own);
    let mut shapes = Shapes::default();
    let url = kubeconfig::read(&server.kubeconfig)?.url;
    for (name, log) in managers.logs() {
        shapes.read(&name, &log, url.trim_start_matches("https://"))?;
    }
    Ok(Outcome { phases, usage, shapes, others, workdir })
}

fn print(outcome: &Outcome, baseline: Option<&Baseline>) {
    let mut rows = vec![vec!["phase".to_owned(), "here".to_owned(), "kube-apiserver".to_owned()]];
    for (name, took) in &outcome.phases {
        let known = baseline.and_then(|known| known.phases.get(*name));
        let known =
            known.map_or_else(String::new, |seconds| human_duration(Duration::from_secs_f64(*seconds)));
        rows.push(vec![(*name).to_owned(), human_duration(*took), known]);
    }
    println!("\n{}", table(&rows));
    let head = ["process", "memory", "peak", "CPU time", "memory on kube-apiserver"].map(String::from);
    let mut rows = vec![head.to_vec()];
    for (name, usage) in &outcome.usage {
        let known = baseline.and_then(|known| known.memory.get(name)).copied();
        rows.push(vec![
            name.clone(),
            human_bytes(usage.resident),
            human_bytes(usage.peak),
            human_duration(usage.cpu),
            known.map(human_bytes).unwrap_or_default(),
        ]);
    }
    println!("{}", table(&rows));
    println!("{} distinct error lines in the managers' logs", outcome.shapes.len());
}
