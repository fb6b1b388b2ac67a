//! `cargo xtask corefile-goldens`: compares our migration of Corefiles with the library that Cluster API uses.
//!
//! Known Corefiles are migrated from every release to every later one, and random ones between random releases. The
//! results must be equal byte by byte, errors included. Where the library panics, ours must return a result or an
//! error. The comparison must notice a migration that is wrong on purpose.

mod generate;

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use capstan_capi_kubeadm::corefile::{migrate, releases};
use clap::Args;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::peers::{self, catalog};
use crate::text::human_duration;

const PROGRAM: &str = include_str!("main.go");

#[derive(Debug, Args)]
pub struct Options {
    /// Number of random Corefiles
    #[arg(long, default_value_t = 20_000)]
    random: usize,
    /// Seed of the random Corefiles
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Question {
    from: String,
    to: String,
    corefile: String,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Answer {
    corefile: String,
    error: String,
    panic: String,
    versions: Vec<String>,
}

/// Migrates every Corefile with both, and compares.
pub fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let go_mod = format!(
        "module capstan.peers/corefile-goldens\n\ngo 1.26.0\n\nrequire {} v{}\n",
        catalog::COREFILE_MIGRATION_MODULE,
        catalog::COREFILE_MIGRATION
    );
    let program = peers::small_program("corefile-goldens", &go_mod, PROGRAM)?;
    let mut questions = vec![Question { from: String::new(), to: String::new(), corefile: String::new() }];
    for corefile in generate::KNOWN {
        for (at, from) in releases().iter().enumerate() {
            questions.extend(releases()[at..].iter().map(|to| question(from, to, corefile)));
        }
    }
    let known = questions.len() - 1;
    let mut rng = StdRng::seed_from_u64(options.seed);
    for _ in 0..options.random {
        let (from, to) = (generate::version(&mut rng), generate::version(&mut rng));
        questions.push(question(&from, &to, &generate::corefile(&mut rng)));
    }
    let answers: Vec<Answer> = peers::ask(&program, &questions)?;
    ensure!(
        answers[0].versions == releases(),
        "the releases differ:\n{:?}\n{:?}",
        answers[0].versions,
        releases()
    );
    let (mut same, mut refused, mut panicked, mut changed) = (0, 0, 0, 0);
    let mut shortened = 0;
    for (question, answer) in questions.iter().zip(&answers).skip(1) {
        let ours =
            migrate(&question.corefile, &question.from, &question.to).map_err(|error| error.to_string());
        if !answer.panic.is_empty() {
            panicked += 1;
            continue;
        }
        let theirs = if answer.error.is_empty() { Ok(&answer.corefile) } else { Err(&answer.error) };
        if ours.as_ref() != theirs {
            bail!(
                "from {} to {}:\n{}\n-- upstream\n{}\n-- ours\n{}",
                question.from,
                question.to,
                question.corefile,
                theirs.unwrap_or_else(|error| error),
                ours.unwrap_or_else(|error| error)
            );
        }
        match &ours {
            Ok(ours) => {
                same += 1;
                changed += usize::from(*ours != question.corefile);
                // Control: a migration that stops one release short must be noticed.
                let before = releases().iter().position(|release| *release == question.to);
                let before = before.and_then(|at| releases().get(at.checked_sub(1)?));
                let short =
                    before.and_then(|before| migrate(&question.corefile, &question.from, before).ok());
                shortened += usize::from(short.is_some_and(|short| short != *ours));
            }
            Err(_) => refused += 1,
        }
    }
    ensure!(shortened > 0, "the comparison does not notice a migration that stops one release short");
    ensure!(refused > 0 && changed > 0, "the random Corefiles cover too little");
    println!(
        "corefile-goldens: {known} known and {} random migrations; {same} same ({changed} changed the text), {refused} \
         refused alike, {panicked} where upstream panics; one release short is noticed {shortened} times; {}",
        options.random,
        human_duration(begin.elapsed())
    );
    Ok(())
}

fn question(from: &str, to: &str, corefile: &str) -> Question {
    Question { from: from.to_owned(), to: to.to_owned(), corefile: corefile.to_owned() }
}
