//! Numbers per kind of request, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::Call;
use crate::error::Error;
use crate::service::Service;

/// Bounds of answer times in seconds.
const BOUNDS: &[f64] = &[0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

#[derive(Debug, Default, Clone)]
struct Numbers {
    requests: u64,
    repeats: u64,
    errors: BTreeMap<String, u64>,
    buckets: [u64; BOUNDS.len()],
    seconds: f64,
}

/// What was asked of the services of a cloud. Clients of one cloud may share it.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By service, and by method and collection.
    numbers: Mutex<BTreeMap<(Service, String), Numbers>>,
}

/// Method and collection, such as `POST servers`. Ids of things are left out: series must not grow with them.
fn command(call: &Call) -> String {
    let mut parts = call.path.split('/').filter(|part| !matches!(*part, "" | "lbaas"));
    format!("{} {}", call.method, parts.next().unwrap_or("versions"))
}

impl Metrics {
    pub(crate) fn exchanged(&self, call: &Call, took: Duration, error: Option<&Error>, repeat: bool) {
        let mut all = self.numbers.lock();
        let numbers = all.entry((call.service, command(call))).or_default();
        numbers.requests += 1;
        numbers.repeats += u64::from(repeat);
        numbers.seconds += took.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            numbers.buckets[at] += 1;
        }
        if let Some(error) = error {
            let code = match error.status() {
                Some(status) => status.to_string(),
                None => format!("{:?}", error.class()).to_lowercase(),
            };
            *numbers.errors.entry(code).or_default() += 1;
        }
    }

    /// Requests sent so far.
    pub fn requests(&self) -> u64 {
        self.numbers.lock().values().map(|numbers| numbers.requests).sum()
    }

    /// The numbers of several clouds, each with the URL of its identity service and its region.
    pub fn render<'a>(clouds: impl IntoIterator<Item = ((&'a str, &'a str), &'a Self)>) -> String {
        let mut all = Vec::new();
        for ((endpoint, region), metrics) in clouds {
            let (endpoint, region) = (label(endpoint), label(region));
            for ((service, command), numbers) in &*metrics.numbers.lock() {
                let labels = format!(
                    "endpoint=\"{endpoint}\",region=\"{region}\",service=\"{service}\",command=\"{service} {command}\""
                );
                all.push((labels, numbers.clone()));
            }
        }
        let mut out = String::new();
        if all.is_empty() {
            return out;
        }
        head(&mut out, "openstack_requests_total", "counter", "Requests sent");
        for (labels, numbers) in &all {
            let _ = writeln!(out, "openstack_requests_total{{{labels}}} {}", numbers.requests);
        }
        head(&mut out, "openstack_repeats_total", "counter", "Requests that repeat an earlier one");
        for (labels, numbers) in &all {
            let _ = writeln!(out, "openstack_repeats_total{{{labels}}} {}", numbers.repeats);
        }
        head(&mut out, "openstack_errors_total", "counter", "Requests without a result, by status or cause");
        for (labels, numbers) in &all {
            for (code, count) in &numbers.errors {
                let _ = writeln!(out, "openstack_errors_total{{{labels},code=\"{code}\"}} {count}");
            }
        }
        head(&mut out, "openstack_request_seconds", "histogram", "Time from request to answer");
        for (labels, numbers) in &all {
            let mut below = 0;
            for (bound, count) in BOUNDS.iter().zip(numbers.buckets) {
                below += count;
                let _ = writeln!(out, "openstack_request_seconds_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let requests = numbers.requests;
            let _ = writeln!(out, "openstack_request_seconds_bucket{{{labels},le=\"+Inf\"}} {requests}");
            let _ = writeln!(out, "openstack_request_seconds_sum{{{labels}}} {}", numbers.seconds);
            let _ = writeln!(out, "openstack_request_seconds_count{{{labels}}} {requests}");
        }
        out
    }
}

fn label(text: &str) -> String {
    text.replace(['\\', '"', '\n'], "_")
}

fn head(out: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::client::Body;
    use crate::error::ErrorKind;

    #[test]
    fn requests_errors_and_times_are_counted_by_service_method_and_collection() {
        let metrics = Metrics::default();
        let get = Call::read(Service::Compute, "servers/0a5c9e0e-2f4b-4f5e-9f0a-0123456789ab");
        let post = Call::change(Service::LoadBalancer, Method::POST, "lbaas/pools", Body::None);
        metrics.exchanged(&get, Duration::from_millis(30), None, false);
        metrics.exchanged(&get, Duration::from_secs(300), None, true);
        let late = post.error(ErrorKind::TimedOut(Duration::from_secs(1)));
        metrics.exchanged(&post, Duration::from_secs(1), Some(&late), false);
        assert_eq!(metrics.requests(), 3);
        let other = Metrics::default();
        let text = Metrics::render([(("http://k/v3", "R"), &metrics), (("http://l", ""), &other)]);
        let labels = |service: &str, command: &str| {
            format!(
                "{{endpoint=\"http://k/v3\",region=\"R\",service=\"{service}\",command=\"{service} {command}\""
            )
        };
        let (servers, pools) = (labels("compute", "GET servers"), labels("load-balancer", "POST pools"));
        for line in [
            format!("openstack_requests_total{servers}}} 2"),
            format!("openstack_repeats_total{servers}}} 1"),
            format!("openstack_errors_total{pools},code=\"network\"}} 1"),
            format!("openstack_request_seconds_bucket{servers},le=\"0.05\"}} 1"),
            format!("openstack_request_seconds_bucket{servers},le=\"120\"}} 1"),
            format!("openstack_request_seconds_bucket{servers},le=\"+Inf\"}} 2"),
            format!("openstack_request_seconds_count{pools}}} 1"),
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.matches("# TYPE openstack_requests_total").count(), 1, "once for all clouds");
        assert_eq!(Metrics::render([(("http://l", ""), &other)]), "");
    }
}
