//! `cargo xtask kubectl-parity`: runs the same kubectl commands against both servers and compares everything.

mod explained;
mod normalise;
mod scenario;
mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use regex::Regex;

use crate::bed::{Controllers, Flavour, Server, Workdir, install};
use crate::diff;
use crate::peers::Cache;
use crate::text::human_duration;
use explained::Explanation;
use scenario::{Scenario, Step};
use shell::{Output, Shell};

#[derive(Debug, Args)]
pub struct Options {
    /// Only scenarios whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Server that is compared with kube-apiserver; `kube` checks that the comparison itself finds nothing
    #[arg(long, default_value = "capstan")]
    subject: Flavour,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Print every line with its output
    #[arg(long)]
    verbose: bool,
    /// Write docs/dev/kubectl-parity.md and stop
    #[arg(long)]
    write_docs: bool,
}

/// One difference of the two sides.
#[derive(Debug)]
struct Difference {
    scenario: String,
    run: String,
    what: String,
    /// The stored object that differs, if any.
    object: Option<String>,
    detail: String,
}

pub async fn run(options: Options) -> Result<()> {
    let mut scenarios = scenario::load()?;
    let explained = explained::load()?;
    if options.write_docs {
        let path = explained::page_path();
        std::fs::create_dir_all(path.parent().context("docs")?)?;
        std::fs::write(&path, explained::page(&scenarios, &explained))?;
        return Ok(());
    }
    if let Some(only) = &options.only {
        scenarios.retain(|scenario| scenario.name.contains(only.as_str()));
    }
    let bin = Cache::locate()?.built("kubectl")?.parent().context("kubectl")?.to_owned();
    let mut workdir = Workdir::new("kubectl-parity")?;
    let expected = Server::kube(&workdir.folder("expected")?, Controllers::Plane).await?;
    let subject = match options.subject {
        Flavour::Kube => Server::kube(&workdir.folder("subject")?, Controllers::Plane).await?,
        Flavour::Capstan => {
            Server::start(Flavour::Capstan, &workdir.folder("subject")?, options.capstan.as_deref()).await?
        }
    };
    let setup = install::documents(&std::fs::read_to_string(scenario::folder().join("setup.yaml"))?)?;
    for server in [&expected, &subject] {
        install::create_definitions(&server.api()?, &setup).await.context(server.flavour.name())?;
    }
    let (left_root, right_root) = (workdir.folder("expected/shell")?, workdir.folder("subject/shell")?);

    let started = Instant::now();
    let explained = if options.subject == Flavour::Capstan { explained } else { Vec::new() };
    let mut differences = Vec::new();
    let mut lines = 0;
    for scenario in &scenarios {
        let (left, right) = tokio::join!(
            Shell::open(&expected, scenario, &left_root, &bin),
            Shell::open(&subject, scenario, &right_root, &bin)
        );
        let (left, right) = (left?, right?);
        let before = differences.len();
        let mut stored = BTreeMap::new();
        for step in &scenario.steps {
            let found = compare(scenario, step, &left, &right, options.verbose).await;
            let mut found = found.with_context(|| format!("{}: {}", scenario.name, step.run))?;
            // A difference in storage is reported at its first step, not again at every later one.
            found.retain(|new| {
                let Some(object) = &new.object else { return true };
                let place = (new.what.clone(), object.clone());
                stored.insert(place, new.detail.clone()).is_none_or(|old| old != new.detail)
            });
            differences.extend(found);
            lines += usize::from(!step.quiet);
        }
        let found = &differences[before..];
        println!("  {}: {} lines, {} differences", scenario.name, scenario.compared().count(), found.len());
        found.iter().filter(|found| !is_explained(found, &explained)).for_each(print);
    }
    judge(&differences, &explained, lines, options.only.is_none())?;
    println!("{lines} lines, nothing unexplained, {}", human_duration(started.elapsed()));
    workdir.passed();
    Ok(())
}

fn print(found: &Difference) {
    let object = found.object.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    println!(
        "\n{}: {}\n  {}{object} differs (- kube-apiserver, + here)\n{}",
        found.scenario, found.run, found.what, found.detail
    );
}

async fn compare(
    scenario: &Scenario,
    step: &Step,
    left: &Shell,
    right: &Shell,
    verbose: bool,
) -> Result<Vec<Difference>> {
    let (expected, got) = tokio::join!(left.run(step), right.run(step));
    let (expected, got) = (expected?, got?);
    if step.quiet {
        return Ok(Vec::new());
    }
    if verbose {
        println!("$ {}\n{}{}[{}]", step.run, expected.stdout, expected.stderr, expected.code);
    }
    let masks: Result<Vec<_>, _> = step.mask.iter().map(|mask| Regex::new(mask)).collect();
    let masks = masks?;
    let mut differences = Vec::new();
    let difference = |what: &str, object: Option<&String>, detail: String| Difference {
        scenario: scenario.name.clone(),
        run: step.run.clone(),
        what: what.to_owned(),
        object: object.cloned(),
        detail,
    };
    let mut note = |what: &str, detail: String| differences.push(difference(what, None, detail));
    if step.bad && expected.code == 0 {
        note("declared as bad input", "    kube-apiserver accepts it\n".to_owned());
    }
    if !step.bad && (expected.code != 0) != step.fails {
        note(
            "declared as good input",
            format!("    kube-apiserver: {} {}\n", expected.code, expected.stderr),
        );
    }
    if expected.code != got.code {
        note("exit code", format!("    - {}\n    + {}\n", expected.code, got.code));
    }
    type Part = fn(&Output) -> &str;
    let parts: [(&str, Part); 2] = [("stdout", |output| &output.stdout), ("stderr", |output| &output.stderr)];
    for (what, part) in parts {
        let expected = normalise::text(part(&expected), &left.side, &masks, step.sorted);
        let got = normalise::text(part(&got), &right.side, &masks, step.sorted);
        if expected != got {
            note(what, diff::lines(&expected, &got));
        }
    }
    let settled: &[String] = if step.unsettled { &[] } else { &scenario.objects };
    for entry in settled {
        let path = scenario.collection(entry);
        let (expected, got) = tokio::join!(left.stored(&path), right.stored(&path));
        let (expected, got) =
            (normalise::objects(expected?, &left.side), normalise::objects(got?, &right.side));
        for name in expected.keys().chain(got.keys().filter(|name| !expected.contains_key(*name))) {
            let text = |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or_default();
            let (expected, got) = (text(&expected), text(&got));
            if expected != got {
                differences.push(difference(entry, Some(name), diff::lines(&expected, &got)));
            }
        }
    }
    Ok(differences)
}

fn covers(entry: &Explanation, found: &Difference) -> bool {
    entry.scenario == found.scenario && entry.run == found.run && entry.what == found.what
}

fn is_explained(found: &Difference, explained: &[Explanation]) -> bool {
    explained.iter().any(|entry| covers(entry, found))
}

/// Fails on differences without an explanation, and on explanations without a difference.
fn judge(differences: &[Difference], explained: &[Explanation], lines: usize, whole: bool) -> Result<()> {
    let unexplained: Vec<_> = differences.iter().filter(|found| !is_explained(found, explained)).collect();
    let idle = explained.iter().filter(|entry| !differences.iter().any(|found| covers(entry, found)));
    let idle: Vec<_> = if whole { idle.collect() } else { Vec::new() };
    for entry in &idle {
        println!("unused explanation: {}: {}: {}", entry.scenario, entry.run, entry.what);
    }
    if !unexplained.is_empty() || !idle.is_empty() {
        let steps: BTreeSet<_> = unexplained.iter().map(|found| (&found.scenario, &found.run)).collect();
        bail!(
            "{} unexplained differences in {} of {lines} lines, {} unused explanations",
            unexplained.len(),
            steps.len(),
            idle.len()
        );
    }
    Ok(())
}
