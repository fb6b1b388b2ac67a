//! Metrics of the server, with kube-apiserver's names where they exist.
//!
//! Labels come from the registry and from fixed lists, never from requests, and the number of label combinations is
//! limited, so that metrics cannot exhaust memory.

mod process;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use ::http::StatusCode;
use parking_lot::Mutex;

pub(crate) use text::expose;

use crate::http::info::RequestInfo;
use crate::registry::Resource;
use crate::route::Route;

/// Upper bounds of the request duration buckets in milliseconds: those of kube-apiserver.
const BUCKETS: [u64; 23] = [
    5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000,
    20_000, 30_000, 45_000, 60_000,
];

/// Limit of label combinations. Further ones are counted together.
const SERIES: usize = 10_000;

/// Labels of requests beyond [`SERIES`].
const OTHER: &str = "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"other\",scope=\"\",subresource=\"\",\
                     verb=\"other\",version=\"\"";

/// The counters of one server.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<Box<str>, Requests>>,
    read_only: AtomicI64,
    mutating: AtomicI64,
    watches: Mutex<BTreeMap<Box<str>, Arc<AtomicI64>>>,
    events: Mutex<BTreeMap<Box<str>, Arc<AtomicU64>>>,
    others: Mutex<Vec<Families>>,
}

/// Additional metrics in the text format, from other parts of the process.
type Families = Box<dyn Fn() -> String + Send + Sync>;

/// Requests of one label combination.
#[derive(Default, Clone)]
struct Requests {
    codes: Vec<(u16, u64)>,
    /// Requests by the first bucket they fit into. The last one is for the rest.
    buckets: [u64; BUCKETS.len() + 1],
    total: Duration,
}

/// Increments a gauge while it exists.
pub(crate) struct Held(Arc<AtomicI64>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request in flight.
pub(crate) struct InFlight<'a>(&'a AtomicI64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Adds metrics of another part of the process to the page.
    pub fn show_also(&self, page: Families) {
        self.others.lock().push(page);
    }

    /// Counts a request in flight. Watches are counted by [`Metrics::watch`] instead.
    pub fn begin(&self, info: &RequestInfo) -> Option<InFlight<'_>> {
        let gauge = match &*info.verb {
            "watch" => return None,
            "get" | "list" | "head" => &self.read_only,
            _ => &self.mutating,
        };
        gauge.fetch_add(1, Ordering::Relaxed);
        Some(InFlight(gauge))
    }

    /// Counts a finished request.
    pub fn answered(&self, labels: &Labels, resource: Option<&Resource>, code: StatusCode, took: Duration) {
        let labels = labels.text(resource);
        let mut requests = self.requests.lock();
        let full = requests.len() >= SERIES;
        let series = match requests.get_mut(labels.as_str()) {
            Some(series) => series,
            None if full => requests.entry(OTHER.into()).or_default(),
            None => requests.entry(labels.into()).or_default(),
        };
        match series.codes.iter_mut().find(|(known, _)| *known == code.as_u16()) {
            Some((_, count)) => *count += 1,
            None => series.codes.push((code.as_u16(), 1)),
        }
        let bucket = BUCKETS.iter().position(|bound| took <= Duration::from_millis(*bound));
        series.buckets[bucket.unwrap_or(BUCKETS.len())] += 1;
        series.total += took;
    }

    /// Counts a watch while it lasts. The returned counter is for its events.
    pub fn watch(&self, route: &Route) -> (Held, Arc<AtomicU64>) {
        let resource = route.resource();
        let scope = match (route.name(), route.namespace()) {
            ("", "") => "cluster",
            ("", _) => "namespace",
            _ => "resource",
        };
        let mut labels = format!("component=\"apiserver\",{}", resource_labels(resource));
        let _ = write!(labels, ",scope=\"{scope}\",subresource=\"\",verb=\"WATCH\"");
        let gauge = self.watches.lock().entry(labels.into()).or_default().clone();
        gauge.fetch_add(1, Ordering::Relaxed);
        let events = self.events.lock().entry(resource_labels(resource).into()).or_default().clone();
        (Held(gauge), events)
    }
}

fn resource_labels(resource: &Resource) -> String {
    format!("group=\"{}\",resource=\"{}\",version=\"{}\"", resource.group, resource.plural, resource.version)
}

/// Labels of a request except for the resource, which is only known after routing.
pub(crate) struct Labels {
    verb: &'static str,
    scope: &'static str,
    subresource: String,
    document: &'static str,
    dry_run: &'static str,
}

impl Labels {
    /// `apply` is whether a PATCH is server-side apply.
    pub fn new(info: &RequestInfo, apply: bool, dry_run: bool) -> Self {
        let verb = match &*info.verb {
            "get" | "head" => "GET",
            "list" => "LIST",
            "watch" => "WATCH",
            "create" | "post" => "POST",
            "update" | "put" => "PUT",
            "patch" if apply => "APPLY",
            "patch" => "PATCH",
            "delete" => "DELETE",
            "deletecollection" => "DELETECOLLECTION",
            _ => "other",
        };
        Self {
            verb,
            scope: scope(info),
            subresource: info.subresource.clone(),
            document: if info.is_resource { "" } else { document(&info.path) },
            dry_run: if dry_run { "All" } else { "" },
        }
    }

    fn text(&self, resource: Option<&Resource>) -> String {
        let (group, plural, version) = match resource {
            Some(r) => (r.group.as_str(), r.plural.as_str(), r.version.as_str()),
            None => ("", "", ""),
        };
        let known = |name: &&str| resource.is_some_and(|r| r.subresources.iter().any(|s| s.name == **name));
        let subresource = Some(self.subresource.as_str()).filter(known).unwrap_or(self.document);
        let scope = resource.map_or("", |_| self.scope);
        // Of every request: appended, not formatted.
        let mut text = String::with_capacity(192);
        text.push_str("component=\"apiserver\"");
        for (name, value) in [
            (",dry_run=\"", self.dry_run),
            (",group=\"", group),
            (",resource=\"", plural),
            (",scope=\"", scope),
            (",subresource=\"", subresource),
            (",verb=\"", self.verb),
            (",version=\"", version),
        ] {
            text.push_str(name);
            text.push_str(value);
            text.push('"');
        }
        text
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    if !info.name.is_empty() || info.verb == "create" {
        "resource"
    } else if !info.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    }
}

/// The label of a non-resource path.
fn document(path: &str) -> &'static str {
    const DOCUMENTS: [&str; 9] = [
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    let found = DOCUMENTS.into_iter().find(|document| {
        let rest = path.strip_prefix(document);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    found.unwrap_or_default()
}
