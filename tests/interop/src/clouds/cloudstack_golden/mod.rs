//! `cargo xtask cloudstack-golden`: recorded replies of a real CloudStack server, read by our client.
//!
//! Every recorded exchange is replayed through the whole client: the request carries the recorded parameters, the
//! answer is the recorded one. An answer must be understood or refused with the recorded code; what was understood must
//! say, field by field, what the recording says. Fields that our types have and no recording shows stand in a list with
//! their reason. Recordings leave keys and signatures out, so signatures are not checked here.

mod commands;
mod compare;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Args)]
pub struct Options {
    /// The recording: one JSON object per line
    #[arg(env = "CAPSTAN_CLOUDSTACK_GOLDEN")]
    file: PathBuf,
    /// Only cases whose name contains this text
    #[arg(long)]
    only: Option<String>,
}

/// One recorded exchange.
#[derive(Debug, Deserialize)]
struct Case {
    case: String,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    http_status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    response: Value,
    #[serde(default)]
    job: Option<JobRecord>,
}

#[derive(Debug, Deserialize)]
struct JobRecord {
    #[serde(default, rename = "final")]
    end: Value,
}

/// What the replay of all cases showed.
#[derive(Debug, Default)]
struct Tally {
    answers: usize,
    refusals: usize,
    unreadable: usize,
    jobs: usize,
    values: usize,
    /// Commands that the client does not have, and how often they were recorded.
    strange: BTreeMap<String, usize>,
    /// Fields that our types have, and whether a recording showed them.
    fields: BTreeMap<String, bool>,
    faults: Vec<String>,
}

/// Fields that no recording shows, and why we have them all the same.
const UNRECORDED: &[(&str, &str)] = &[
    ("VirtualMachine.password", "only templates with a password script have one"),
    ("Nic.ip6address", "no IPv6 network was recorded"),
    ("Network.ip4routing", "no routed network was recorded"),
    ("AffinityGroup.virtualmachineIds", "no group with members was recorded"),
    ("Capability.apilimit", "the recorded server limits no requests"),
    (".projectid", "few things of projects were recorded"),
];

pub async fn run(options: &Options) -> Result<()> {
    let path = options.file.display().to_string();
    let text = std::fs::read_to_string(&options.file).with_context(|| path.clone())?;
    let mut tally = Tally::default();
    let mut cases = 0;
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case: Case = serde_json::from_str(line).with_context(|| format!("{path}:{}", at + 1))?;
        if options.only.as_ref().is_some_and(|only| !case.case.contains(only.as_str())) {
            continue;
        }
        cases += 1;
        commands::replay(&case, &mut tally).await;
    }
    report(&tally, cases, options.only.is_none())
}

fn report(tally: &Tally, cases: usize, whole: bool) -> Result<()> {
    for fault in &tally.faults {
        println!("{fault}");
    }
    let mut unrecorded = BTreeSet::new();
    let mut used = BTreeSet::new();
    for field in tally.fields.iter().filter(|(_, seen)| !**seen).map(|(field, _)| field) {
        match UNRECORDED.iter().position(|(known, _)| field.contains(known)) {
            Some(at) => {
                used.insert(at);
            }
            None => {
                unrecorded.insert(field);
            }
        }
    }
    let strange: Vec<String> = tally.strange.iter().map(|(name, times)| format!("{name} ×{times}")).collect();
    println!("not the client's: {}", strange.join(", "));
    println!(
        "cloudstack-golden: {cases} cases: {} answers and {} jobs read, {} refusals with their code, {} that are no \
         API's; {} values compared, {} fields recorded; {} faults",
        tally.answers,
        tally.jobs,
        tally.refusals,
        tally.unreadable,
        tally.values,
        tally.fields.values().filter(|seen| **seen).count(),
        tally.faults.len()
    );
    if tally.answers + tally.refusals == 0 {
        bail!("no case was replayed");
    }
    if whole {
        if !unrecorded.is_empty() {
            bail!("fields that no recording shows, without a reason: {unrecorded:?}");
        }
        if let Some(at) = (0..UNRECORDED.len()).find(|at| !used.contains(at)) {
            bail!("{} is recorded: its reason is out of date", UNRECORDED[at].0);
        }
    }
    match tally.faults.len() {
        0 => Ok(()),
        faults => bail!("{faults} faults"),
    }
}
