//! Metrics under controller-runtime's names, so that dashboards made for it work.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Bounds of reconcile times in seconds, as controller-runtime has them.
const RECONCILE_BOUNDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Bounds of queue times in seconds, as client-go has them.
const QUEUE_BOUNDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

#[derive(Debug, Clone, Default)]
struct Histogram {
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    fn add(&mut self, bounds: &[f64], value: Duration) {
        self.counts.resize(bounds.len(), 0);
        let seconds = value.as_secs_f64();
        if let Some(at) = bounds.iter().position(|bound| seconds <= *bound) {
            self.counts[at] += 1;
        }
        self.sum += seconds;
        self.count += 1;
    }

    fn write(&self, out: &mut String, name: &str, labels: &str, bounds: &[f64]) {
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(self.counts.iter().chain(std::iter::repeat(&0))) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", self.count);
    }
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Success,
    /// Requeued after a time.
    RequeueAfter,
    Error,
    /// The same effects were decided again and again; retried like an error.
    NotSettled,
    /// The controller panicked; retried like an error.
    Panic,
}

impl Ending {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::NotSettled | Self::Panic => "error",
        }
    }
}

#[derive(Debug, Default)]
pub struct QueueMetrics(Mutex<QueueNumbers>);

#[derive(Debug, Default, Clone)]
struct QueueNumbers {
    adds: u64,
    retries: u64,
    depth: u64,
    /// When each key that is worked on was picked, and how many were at that moment.
    busy: BTreeMap<Instant, u64>,
    waited: Histogram,
    worked: Histogram,
}

impl QueueMetrics {
    pub(crate) fn added(&self) {
        let mut numbers = self.0.lock();
        numbers.adds += 1;
        numbers.depth += 1;
    }

    pub(crate) fn retried(&self) {
        self.0.lock().retries += 1;
    }

    pub(crate) fn picked(&self, now: Instant, waited: Duration) {
        let mut numbers = self.0.lock();
        numbers.depth = numbers.depth.saturating_sub(1);
        *numbers.busy.entry(now).or_default() += 1;
        numbers.waited.add(QUEUE_BOUNDS, waited);
    }

    pub(crate) fn worked(&self, picked: Instant, took: Duration) {
        let mut numbers = self.0.lock();
        if let Some(count) = numbers.busy.get_mut(&picked) {
            *count -= 1;
            if *count == 0 {
                numbers.busy.remove(&picked);
            }
        }
        numbers.worked.add(QUEUE_BOUNDS, took);
    }
}

impl QueueNumbers {
    /// Seconds spent on what is not done yet.
    fn unfinished(&self, now: Instant) -> f64 {
        let spent = self.busy.iter().map(|(picked, count)| (now - *picked).as_secs_f64() * *count as f64);
        // The sum of no floats is minus zero.
        spent.fold(0.0, |all, one| all + one)
    }

    /// Seconds that the oldest of it has taken.
    fn longest(&self, now: Instant) -> f64 {
        self.busy.first_key_value().map_or(0.0, |(picked, _)| (now - *picked).as_secs_f64())
    }
}

/// Metrics of one controller.
#[derive(Debug, Default)]
struct ControllerNumbers {
    endings: BTreeMap<&'static str, u64>,
    errors: u64,
    panics: u64,
    not_settled: u64,
    time: Histogram,
    active: u64,
    most: u64,
}

/// The metrics of a plane, per controller.
#[derive(Debug, Default)]
pub struct Metrics {
    queues: Mutex<BTreeMap<&'static str, Arc<QueueMetrics>>>,
    controllers: Mutex<BTreeMap<&'static str, ControllerNumbers>>,
}

impl Metrics {
    pub(crate) fn queue(&self, controller: &'static str) -> Arc<QueueMetrics> {
        self.queues.lock().entry(controller).or_default().clone()
    }

    pub(crate) fn begun(&self, controller: &'static str, most: usize) {
        let mut controllers = self.controllers.lock();
        let numbers = controllers.entry(controller).or_default();
        numbers.active += 1;
        numbers.most = most as u64;
    }

    pub(crate) fn ended(&self, controller: &'static str, ending: Ending, took: Duration) {
        let mut controllers = self.controllers.lock();
        let numbers = controllers.entry(controller).or_default();
        numbers.active = numbers.active.saturating_sub(1);
        *numbers.endings.entry(ending.label()).or_default() += 1;
        if matches!(ending, Ending::Error | Ending::NotSettled | Ending::Panic) {
            numbers.errors += 1;
        }
        if ending == Ending::NotSettled {
            numbers.not_settled += 1;
        }
        if ending == Ending::Panic {
            numbers.panics += 1;
        }
        numbers.time.add(RECONCILE_BOUNDS, took);
    }

    /// The number of reconciles of a controller so far.
    pub fn reconciles(&self, controller: &str) -> u64 {
        self.controllers.lock().get(controller).map_or(0, |numbers| numbers.endings.values().sum())
    }

    /// The metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let controllers = self.controllers.lock();
        head(
            &mut out,
            "controller_runtime_reconcile_total",
            "counter",
            "Reconciles per controller and result",
        );
        for (name, numbers) in &*controllers {
            for result in ["error", "requeue", "requeue_after", "success"] {
                let count = numbers.endings.get(result).copied().unwrap_or(0);
                let _ = writeln!(
                    out,
                    "controller_runtime_reconcile_total{{controller=\"{name}\",result=\"{result}\"}} {count}"
                );
            }
        }
        let mut simple = |metric: &str, kind: &str, help: &str, value: fn(&ControllerNumbers) -> u64| {
            head(&mut out, metric, kind, help);
            for (name, numbers) in &*controllers {
                let _ = writeln!(out, "{metric}{{controller=\"{name}\"}} {}", value(numbers));
            }
        };
        simple("controller_runtime_reconcile_errors_total", "counter", "Failed reconciles", |n| n.errors);
        simple("controller_runtime_reconcile_panics_total", "counter", "Reconciles that panicked", |n| {
            n.panics
        });
        simple(
            "capstan_reconcile_not_settled_total",
            "counter",
            "Reconciles given up because they repeated the same change",
            |n| n.not_settled,
        );
        simple("controller_runtime_active_workers", "gauge", "Reconciles under way", |n| n.active);
        simple("controller_runtime_max_concurrent_reconciles", "gauge", "Most reconciles at a time", |n| {
            n.most
        });
        head(&mut out, "controller_runtime_reconcile_time_seconds", "histogram", "Time of one reconcile");
        for (name, numbers) in &*controllers {
            let labels = format!("controller=\"{name}\"");
            let metric = "controller_runtime_reconcile_time_seconds";
            numbers.time.write(&mut out, metric, &labels, RECONCILE_BOUNDS);
        }
        drop(controllers);
        self.render_queues(&mut out);
        out
    }

    fn render_queues(&self, out: &mut String) {
        let queues: Vec<(&str, QueueNumbers)> =
            self.queues.lock().iter().map(|(name, queue)| (*name, queue.0.lock().clone())).collect();
        let mut simple = |metric: &str, kind: &str, help: &str, value: fn(&QueueNumbers) -> u64| {
            head(out, metric, kind, help);
            for (name, numbers) in &queues {
                let value = value(numbers);
                let _ = writeln!(out, "{metric}{{controller=\"{name}\",name=\"{name}\"}} {value}");
            }
        };
        simple("workqueue_adds_total", "counter", "Keys added", |n| n.adds);
        simple("workqueue_depth", "gauge", "Keys waiting", |n| n.depth);
        simple("workqueue_retries_total", "counter", "Keys to be added again after a time", |n| n.retries);
        let now = Instant::now();
        for (metric, help, value) in [
            (
                "workqueue_unfinished_work_seconds",
                "Time spent on keys that are being worked on",
                QueueNumbers::unfinished as fn(&QueueNumbers, Instant) -> f64,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Time spent on the key that has been worked on the longest",
                QueueNumbers::longest,
            ),
        ] {
            head(out, metric, "gauge", help);
            for (name, numbers) in &queues {
                let value = value(numbers, now);
                let _ = writeln!(out, "{metric}{{controller=\"{name}\",name=\"{name}\"}} {value}");
            }
        }
        for (metric, help, histogram) in [
            (
                "workqueue_queue_duration_seconds",
                "Time a key waited",
                (|n: &QueueNumbers| n.waited.clone()) as fn(&QueueNumbers) -> Histogram,
            ),
            ("workqueue_work_duration_seconds", "Time a key was worked on", |n| n.worked.clone()),
        ] {
            head(out, metric, "histogram", help);
            for (name, numbers) in &queues {
                let labels = format!("controller=\"{name}\",name=\"{name}\"");
                histogram(numbers).write(out, metric, &labels, QUEUE_BOUNDS);
            }
        }
    }
}

fn head(out: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn metrics_carry_controller_runtimes_names_and_cumulative_buckets() {
        let metrics = Metrics::default();
        let queue = metrics.queue("widget");
        let now = Instant::now();
        for _ in 0..3 {
            queue.added();
            queue.picked(now, Duration::from_millis(5));
        }
        queue.worked(now, Duration::from_millis(20));
        tokio::time::advance(Duration::from_secs(4)).await;
        metrics.begun("widget", 4);
        metrics.ended("widget", Ending::Error, Duration::from_millis(20));
        metrics.begun("widget", 4);
        metrics.ended("widget", Ending::Panic, Duration::from_millis(20));
        let text = metrics.render();
        for line in [
            "controller_runtime_reconcile_total{controller=\"widget\",result=\"error\"} 2",
            "controller_runtime_reconcile_total{controller=\"widget\",result=\"success\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"widget\"} 2",
            "controller_runtime_reconcile_panics_total{controller=\"widget\"} 1",
            "controller_runtime_active_workers{controller=\"widget\"} 0",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"widget\",le=\"0.01\"} 0",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"widget\",le=\"0.025\"} 2",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"widget\",le=\"60\"} 2",
            "controller_runtime_max_concurrent_reconciles{controller=\"widget\"} 4",
            "workqueue_adds_total{controller=\"widget\",name=\"widget\"} 3",
            "workqueue_depth{controller=\"widget\",name=\"widget\"} 0",
            "workqueue_queue_duration_seconds_count{controller=\"widget\",name=\"widget\"} 3",
            "workqueue_work_duration_seconds_count{controller=\"widget\",name=\"widget\"} 1",
            "workqueue_unfinished_work_seconds{controller=\"widget\",name=\"widget\"} 8",
            "workqueue_longest_running_processor_seconds{controller=\"widget\",name=\"widget\"} 4",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }
}
