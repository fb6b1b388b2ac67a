//! `cargo xtask upstream-on-capstan`: Cluster API's own managers must not notice that this is not kube-apiserver.
//!
//! Clusters from upstream's in-memory ClusterClass become Available, grow, and are deleted without a trace. The same
//! run on kube-apiserver (`--baseline`) tells which error lines the managers print anyway.

mod baseline;
pub mod clusterctl;
mod fleet;
mod shapes;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use crate::bed::process::Usage;
use crate::bed::{Flavour, Managers, Server, Workdir};
use crate::text::{human_bytes, human_duration, table};
use baseline::Baseline;
use fleet::Fleet;
use shapes::Shapes;

#[derive(Debug, Args)]
pub struct Options {
    /// Run on etcd, kube-apiserver and kube-controller-manager and remember timings and error lines
    #[arg(long)]
    baseline: bool,
    /// How many clusters
    #[arg(long, default_value_t = 10)]
    clusters: usize,
    /// Our binary; built in release mode when not given
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Show error lines that the kept run on kube-apiserver does not have, but do not fail for them: which
    /// passing errors the managers meet depends on timing, and one baseline has not seen them all
    #[arg(long)]
    show_new_errors: bool,
}

/// What one run gave.
#[derive(Debug)]
struct Outcome {
    phases: Vec<(&'static str, Duration)>,
    usage: Vec<(String, Usage)>,
    shapes: Shapes,
}

pub async fn run(options: Options) -> Result<()> {
    if options.baseline {
        let outcome = run_on(Flavour::Kube, &options).await?;
        print(&outcome, None);
        return Baseline::load()?.merged(&outcome).save();
    }
    let mut known = Baseline::load()?;
    if known.is_empty() {
        println!("no baseline yet: running on kube-apiserver first");
        known = known.merged(&run_on(Flavour::Kube, &options).await?);
        known.save()?;
    }
    let outcome = run_on(Flavour::Capstan, &options).await?;
    print(&outcome, Some(&known));
    let unknown = outcome.shapes.not_in(&known.shapes);
    if !unknown.is_empty() {
        println!("\nerror lines that the managers do not print on kube-apiserver:");
        for (shape, example) in &unknown {
            println!("  {shape}\n      e.g. {example}");
        }
        if options.show_new_errors {
            println!("{} kinds of error line are not in the baseline", unknown.len());
            return Ok(());
        }
        bail!(
            "{} kinds of error line are ours alone; if kube-apiserver shows them now and then, \
               `cargo xtask upstream-on-capstan --baseline` adds what it shows",
            unknown.len()
        );
    }
    println!("no error line that the managers do not also print on kube-apiserver");
    Ok(())
}

async fn run_on(flavour: Flavour, options: &Options) -> Result<Outcome> {
    println!("{} clusters on {}", options.clusters, flavour.name());
    let mut workdir = Workdir::new("upstream")?;
    let mut phases = Vec::new();
    let mut lap = Lap::start();
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

    let mut shapes = Shapes::default();
    for (name, log) in managers.logs() {
        shapes.read(&name, &log)?;
    }
    workdir.passed();
    Ok(Outcome { phases, usage, shapes })
}

struct Lap(Instant);

impl Lap {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn end(&mut self, name: &'static str) -> (&'static str, Duration) {
        let took = self.0.elapsed();
        self.0 = Instant::now();
        println!("  {name}: {}", human_duration(took));
        (name, took)
    }
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
    let head = ["process", "memory", "peak", "processor", "memory of kube's run"].map(String::from);
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
    println!("{} kinds of error line in the managers' logs", outcome.shapes.len());
}
