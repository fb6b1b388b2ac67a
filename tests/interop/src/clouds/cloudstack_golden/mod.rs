//! `cargo xtask cloudstack-golden`: our client reads recorded responses of a real CloudStack server.
//!
//! Every recorded exchange is replayed through the whole client: the request has the recorded parameters, the
//! response is the recorded one. The client must decode it or return an error with the recorded code, and every
//! decoded field must have the recorded value. Fields of our types that no recording has are listed with their
//! reason. Recordings contain no keys and signatures, so signatures are not checked here.

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

#[derive(Debug, Default)]
struct Tally {
    answers: usize,
    refusals: usize,
    unreadable: usize,
    jobs: usize,
    values: usize,
    /// Commands that the client does not have, with their number of recordings.
    unsupported: BTreeMap<String, usize>,
    /// Fields of our types, and whether a recording has them.
    fields: BTreeMap<String, bool>,
    faults: Vec<String>,
}

/// Fields that no recording has, and why our types have them.
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
    let unsupported: Vec<String> =
        tally.unsupported.iter().map(|(name, times)| format!("{name} ×{times}")).collect();
    println!("not supported by the client: {}", unsupported.join(", "));
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
            bail!("fields that no recording has, without a reason: {unrecorded:?}");
        }
        if let Some(at) = (0..UNRECORDED.len()).find(|at| !used.contains(at)) {
            bail!("{} is recorded: remove it from the list", UNRECORDED[at].0);
        }
    }
    match tally.faults.len() {
        0 => Ok(()),
        faults => bail!("{faults} faults"),
    }
}
