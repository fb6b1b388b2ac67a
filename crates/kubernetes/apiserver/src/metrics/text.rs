//! The Prometheus text format.

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

use super::{BUCKETS, Metrics, Requests, process};
use crate::front::Refusal;
use crate::parts::ServerParts;

/// All metrics in the text format.
pub(crate) fn expose(parts: &ServerParts) -> String {
    let mut page = Page(String::with_capacity(64 * 1024));
    page.requests(&parts.metrics);
    page.watches(&parts.metrics);
    page.connections(parts);
    page.objects(parts);
    page.store(parts);
    page.0.push_str(&parts.flow_control.metrics());
    page.process();
    for other in &*parts.metrics.others.lock() {
        page.0.push_str(&other());
    }
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, "", value);
    }

    fn requests(&mut self, metrics: &Metrics) {
        // A copy, so that requests are not blocked while the page is written.
        let requests = metrics.requests.lock().clone();
        const TOTAL: &str = "apiserver_request_total";
        self.family(TOTAL, "counter", "Number of requests, by verb, resource and response code.");
        for (labels, series) in &requests {
            for (code, count) in &series.codes {
                self.sample(TOTAL, &format!("code=\"{code}\",{labels}"), count);
            }
        }
        const DURATION: &str = "apiserver_request_duration_seconds";
        self.family(DURATION, "histogram", "Time from a request to the head of its answer.");
        for (labels, series) in &requests {
            self.histogram(DURATION, labels, series);
        }
        const IN_FLIGHT: &str = "apiserver_current_inflight_requests";
        self.family(IN_FLIGHT, "gauge", "Requests being answered, without watches.");
        for (kind, gauge) in [("mutating", &metrics.mutating), ("readOnly", &metrics.read_only)] {
            self.sample(IN_FLIGHT, &format!("request_kind=\"{kind}\""), gauge.load(Ordering::Relaxed));
        }
    }

    fn histogram(&mut self, name: &str, labels: &str, series: &Requests) {
        let bucket = format!("{name}_bucket");
        let mut count = 0;
        for (bound, fits) in BUCKETS.iter().zip(&series.buckets) {
            count += fits;
            #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
            let seconds = *bound as f64 / 1000.0;
            self.sample(&bucket, &format!("{labels},le=\"{seconds}\""), count);
        }
        count += series.buckets[BUCKETS.len()];
        self.sample(&bucket, &format!("{labels},le=\"+Inf\""), count);
        self.sample(&format!("{name}_sum"), labels, series.total.as_secs_f64());
        self.sample(&format!("{name}_count"), labels, count);
    }

    fn watches(&mut self, metrics: &Metrics) {
        const OPEN: &str = "apiserver_longrunning_requests";
        self.family(OPEN, "gauge", "Watches that are open.");
        for (labels, gauge) in metrics.watches.lock().iter() {
            self.sample(OPEN, labels, gauge.load(Ordering::Relaxed));
        }
        const EVENTS: &str = "apiserver_watch_events_total";
        self.family(EVENTS, "counter", "Events sent to watchers.");
        for (labels, counter) in metrics.events.lock().iter() {
            self.sample(EVENTS, labels, counter.load(Ordering::Relaxed));
        }
    }

    fn connections(&mut self, parts: &ServerParts) {
        let connections = &parts.connections;
        self.single("capstan_connections", "gauge", "Connections that are open.", connections.open());
        const REFUSED: &str = "capstan_connections_refused_total";
        self.family(REFUSED, "counter", "Connections closed at once, by the limit they met.");
        for refusal in Refusal::ALL {
            let labels = format!("reason=\"{}\"", refusal.label());
            self.sample(REFUSED, &labels, connections.refused(refusal));
        }
    }

    fn objects(&mut self, parts: &ServerParts) {
        const OBJECTS: &str = "apiserver_storage_objects";
        self.family(OBJECTS, "gauge", "Stored objects.");
        for bucket in parts.store.buckets() {
            let (group, plural) = bucket.split_once('/').unwrap_or(("", &bucket));
            let resource = crate::status::qualified(group, plural);
            let count = parts.store.snapshot(&bucket).count("");
            self.sample(OBJECTS, &format!("resource=\"{resource}\""), count);
        }
    }

    fn store(&mut self, parts: &ServerParts) {
        let store = parts.store.metrics();
        let revision = parts.store.revision();
        self.single("capstan_store_revision", "gauge", "Revision of the last committed change.", revision);
        self.single("capstan_store_entries", "gauge", "Live entries.", store.entries);
        self.single(
            "capstan_store_live_bytes",
            "gauge",
            "Keys and values of live entries.",
            store.live_bytes,
        );
        self.family("capstan_store_commit_batch_size", "summary", "Transactions committed with one sync.");
        self.sample("capstan_store_commit_batch_size_sum", "", store.transactions);
        self.sample("capstan_store_commit_batch_size_count", "", store.batches);
        self.family("capstan_store_sync_duration_seconds", "summary", "Time to write and sync the log.");
        let micros = store.log_micros;
        let seconds = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        self.sample("capstan_store_sync_duration_seconds_sum", "", seconds);
        self.sample("capstan_store_sync_duration_seconds_count", "", store.batches);
        self.single("capstan_store_log_bytes_total", "counter", "Bytes written to the log.", store.log_bytes);
        self.single("capstan_store_checkpoints_total", "counter", "Snapshots written.", store.checkpoints);
        self.single(
            "capstan_store_checkpoint_failures_total",
            "counter",
            "Snapshots that could not be written.",
            store.checkpoint_failures,
        );
        self.single(
            "capstan_store_damaged_files",
            "gauge",
            "Files that were damaged and not needed at the last start.",
            store.damaged_files,
        );
    }

    fn process(&mut self) {
        let Some(process) = process::read() else { return };
        let seconds = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
        self.single(
            "process_cpu_seconds_total",
            "counter",
            "Processor time used.",
            seconds(process.cpu_hundredths),
        );
        self.single(
            "process_resident_memory_bytes",
            "gauge",
            "Memory that is resident.",
            process.resident_bytes,
        );
        self.single("process_virtual_memory_bytes", "gauge", "Address space.", process.virtual_bytes);
        self.single("process_open_fds", "gauge", "Open files.", process.open_files);
        self.single("process_threads", "gauge", "Threads.", process.threads);
        self.single(
            "process_start_time_seconds",
            "gauge",
            "When the process started, since 1970.",
            seconds(process.start_hundredths),
        );
    }
}
