//! The table of results.

use crate::plan::{Kind, Plan};
use crate::record::Run;

/// Results of a scenario.
pub struct Row {
    scenario: &'static str,
    effects: usize,
    runs: Vec<(Kind, usize, usize)>,
    /// Mean CPU seconds per run.
    cpu: f64,
}

impl Row {
    pub fn new(plan: &Plan, scenario: &'static str, effects: usize, runs: &[Run]) -> Self {
        let count = |kind: Kind| {
            let of_kind = || runs.iter().filter(move |run| run.kind == kind);
            (kind, of_kind().count(), of_kind().filter(|run| run.broken.is_some()).count())
        };
        let cpu: u64 = runs.iter().map(|run| run.cpu).sum();
        let cpu = cpu as f64 / 1000.0 / runs.len().max(1) as f64;
        Self { scenario, effects, runs: plan.kinds.iter().map(|kind| count(*kind)).collect(), cpu }
    }
}

/// Numbers of runs and of failed ones.
pub fn totals(rows: &[Row]) -> (usize, usize) {
    let runs = || rows.iter().flat_map(|row| &row.runs);
    (runs().map(|(_, runs, _)| runs).sum(), runs().map(|(_, _, broken)| broken).sum())
}

/// Prints the table: runs and, after a slash, failed ones; then CPU seconds per run.
pub fn print(rows: &[Row], head: bool) {
    if head && let Some(row) = rows.first() {
        let kinds: String = row.runs.iter().map(|(kind, ..)| format!("{:>15}", kind.name())).collect();
        println!("{:<20}{:>8}{kinds}{:>10}", "scenario", "effects", "s/run");
    }
    for row in rows {
        let runs: String = row
            .runs
            .iter()
            .map(|(_, runs, broken)| format!("{:>15}", format!("{runs} / {broken}")))
            .collect();
        println!("{:<20}{:>8}{runs}{:>10.2}", row.scenario, row.effects, row.cpu);
    }
}
