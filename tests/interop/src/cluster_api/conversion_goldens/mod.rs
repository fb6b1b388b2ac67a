//! `cargo xtask conversion-goldens`: compares our conversion between v1beta1 and v1beta2 with upstream's.
//!
//! Random objects that upstream's schemas accept are converted from each version to the other, by upstream's
//! functions and by ours. The results must be equal. Empty and absent values count as equal, and annotations that
//! preserve data for the way back are ignored. Where upstream cannot decode an object, ours must not panic.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use capstan_capi_types::conversion::{Converter, kinds};
use clap::Args;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kubernetes::verdicts::kinds as upstream;
use crate::peers::{self, catalog};
use crate::text::{human_duration, table};

const PROGRAM: &str = include_str!("main.go");

#[derive(Debug, Args)]
pub struct Options {
    /// Objects per kind and direction
    #[arg(long, default_value_t = 400)]
    per_kind: usize,
    /// Seed of the objects
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only kinds whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Number of differences to print per kind
    #[arg(long, default_value_t = 10)]
    show: usize,
}

#[derive(Serialize)]
struct Question {
    to: &'static str,
    kind: String,
    object: Value,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Answer {
    object: Value,
    error: String,
}

#[derive(Default)]
struct Tally {
    same: usize,
    different: usize,
    unread: usize,
    places: BTreeSet<String>,
}

/// Converts every object with both, and compares.
pub fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let questions = questions(options)?;
    let answers: Vec<Answer> = peers::ask(&program()?, &questions)?;
    let converter = Converter::default();
    let mut tallies: BTreeMap<(String, &str), Tally> = BTreeMap::new();
    let mut unlike_itself = 0;
    for (question, answer) in questions.iter().zip(&answers) {
        let tally = tallies.entry((question.kind.clone(), question.to)).or_default();
        let ours = converter.convert(question.object.clone(), question.to);
        if !answer.error.is_empty() {
            tally.unread += 1;
            continue;
        }
        let ours = ours.with_context(|| format!("ours cannot convert {:#}", question.object))?;
        let (ours, theirs) = (objects::bare(ours), objects::bare(answer.object.clone()));
        // Control: the comparison must notice an object that was not converted.
        unlike_itself += usize::from(objects::bare(question.object.clone()) != theirs);
        if ours == theirs {
            tally.same += 1;
            continue;
        }
        tally.different += 1;
        objects::differences(&theirs, &ours, "", &mut tally.places);
    }
    let mut rows =
        vec![["kind", "to", "same", "different", "not read by upstream"].map(String::from).to_vec()];
    for ((kind, to), tally) in &tallies {
        let counts = [tally.same, tally.different, tally.unread].map(|count| count.to_string());
        rows.push([vec![kind.clone(), (*to).to_owned()], counts.to_vec()].concat());
    }
    println!("{}", table(&rows));
    for ((kind, to), tally) in &tallies {
        for place in tally.places.iter().take(options.show) {
            println!("{kind} to {to}, upstream and ours: {place}");
        }
    }
    let different: usize = tallies.values().map(|tally| tally.different).sum();
    if different > 0 {
        bail!("{different} of {} objects differ from upstream's conversion", questions.len());
    }
    ensure!(tallies.values().all(|tally| tally.same > tally.unread), "too few objects could be read");
    ensure!(unlike_itself > 0, "the comparison does not notice unconverted objects");
    println!(
        "conversion-goldens: {} objects of {} kinds the same; unconverted ones are noticed {unlike_itself} times; {}",
        questions.len(),
        kinds().len(),
        human_duration(begin.elapsed())
    );
    Ok(())
}

fn program() -> Result<std::path::PathBuf> {
    let (module, version) = (catalog::CLUSTER_API_MODULE, catalog::CLUSTER_API);
    // Upstream's go.mod replaces the API types by a folder, which is a published module for everybody else.
    let go_mod = format!(
        "module capstan.peers/conversion-goldens\n\ngo 1.26.0\n\nrequire {module} v{version}\n\n\
         replace {module}/api => {module}/api v{version}\n"
    );
    peers::small_program("conversion-goldens", &go_mod, PROGRAM)
}

/// Objects for the kinds that have both versions.
fn questions(options: &Options) -> Result<Vec<Question>> {
    let mut served = upstream::served(&upstream::definitions()?)?;
    served.retain(|kind| {
        kinds().contains(&(kind.group.as_str(), kind.kind.as_str()))
            && options.only.as_ref().is_none_or(|only| kind.kind.contains(only))
    });
    let mut rng = StdRng::seed_from_u64(options.seed);
    let mut questions = Vec::new();
    for kind in served {
        let to = match (kind.version.as_str(), kind.kind.as_str()) {
            // Its older version never was a beta.
            ("v1alpha1", "ExtensionConfig") => "v1beta2",
            ("v1beta2", "ExtensionConfig") => "v1alpha1",
            ("v1beta1", _) => "v1beta2",
            ("v1beta2", _) => "v1beta1",
            _ => continue,
        };
        questions.extend((0..options.per_kind).map(|_| Question {
            to,
            kind: kind.kind.clone(),
            object: objects::make(&kind, &mut rng),
        }));
    }
    Ok(questions)
}
