//! Prints the figures as tables.

use std::time::Duration;

use super::planes::Kind;
use super::run::Outcome;
use crate::text::{human_bytes, human_duration, table};

/// Prints totals, costs per cluster, reconciles per controller, and ratios if a peer was measured.
pub fn print(outcomes: &[Outcome]) {
    println!("\n{}", table(&totals(outcomes)));
    println!("per cluster, without the baseline of the plane\n{}", table(&per_cluster(outcomes)));
    println!("reconciles per cluster, by controller\n{}", table(&reconciles(outcomes)));
    println!("processes\n{}", table(&processes(outcomes)));
    let ratios = ratios(outcomes);
    if ratios.len() > 1 {
        println!("ratio of ours to upstream's\n{}", table(&ratios));
    }
    let changes = changes(outcomes);
    if changes.len() > 1 {
        println!("compared with the baseline\n{}", table(&changes));
    }
    for outcome in outcomes {
        println!(
            "{}: the load generator used {} of CPU time, other programs used {:.0} % of the machine",
            title(outcome),
            human_duration(outcome.cpu_of_load),
            outcome.others * 100.0
        );
    }
    println!("writes are revisions of the store; idle writes exclude Leases");
}

fn title(outcome: &Outcome) -> String {
    let baseline = if outcome.is_baseline { ", baseline" } else { "" };
    format!("{} × {}{baseline}", outcome.clusters, outcome.kind.name())
}

fn head(outcomes: &[Outcome], first: &str) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(outcomes.iter().map(title)).collect()
}

/// For a plane whose metrics lack the figure.
const NOT_EXPORTED: &str = "not exported";

type Cell = (&'static str, fn(&Outcome) -> String);

fn rows(outcomes: &[Outcome], cells: &[Cell]) -> Vec<Vec<String>> {
    let mut rows = vec![head(outcomes, "")];
    for (name, cell) in cells {
        rows.push(std::iter::once((*name).to_owned()).chain(outcomes.iter().map(cell)).collect());
    }
    rows
}

fn share(cpu: Duration, time: Duration) -> f64 {
    cpu.as_secs_f64() / time.as_secs_f64() * 100.0
}

fn totals(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    rows(
        outcomes,
        &[
            ("all Available after", |one| human_duration(one.available)),
            ("CPU time until then", |one| human_duration(one.cpu)),
            ("idle after another", |one| human_duration(one.settled)),
            ("memory before", |one| human_bytes(one.resident_before)),
            ("memory, peak", |one| human_bytes(one.peak)),
            ("memory when idle", |one| human_bytes(one.resident_idle)),
            ("writes when idle", |one| format!("{} in {}", one.idle.writes, human_duration(one.idle.time))),
            ("Lease writes when idle", |one| one.idle.lease_writes.to_string()),
            ("reconciles when idle", |one| {
                if one.reconciles.is_empty() {
                    NOT_EXPORTED.to_owned()
                } else {
                    one.idle.reconciles.to_string()
                }
            }),
            ("CPU when idle", |one| format!("{:.2} % of a core", share(one.idle.cpu, one.idle.time))),
            ("all deleted after", |one| human_duration(one.deleted)),
        ],
    )
}

fn each(outcome: &Outcome, value: f64) -> f64 {
    value / outcome.clusters.max(1) as f64
}

fn per_cluster(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    rows(
        outcomes,
        &[
            ("time to Available", |one| format!("{:.1} ms", each(one, one.available.as_secs_f64() * 1e3))),
            ("processor", |one| format!("{:.1} ms", each(one, one.cpu.as_secs_f64() * 1e3))),
            ("memory, peak", |one| {
                human_bytes(each(one, one.peak.saturating_sub(one.resident_before) as f64) as u64)
            }),
            ("memory when idle", |one| {
                human_bytes(each(one, one.resident_idle.saturating_sub(one.resident_before) as f64) as u64)
            }),
            ("reconciles", |one| {
                let all: u64 = one.reconciles.iter().map(|(_, count)| count).sum();
                if one.reconciles.is_empty() {
                    NOT_EXPORTED.to_owned()
                } else {
                    format!("{:.1}", each(one, all as f64))
                }
            }),
            ("writes", |one| format!("{:.1}", each(one, one.writes as f64))),
            ("time to delete", |one| format!("{:.1} ms", each(one, one.deleted.as_secs_f64() * 1e3))),
        ],
    )
}

fn reconciles(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let mut names: Vec<&str> =
        outcomes.iter().flat_map(|one| one.reconciles.iter().map(|(name, _)| name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = vec![head(outcomes, "controller")];
    for name in names {
        let count = |one: &Outcome| match one.reconciles.iter().find(|(known, _)| known == name) {
            Some((_, count)) => format!("{:.1}", each(one, *count as f64)),
            None => String::new(),
        };
        rows.push(std::iter::once(name.to_owned()).chain(outcomes.iter().map(count)).collect());
    }
    rows
}

fn processes(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let mut rows = vec![["plane", "process", "peak", "total CPU time"].map(String::from).to_vec()];
    for outcome in outcomes {
        for (name, usage) in &outcome.processes {
            let cells = [title(outcome), name.clone(), human_bytes(usage.peak), human_duration(usage.cpu)];
            rows.push(cells.to_vec());
        }
    }
    rows
}

const RATIO_HEAD: [&str; 6] = ["", "wall time", "CPU time", "peak memory", "CPU when idle", "deletion"];

/// A row below [`RATIO_HEAD`].
fn ratio_row(ours: &Outcome, theirs: &Outcome, shown: fn(ours: f64, theirs: f64) -> String) -> Vec<String> {
    let values: [fn(&Outcome) -> f64; 5] = [
        |one| one.available.as_secs_f64(),
        |one| one.cpu.as_secs_f64(),
        |one| one.peak as f64,
        |one| one.idle.cpu.as_secs_f64(),
        |one| one.deleted.as_secs_f64(),
    ];
    let cells = values.iter().map(|value| shown(value(ours), value(theirs)));
    std::iter::once(title(ours)).chain(cells).collect()
}

/// Ours divided by theirs, for every number of clusters that both ran.
fn ratios(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let mut rows = vec![RATIO_HEAD.map(String::from).to_vec()];
    for theirs in outcomes.iter().filter(|one| one.kind == Kind::Upstream) {
        let same = |one: &&Outcome| one.kind != Kind::Upstream && one.clusters == theirs.clusters;
        for ours in outcomes.iter().filter(same) {
            rows.push(ratio_row(ours, theirs, |ours, theirs| match ours {
                0.0 => "0".to_owned(),
                ours => format!("1/{:.1}", theirs / ours),
            }));
        }
    }
    rows
}

/// How much more or less than the baseline each plane takes.
fn changes(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let mut rows = vec![RATIO_HEAD.map(String::from).to_vec()];
    for before in outcomes.iter().filter(|one| one.is_baseline) {
        let same =
            |one: &&Outcome| !one.is_baseline && one.kind == before.kind && one.clusters == before.clusters;
        let Some(ours) = outcomes.iter().find(same) else { continue };
        rows.push(ratio_row(ours, before, |ours, before| match before {
            0.0 => "no baseline".to_owned(),
            before => format!("{:+.1} %", (ours / before - 1.0) * 100.0),
        }));
    }
    rows
}
