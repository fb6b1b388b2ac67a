//! Numbers per command, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::Error;

/// Bounds of answer times in seconds: contended commands wait in steps of five.
const BOUNDS: &[f64] = &[0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

#[derive(Debug, Default, Clone)]
struct Numbers {
    calls: u64,
    repeats: u64,
    errors: BTreeMap<String, u64>,
    buckets: [u64; BOUNDS.len()],
    seconds: f64,
}

/// What was asked of an endpoint.
#[derive(Debug, Default)]
pub struct Metrics {
    commands: Mutex<BTreeMap<&'static str, Numbers>>,
}

impl Metrics {
    pub(crate) fn exchanged(
        &self,
        command: &'static str,
        took: Duration,
        error: Option<&Error>,
        repeat: bool,
    ) {
        let mut commands = self.commands.lock();
        let numbers = commands.entry(command).or_default();
        numbers.calls += 1;
        numbers.repeats += u64::from(repeat);
        numbers.seconds += took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            numbers.buckets[at] += 1;
        }
        if let Some(error) = error {
            let label = match error.code() {
                Some(code) => code.number().to_string(),
                None => format!("{:?}", error.class()).to_lowercase(),
            };
            *numbers.errors.entry(label).or_default() += 1;
        }
    }

    /// How often a command was sent.
    pub fn calls(&self, command: &str) -> u64 {
        self.commands.lock().get(command).map_or(0, |numbers| numbers.calls)
    }

    /// How often any command was sent.
    pub fn all_calls(&self) -> u64 {
        self.commands.lock().values().map(|numbers| numbers.calls).sum()
    }

    /// Everything, with a label that says which endpoint it is.
    pub fn render(&self, endpoint: &str) -> String {
        let mut out = String::new();
        let commands = self.commands.lock();
        let endpoint = endpoint.replace(['\\', '"', '\n'], "_");
        let labels = |command: &str| format!("endpoint=\"{endpoint}\",command=\"{command}\"");
        head(&mut out, "cloudstack_requests_total", "counter", "Requests sent, per command");
        for (command, numbers) in &*commands {
            let _ = writeln!(out, "cloudstack_requests_total{{{}}} {}", labels(command), numbers.calls);
        }
        head(&mut out, "cloudstack_repeats_total", "counter", "Requests that repeat an earlier one");
        for (command, numbers) in &*commands {
            let _ = writeln!(out, "cloudstack_repeats_total{{{}}} {}", labels(command), numbers.repeats);
        }
        head(&mut out, "cloudstack_errors_total", "counter", "Requests that gave no result, per error code");
        for (command, numbers) in &*commands {
            for (code, count) in &numbers.errors {
                let labels = labels(command);
                let _ = writeln!(out, "cloudstack_errors_total{{{labels},code=\"{code}\"}} {count}");
            }
        }
        head(&mut out, "cloudstack_request_seconds", "histogram", "Time from request to answer");
        for (command, numbers) in &*commands {
            let labels = labels(command);
            let mut below = 0;
            for (bound, count) in BOUNDS.iter().zip(numbers.buckets) {
                below += count;
                let _ = writeln!(out, "cloudstack_request_seconds_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let calls = numbers.calls;
            let _ = writeln!(out, "cloudstack_request_seconds_bucket{{{labels},le=\"+Inf\"}} {calls}");
            let _ = writeln!(out, "cloudstack_request_seconds_sum{{{labels}}} {}", numbers.seconds);
            let _ = writeln!(out, "cloudstack_request_seconds_count{{{labels}}} {calls}");
        }
        out
    }
}

fn head(out: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}
