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

impl Numbers {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.repeats += other.repeats;
        self.seconds += other.seconds;
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += count;
        }
    }
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
        render_metrics([(endpoint, self)])
    }
}

/// Everything that was asked of several endpoints. Those of one URL are one endpoint: Prometheus refuses a text that has a
/// series or the head of a metric twice.
pub fn render_metrics<'a>(endpoints: impl IntoIterator<Item = (&'a str, &'a Metrics)>) -> String {
    let mut all = BTreeMap::<String, Numbers>::new();
    for (endpoint, metrics) in endpoints {
        let endpoint = endpoint.replace(['\\', '"', '\n'], "_");
        for (command, numbers) in &*metrics.commands.lock() {
            all.entry(format!("endpoint=\"{endpoint}\",command=\"{command}\"")).or_default().add(numbers);
        }
    }
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    head(&mut out, "cloudstack_requests_total", "counter", "Requests sent, per command");
    for (labels, numbers) in &all {
        let _ = writeln!(out, "cloudstack_requests_total{{{labels}}} {}", numbers.calls);
    }
    head(&mut out, "cloudstack_repeats_total", "counter", "Requests that repeat an earlier one");
    for (labels, numbers) in &all {
        let _ = writeln!(out, "cloudstack_repeats_total{{{labels}}} {}", numbers.repeats);
    }
    head(&mut out, "cloudstack_errors_total", "counter", "Requests that gave no result, per error code");
    for (labels, numbers) in &all {
        for (code, count) in &numbers.errors {
            let _ = writeln!(out, "cloudstack_errors_total{{{labels},code=\"{code}\"}} {count}");
        }
    }
    head(&mut out, "cloudstack_request_seconds", "histogram", "Time from request to answer");
    for (labels, numbers) in &all {
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

fn head(out: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Effect, ErrorKind};

    #[test]
    fn each_metric_has_one_head_and_each_series_one_line_however_many_endpoints_there_are() {
        let endpoint = |command: &'static str| {
            let metrics = Metrics::default();
            let error = Error::new(command, Effect::of(command), ErrorKind::TimedOut(Duration::from_secs(1)));
            metrics.exchanged(command, Duration::from_millis(30), Some(&error), false);
            metrics
        };
        let (first, other, unverified) =
            (endpoint("listZones"), endpoint("listZones"), endpoint("listZones"));
        let text = render_metrics([("https://a", &first), ("https://b", &other), ("https://a", &unverified)]);
        let mut heads = BTreeSet::new();
        let mut series = BTreeSet::new();
        for line in text.lines() {
            let fresh = match line.starts_with('#') {
                true => heads.insert(line.split(' ').take(3).collect::<Vec<_>>()),
                false => series.insert(line.rsplit_once(' ').expect("a value").0),
            };
            assert!(fresh, "twice: {line}");
        }
        assert_eq!(heads.len(), 8, "{text}");
        let asked = "cloudstack_requests_total{endpoint=\"https://a\",command=\"listZones\"} 2";
        assert!(text.lines().any(|line| line == asked), "{text}");
        assert_eq!(render_metrics([]), "");
    }
}
