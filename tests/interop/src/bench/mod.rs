//! `cargo xtask bench api`: the same load on kube-apiserver with etcd and on capstan, on the same disk in one run.
//! `cargo xtask bench fleet`: many clusters at once, ours alone or compared with upstream's managers.
//! `cargo xtask bench neighbours`: a healthy cluster alone, and beside many that do not answer.
//!
//! Benchmarks print ratios and never fail on them, since results of a shared machine are not reliable enough.

mod fleet;
mod follow;
mod in_turns;
mod load;
mod measures;
mod neighbours;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::bed::{Controllers, Flavour, Server, Workdir, capstan, ports::free_port};
use crate::cargo;
use crate::text::table;
use measures::{Better, Figure, Sizes};

/// Set for a release build of this program.
const OPTIMISED: &str = "CAPSTAN_BENCH_OPTIMISED";
/// The start time is the median of this many.
const STARTS: usize = 3;

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Writes, reads, lists, watches, start time and memory
    Api {
        /// A tenth of the load: a check that it runs, without meaningful results
        #[arg(long)]
        quick: bool,
        /// Only this server, without ratios
        #[arg(long)]
        server: Option<Flavour>,
        /// Our binary [default: a release build]
        #[arg(long)]
        capstan: Option<PathBuf>,
        /// Compare with this binary of an earlier commit instead of kube-apiserver
        #[arg(long, value_name = "FILE", conflicts_with = "server")]
        baseline: Option<PathBuf>,
    },
    /// Memory of an additional empty in-memory server in a process with a thousand
    Instances,
    /// Many simulated clusters: time, CPU, memory and writes until Available, idle and deleted
    Fleet(fleet::Options),
    /// Time until a healthy cluster is Available, alone and beside clusters that accept connections and stay silent
    Neighbours(neighbours::Options),
}

pub async fn run(options: Options) -> Result<()> {
    match options.what {
        What::Instances => instances(),
        What::Api { .. } if std::env::var_os(OPTIMISED).is_none() => again_in_release(),
        What::Api { quick, server, capstan, baseline } => {
            let sizes = if quick { Sizes::quick() } else { Sizes::full() };
            api(sizes, contenders(server, capstan.as_deref(), baseline.as_deref())?).await
        }
        What::Fleet(options) => fleet::run(options).await,
        What::Neighbours(options) => neighbours::run(options).await,
    }
}

/// A server that is measured.
struct Contender {
    name: &'static str,
    /// Ours; `None` for kube-apiserver.
    binary: Option<PathBuf>,
}

fn contenders(
    server: Option<Flavour>,
    capstan: Option<&Path>,
    baseline: Option<&Path>,
) -> Result<Vec<Contender>> {
    let kube = || Contender { name: Flavour::Kube.name(), binary: None };
    let ours = || -> Result<Contender> {
        Ok(Contender { name: Flavour::Capstan.name(), binary: Some(capstan::optimised(capstan)?) })
    };
    Ok(match (server, baseline) {
        (Some(Flavour::Kube), _) => vec![kube()],
        (Some(Flavour::Capstan), _) => vec![ours()?],
        (None, None) => vec![kube(), ours()?],
        (None, Some(file)) => {
            let before = Contender { name: "baseline", binary: Some(capstan::binary(Some(file))?) };
            vec![before, ours()?]
        }
    })
}

async fn api(sizes: Sizes, contenders: Vec<Contender>) -> Result<()> {
    let mut workdir = Workdir::new("bench")?;
    let mut columns = Vec::new();
    for Contender { name: title, binary } in &contenders {
        let folder = workdir.folder(title)?;
        let mut figures = Vec::new();
        println!("{title}");
        let start = async |name: String| match binary {
            Some(binary) => Server::capstan(&folder.join(name), binary, free_port()?).await,
            None => Server::kube(&folder.join(name), Controllers::None).await,
        };
        let mut starts = Vec::new();
        for attempt in 0..STARTS {
            let mut server = start(format!("start-{attempt}")).await?;
            starts.push(server.start_time);
            server.stop()?;
        }
        starts.sort_unstable();
        figures.push(Figure::start(starts[STARTS / 2]));
        let mut server = start("load".to_owned()).await?;
        measures::all(&server, sizes, &mut figures).await?;
        server.stop()?;
        figures.push(measures::filled(&start("full".to_owned()).await?, sizes).await?);
        columns.push((*title, figures));
    }
    print(&columns);
    if let [Contender { binary: Some(before), .. }, Contender { binary: Some(now), .. }] = &contenders[..] {
        in_turns::compare(&mut workdir, before, now, sizes).await?;
    }
    workdir.passed();
    Ok(())
}

fn instances() -> Result<()> {
    let status = cargo::command()
        .args(["run", "--quiet", "--release", "--package", "capstan-apiserver", "--example", "instances"])
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("the measurement failed ({status})");
    }
    Ok(())
}

/// Runs itself again as a release build: an unoptimised load generator would measure itself.
fn again_in_release() -> Result<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let status = cargo::command()
        .args(["run", "--quiet", "--release", "--package", "capstan-interop", "--"])
        .args(arguments)
        .env(OPTIMISED, "1")
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("the benchmark failed ({status})");
    }
    Ok(())
}

fn print(columns: &[(&str, Vec<Figure>)]) {
    let mut head = vec!["measure".to_owned()];
    head.extend(columns.iter().map(|(title, _)| (*title).to_owned()));
    if columns.len() == 2 {
        head.extend(["ratio", "target"].map(String::from));
    }
    let mut rows = vec![head];
    let Some((_, first)) = columns.first() else { return };
    for (position, figure) in first.iter().enumerate() {
        let mut row = vec![figure.name.clone()];
        row.extend(columns.iter().filter_map(|(_, figures)| figures.get(position)).map(Figure::shown));
        if let [_, (_, ours)] = columns
            && let Some(ours) = ours.get(position)
        {
            let ratio = ours.value / figure.value;
            let better = match figure.better {
                Better::Higher => format!("{ratio:.2} × "),
                Better::Lower => format!("1/{:.1}", 1.0 / ratio),
            };
            row.extend([better, figure.target.to_owned()]);
        }
        rows.push(row);
    }
    println!("\n{}", table(&rows));
}
