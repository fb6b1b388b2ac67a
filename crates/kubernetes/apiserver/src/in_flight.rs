//! Limits of concurrent requests. Requests beyond them get 429 and are retried by the client.

use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::{HeaderValue, StatusCode, header};

use crate::auth::{MASTERS, User};
use crate::http::info::RequestInfo;
use crate::reply::{self, Reply};

/// Limits of concurrent requests. Zero means no limit; long-running requests do not count.
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

/// The requests in flight.
pub(crate) struct RequestsInFlight {
    read_only: Seats,
    mutating: Seats,
}

struct Seats {
    limit: usize,
    taken: AtomicUsize,
}

/// A slot among the requests in flight, until it is dropped.
pub(crate) struct Seat<'a>(Option<&'a Seats>);

/// No slot was free.
#[derive(Debug)]
pub(crate) struct TooMany;

impl RequestsInFlight {
    pub fn new(limits: InFlightLimits) -> Self {
        let seats = |limit| Seats { limit, taken: AtomicUsize::new(0) };
        Self { read_only: seats(limits.read_only), mutating: seats(limits.mutating) }
    }

    /// Takes a slot for a request. As upstream, administrators are admitted beyond the limit, so that they can act
    /// while others flood the server.
    pub fn enter(&self, info: &RequestInfo, user: &User) -> Result<Seat<'_>, TooMany> {
        if is_long_running(info) {
            return Ok(Seat(None));
        }
        let seats =
            if matches!(info.verb.as_str(), "get" | "list") { &self.read_only } else { &self.mutating };
        let free = |taken| (seats.limit == 0 || taken < seats.limit).then_some(taken + 1);
        match seats.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free) {
            Ok(_) => Ok(Seat(Some(seats))),
            Err(_) if user.in_group(MASTERS) => Ok(Seat(None)),
            Err(_) => Err(TooMany),
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if let Some(seats) = self.0 {
            seats.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether the client decides how long the request lasts, as defined by upstream.
fn is_long_running(info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "watch" | "proxy")
        || info.is_resource
            && matches!(info.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
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

#[cfg(test)]
mod tests {
    use ::http::{Method, Uri};

    use super::*;

    fn info(method: Method, path: &str) -> RequestInfo {
        RequestInfo::parse(&method, &path.parse::<Uri>().expect("a path"))
    }

    #[test]
    fn reads_and_writes_are_limited_apart_and_long_running_requests_are_not() {
        let requests = RequestsInFlight::new(InFlightLimits { read_only: 1, mutating: 1 });
        let somebody = User::new("jane", ["system:authenticated"]);
        let pods = "/api/v1/namespaces/a/pods";
        let read = requests.enter(&info(Method::GET, pods), &somebody).expect("a seat");
        assert!(requests.enter(&info(Method::GET, "/version"), &somebody).is_err());
        let _write = requests.enter(&info(Method::POST, pods), &somebody).expect("a seat of its own");
        assert!(requests.enter(&info(Method::DELETE, pods), &somebody).is_err());
        let watch = info(Method::GET, "/api/v1/namespaces/a/pods?watch=1");
        let forward = info(Method::POST, "/api/v1/namespaces/a/pods/x/portforward");
        let _long = [&watch, &forward].map(|long| requests.enter(long, &somebody).expect("no limit"));
        assert!(requests.enter(&info(Method::GET, pods), &User::privileged("admin")).is_ok());
        drop(read);
        assert!(requests.enter(&info(Method::GET, pods), &somebody).is_ok());
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        let requests = RequestsInFlight::new(InFlightLimits { read_only: 0, mutating: 0 });
        let version = info(Method::GET, "/version");
        let anybody = User::anonymous();
        let seats: Vec<_> = (0..1000).map(|_| requests.enter(&version, &anybody)).collect();
        assert!(seats.iter().all(Result::is_ok));
    }
}
