//! Plays the stories of whole clusters in simulated time, and disturbs them at every effect.

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use capstan_harness::{Fault, Sample, run as run_once, survey};
use capstan_scenarios::{Story, all};

/// How much is simulated.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only these stories (comma separated)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Disturb every effect instead of a sample
    #[arg(long)]
    all: bool,
    /// Without --all: disturb every so many effects
    #[arg(long, default_value_t = 40)]
    every: usize,
    /// Play the stories as they are, undisturbed
    #[arg(long, conflicts_with_all = ["all", "every"])]
    calm: bool,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Misfortune = (&'static str, fn(usize) -> Fault);

const MISFORTUNES: [Misfortune; 5] = [
    ("a crash after it", Fault::CrashAfter),
    ("a crash before it", Fault::CrashBefore),
    ("a lost answer", Fault::LoseReply),
    ("a refusal", |effect| Fault::Refuse(effect, 503)),
    ("cut watches", Fault::CutWatches),
];

/// Runs the suite.
pub async fn run(options: Options) -> Result<()> {
    // Every run has a runtime and a clock of its own, which must not stand inside another.
    tokio::task::spawn_blocking(move || play(&options)).await?
}

fn play(options: &Options) -> Result<()> {
    let stories: Vec<Story> = all()
        .into_iter()
        .filter(|story| options.only.is_empty() || options.only.iter().any(|name| name == story.name))
        .collect();
    ensure!(!stories.is_empty(), "there is no story of these names: {}", options.only.join(", "));
    if options.calm {
        return calm(&stories, options.seed);
    }
    let every = if options.all { 1 } else { options.every.max(1) };
    let (mut runs, mut broken) = (0, 0);
    for story in &stories {
        for (what, fault) in MISFORTUNES {
            let begun = Instant::now();
            let survey = survey(story, options.seed, &[fault], Sample { first: 0, every });
            if survey.reference.violation.is_some() {
                bail!("{} fails without any misfortune\n{}", story.name, survey.reference.story());
            }
            println!(
                "{}: {} effects, {} runs with {what}, {} broken, {:.1} s",
                story.name,
                survey.reference.trace.effects(),
                survey.runs,
                survey.broken.len(),
                begun.elapsed().as_secs_f64()
            );
            for report in survey.broken.iter().take(1) {
                eprintln!("{}", report.story());
            }
            runs += survey.runs;
            broken += survey.broken.len();
        }
    }
    println!("{runs} runs of {} stories, {broken} broken", stories.len());
    ensure!(broken == 0, "{broken} of {runs} runs broke something");
    Ok(())
}

/// Every story once, and every failure told.
fn calm(stories: &[Story], seed: u64) -> Result<()> {
    let mut failed = Vec::new();
    for story in stories {
        let begun = Instant::now();
        let report = run_once(story, seed, &[]);
        let took = begun.elapsed().as_secs_f64();
        let verdict = match &report.violation {
            None => "all is well".to_owned(),
            Some(violation) => {
                eprintln!("{}", report.story());
                failed.push(story.name);
                violation.to_string()
            }
        };
        println!("{}: {} effects, {took:.1} s: {verdict}", story.name, report.trace.effects());
    }
    ensure!(failed.is_empty(), "these stories do not end well: {}", failed.join(", "));
    Ok(())
}
