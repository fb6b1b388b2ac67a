//! `cargo xtask mend`: breaks clusters, reads `capstan why`, runs the commands that it prints, and waits until they are
//! ready.

mod case;
mod page;
mod plane;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use futures::{StreamExt as _, stream};

use super::demo::{Demo, wait_for_output};
use crate::bed::cluster::example;
use crate::bed::{Workdir, capstan};
use crate::peers::Cache;
use crate::self_checks::Part;
use case::{Case, problems};

pub use case::commands;
pub use plane::Shell;

/// Longest time until `why` says what is expected, and from the fix to a ready cluster.
const PATIENCE: Duration = Duration::from_secs(300);
/// Clusters that are broken at the same time.
const TOGETHER: usize = 3;
const POLL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Only this part, for example `3/8` for the third of eight [default: all]
    #[arg(long, default_value = "1/1", value_parser = Part::parse)]
    part: Part,
    /// Only these cases
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Write the rows of these cases into docs/mends.md
    #[arg(long)]
    write: bool,
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let kubectl = Cache::locate()?.built("kubectl")?;
    let mut workdir = Workdir::new("mend")?;
    let mut demo = Demo::new(&workdir.folder("demo")?, &binary)?;
    let mut plane = demo.headless()?;
    wait_for_output(&mut plane, "cluster demo is ready").await?;
    let shell = Shell::open(&demo, &workdir, &binary, &kubectl).await?;
    // The cases need its quota.
    shell.run("demo", "capstan delete demo --yes --wait", "").await?;
    let sample = std::fs::read_to_string(example("demo.yaml"))?;
    let named = |case: &Case| options.only.is_empty() || options.only.contains(&case.name);
    let cases: Vec<Case> = options.part.take(Case::all()?).filter(named).collect();
    let (alone, together): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.is_alone());
    let (mut rows, mut failures) = (BTreeMap::new(), Vec::new());
    for (cases, width) in [(together, TOGETHER), (alone, 1)] {
        let (shell, sample, port) = (&shell, &sample, demo.endpoint_port);
        let all = cases.into_iter().map(|case| async move { (case, tried(shell, case, sample, port).await) });
        let mut all = stream::iter(all).buffer_unordered(width);
        while let Some((case, row)) = all.next().await {
            match row {
                Ok(row) => drop(rows.insert(case.symptom.clone(), row)),
                Err(error) => {
                    println!("{}: {error:#}", case.name);
                    failures.push(case.name.as_str());
                    // Faults of the cloud are not for the next case.
                    shell.run(&case.cluster(), "ctl heal; capstan delete $CLUSTER --yes", "").await?;
                }
            }
        }
    }
    if options.write {
        page::write(&Case::all()?, &rows)?;
    }
    ensure!(failures.is_empty(), "not explained or not fixed: {}", failures.join(","));
    page::check(rows.values())?;
    workdir.passed();
    Ok(())
}

/// Breaks a cluster and fixes it. Returns its row of the page.
async fn tried(shell: &Shell, case: &Case, sample: &str, endpoint_port: u16) -> Result<String> {
    let answer = mended(shell, case, &case.manifest(sample, endpoint_port)?).await?;
    page::row(case, &answer)
}

/// Breaks a cluster and fixes it. Returns what `why` said.
async fn mended(shell: &Shell, case: &Case, manifest: &str) -> Result<String> {
    let name = &case.cluster();
    let started = Instant::now();
    shell.write(&format!("{name}.yaml"), manifest)?;
    shell.run(name, &case.before, "").await?;
    shell.run(name, "capstan up -f $CLUSTER.yaml --no-plan --no-wait", "").await?;
    if !case.after.is_empty() {
        shell.run(name, "capstan wait $CLUSTER --timeout 3m", "").await?;
        shell.run(name, &case.after, "").await?;
    }
    let answer = explained(shell, case).await?;
    let broken = started.elapsed();
    let fixed = Instant::now();
    ready(shell, case, &answer).await?;
    println!("{}: explained after {broken:.1?}, ready {:.1?} after the fix", case.name, fixed.elapsed());
    shell.run(name, "capstan delete $CLUSTER --yes", "").await?;
    Ok(answer)
}

async fn why(shell: &Shell, case: &Case) -> Result<String> {
    shell.run(&case.cluster(), "capstan why $CLUSTER", "").await
}

/// Waits until `why` says what is expected, with something to do about it.
async fn explained(shell: &Shell, case: &Case) -> Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = why(shell, case).await?;
        let says = case.why.iter().all(|words| answer.contains(words.as_str()));
        if says && (!case.fix.is_empty() || !commands(&answer).is_empty()) {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("`why` has no {:?} with a fix:\n{answer}", case.why);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Does what `why` says, again for further blockers of the same kind, until the cluster is ready.
async fn ready(shell: &Shell, case: &Case, first: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut done: Vec<String> = Vec::new();
    let mut answer = first.to_owned();
    if !case.fix.is_empty() {
        shell.run(&case.cluster(), &case.fix, "").await?;
    }
    loop {
        if case.fix.is_empty() {
            let problems = problems(&answer, &case.why);
            for printed in problems.iter().flat_map(|problem| commands(problem)) {
                let command = case.filled(&printed)?;
                if !done.contains(&command) {
                    shell.run(&case.cluster(), &command, &case.editor).await?;
                    done.push(command);
                }
            }
        }
        answer = why(shell, case).await?;
        if answer.trim_end() == format!("Cluster/{} is ready", case.cluster()) {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("not ready after {done:#?}{}:\n{answer}", case.fix);
        }
        tokio::time::sleep(POLL).await;
    }
}
