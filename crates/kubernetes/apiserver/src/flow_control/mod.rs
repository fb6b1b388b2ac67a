//! API priority and fairness: which requests run now, which wait, and which are rejected.
//!
//! ```text
//! request ─► schemas.rs: the first matching FlowSchema ─► its priority level ─► scheduler.rs ─┬─► a seat
//!                                                                     │                      ├─► waits in a queue
//!                                                                     └─ exempt: no limit     └─► 429
//! ```
//!
//! The configuration is what is stored, read again when it changes. A watch needs its seat until its response starts,
//! everything else until its response is complete.

mod levels;
mod scheduler;
mod schemas;

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::auth::{ObjectSource, User, bucket};
use crate::http::info::RequestInfo;
use crate::http::names;
use crate::http::options::Query;
use crate::reply::{self, Reply};
use levels::Level;
use scheduler::{Admitted, Scheduler, SharedScheduler};
use schemas::FlowSchema;

/// Longest time in a queue: upstream's quarter of the default request timeout.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Objects of a list that take one more seat, and the most seats of one request.
const OBJECTS_PER_SEAT: usize = 100;
const MAX_SEATS: usize = 10;

/// Limits of concurrent requests. Together they are the seats that priority levels share; zero means no limit for its
/// kind of requests, and the other limit holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightLimits {
    /// For read-only requests.
    pub read_only: usize,
    /// For all others.
    pub mutating: usize,
}

impl Default for InFlightLimits {
    /// The defaults of kube-apiserver.
    fn default() -> Self {
        Self { read_only: 400, mutating: 200 }
    }
}

/// The stored configuration.
struct Configuration {
    /// Revisions of schemas and levels.
    revisions: (u64, u64),
    /// By precedence.
    schemas: Vec<(FlowSchema, Arc<Level>)>,
}

/// Priority and fairness of one server.
pub(crate) struct FlowControl {
    source: Arc<dyn ObjectSource>,
    current: ArcSwapOption<Configuration>,
    reading: Mutex<()>,
    limits: InFlightLimits,
    /// `None` without a limit.
    scheduler: Option<SharedScheduler>,
}

/// How a request was classified, for the headers of its response.
#[derive(Debug, Clone)]
pub(crate) struct Classification {
    schema: Option<HeaderValue>,
    level: Option<HeaderValue>,
}

/// A place among the requests that run, until it is dropped.
pub(crate) struct Seat {
    /// None without a limit.
    _admitted: Option<Admitted>,
}

/// The request was rejected.
#[derive(Debug)]
pub(crate) struct TooMany;

impl FlowControl {
    pub fn new(limits: InFlightLimits, source: Arc<dyn ObjectSource>) -> Self {
        let seats = limits.read_only.saturating_add(limits.mutating);
        Self {
            source,
            current: ArcSwapOption::empty(),
            reading: Mutex::new(()),
            limits,
            scheduler: (seats > 0).then(|| Scheduler::shared(seats)),
        }
    }

    /// Waits for a seat. `objects` counts what a list would return.
    pub async fn enter(
        &self,
        info: &RequestInfo,
        query: &Query,
        user: &User,
        objects: impl FnOnce() -> usize,
    ) -> (Option<Classification>, Result<Seat, TooMany>) {
        if is_long_running(info) {
            return (None, Ok(Seat { _admitted: None }));
        }
        let configuration = self.current();
        let Some((schema, level)) =
            configuration.schemas.iter().find(|(schema, _)| schema.matches(info, user))
        else {
            // The catch-all schema matches everybody.
            return (None, Ok(Seat { _admitted: None }));
        };
        let classification = Classification { schema: schema.uid.clone(), level: level.uid.clone() };
        let of_kind = if is_read_only(info) { self.limits.read_only } else { self.limits.mutating };
        let (Some(scheduler), Some(limits), 1..) = (&self.scheduler, &level.limits, of_kind) else {
            return (Some(classification), Ok(Seat { _admitted: None }));
        };
        let seats = if lists_objects(info, query) { seats_of_list(objects(), limits.nominal) } else { 1 };
        let flow = schema.flow(info, user);
        let admitted = Scheduler::enter(scheduler, &level.name, flow, seats, MAX_WAIT).await;
        (Some(classification), admitted.map(|admitted| Seat { _admitted: Some(admitted) }).ok_or(TooMany))
    }

    fn current(&self) -> Arc<Configuration> {
        // Read before the objects: a write in between makes the configuration look outdated, never current.
        let fresh = || {
            let revisions = (
                self.source.bucket_revision(bucket::FLOW_SCHEMAS),
                self.source.bucket_revision(bucket::PRIORITY_LEVELS),
            );
            let current = self.current.load_full().filter(|current| current.revisions == revisions);
            current.ok_or(revisions)
        };
        if let Ok(current) = fresh() {
            return current;
        }
        let _reading = self.reading.lock();
        let revisions = match fresh() {
            Ok(current) => return current,
            Err(revisions) => revisions,
        };
        let seats = self.scheduler.as_ref().map_or(0, Scheduler::total);
        let levels = levels::with_limits(levels::read(&*self.source), seats);
        if let Some(scheduler) = &self.scheduler {
            Scheduler::configure(scheduler, &levels);
        }
        let schemas = schemas::read(&*self.source).into_iter().filter_map(|schema| {
            // A schema without its level does not match anything.
            let level = levels.iter().find(|level| *level.name == *schema.level)?.clone();
            Some((schema, level))
        });
        let configuration = Arc::new(Configuration { revisions, schemas: schemas.collect() });
        self.current.store(Some(configuration.clone()));
        configuration
    }

    /// Metrics in the text format.
    pub fn metrics(&self) -> String {
        self.scheduler.as_ref().map(Scheduler::metrics).unwrap_or_default()
    }
}

impl Classification {
    /// Adds the headers that name the flow schema and the priority level.
    pub fn set_headers(&self, headers: &mut HeaderMap) {
        for (name, uid) in [(&names::FLOW_SCHEMA, &self.schema), (&names::PRIORITY_LEVEL, &self.level)] {
            if let Some(value) = uid {
                headers.insert(name, value.clone());
            }
        }
    }
}

impl TooMany {
    /// The response, in plain text as upstream.
    pub fn reply(&self) -> Reply {
        let mut reply =
            reply::text(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n");
        let headers = reply.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        reply
    }
}

/// Whether the client decides how long the request lasts, as defined by upstream. Watches count until they start.
fn is_long_running(info: &RequestInfo) -> bool {
    info.verb == "proxy"
        || info.is_resource
            && matches!(info.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
}

/// Whether a request only reads, as upstream counts it.
fn is_read_only(info: &RequestInfo) -> bool {
    matches!(&*info.verb, "get" | "head" | "list" | "watch")
}

/// Whether the response has all objects of a collection.
fn lists_objects(info: &RequestInfo, query: &Query) -> bool {
    if !info.is_resource || !info.name.is_empty() {
        return false;
    }
    match &*info.verb {
        "list" => true,
        "watch" => {
            matches!(query.get("resourceVersion"), None | Some("" | "0"))
                || query.get("sendInitialEvents") == Some("true")
        }
        _ => false,
    }
}

/// Seats of a list: one per hundred objects, up to ten and up to 15 % of its level.
fn seats_of_list(objects: usize, nominal: usize) -> usize {
    let most = nominal.saturating_mul(15).div_ceil(100).clamp(1, MAX_SEATS);
    objects.div_ceil(OBJECTS_PER_SEAT).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_take_more_seats_but_never_most_of_a_level() {
        for (objects, nominal, seats) in
            [(0, 100, 1), (100, 100, 1), (101, 100, 2), (100_000, 100, 10), (5_000, 20, 3)]
        {
            assert_eq!(seats_of_list(objects, nominal), seats, "{objects} of {nominal}");
        }
    }
}
