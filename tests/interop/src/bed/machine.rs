//! Share of the CPU that other programs used during a run.

use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time of the whole machine since boot.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    busy: Duration,
    whole: Duration,
}

impl Machine {
    /// Reads `/proc/stat`.
    pub fn now() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
        Self::parse(&text).context("malformed /proc/stat")
    }

    fn parse(text: &str) -> Option<Self> {
        let ticks: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            // Guest time is already part of user time.
            .take(8)
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        let whole: u64 = ticks.iter().sum();
        // Idle, and waiting for I/O.
        let idle = ticks.get(3)? + ticks.get(4)?;
        let time = |ticks: u64| Duration::from_millis(ticks * 10);
        Some(Self { busy: time(whole - idle), whole: time(whole) })
    }

    /// Share of the machine that other programs used since `then`, given that ours used `own`.
    pub fn used_by_others_since(&self, then: &Self, own: Duration) -> f64 {
        let others = self.busy.saturating_sub(then.busy).saturating_sub(own);
        let whole = self.whole.saturating_sub(then.whole);
        if whole.is_zero() { 0.0 } else { others.as_secs_f64() / whole.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_others_is_total_minus_idle_minus_ours() {
        let then = Machine::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 …").unwrap();
        let now = Machine::parse("cpu  400 0 200 1300 100 0 0 0 0 0\n").unwrap();
        let share = now.used_by_others_since(&then, Duration::from_secs(1));
        assert!((share - 0.3).abs() < 1e-9, "{share}");
    }
}
