//! Health checks, under kube-apiserver's names: `/livez`, `/readyz/etcd`, `?verbose`, `?exclude=NAME`.
//!
//! `etcd` is the store. The checks named `poststarthook/…` are those of kube-apiserver; each passes when the start of
//! this server has reached the [`Stage`] that does its work here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};

use ::http::{HeaderValue, StatusCode, header, request};
use capstan_store::Health;
use percent_encoding::percent_decode_str;

use crate::parts::ServerParts;
use crate::reply::{self, Reply, ReplyBody};

pub(crate) const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// How far the start of a server is. Stages are reached in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The store is read, and the parts exist: admission, authentication, authorization.
    Assembled = 1,
    /// Stored CustomResourceDefinitions are served; discovery and OpenAPI know every group.
    Definitions,
    /// The built-in controllers run.
    Controllers,
    /// Bootstrap roles and bindings are stored.
    Roles,
    /// Priority levels and flow schemas are stored, and requests are queued by them.
    FlowControl,
    Namespaces,
    PriorityClasses,
    /// The default ServiceCIDR and the `kubernetes` Service are stored, with their addresses.
    Services,
    /// Nothing is left to do.
    Done,
}

/// The stage that the start of a server has reached.
#[derive(Debug, Default)]
pub(crate) struct Startup(AtomicU8);

impl Startup {
    pub fn reach(&self, stage: Stage) {
        self.0.fetch_max(stage as u8, Ordering::Release);
    }

    pub fn has_reached(&self, stage: Stage) -> bool {
        self.0.load(Ordering::Acquire) >= stage as u8
    }
}

/// kube-apiserver's steps after its start, in its order, and the stage that does their work here. Those that have no
/// work here, such as leases of several servers, wait for the end: clients compare the list.
const STARTED: [(&str, Stage); 30] = [
    ("poststarthook/start-apiserver-admission-initializer", Stage::Assembled),
    ("poststarthook/generic-apiserver-start-informers", Stage::Controllers),
    ("poststarthook/priority-and-fairness-config-consumer", Stage::FlowControl),
    ("poststarthook/priority-and-fairness-filter", Stage::FlowControl),
    ("poststarthook/storage-object-count-tracker-hook", Stage::Assembled),
    ("poststarthook/start-apiextensions-informers", Stage::Definitions),
    ("poststarthook/start-apiextensions-controllers", Stage::Controllers),
    ("poststarthook/crd-informer-synced", Stage::Definitions),
    ("poststarthook/start-system-namespaces-controller", Stage::Namespaces),
    ("poststarthook/peer-endpoint-reconciler-controller", Stage::Done),
    ("poststarthook/start-cluster-authentication-info-controller", Stage::Done),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", Stage::Done),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", Stage::Done),
    ("poststarthook/storage-readiness", Stage::Assembled),
    ("poststarthook/start-legacy-token-tracking-controller", Stage::Controllers),
    ("poststarthook/start-service-ip-repair-controllers", Stage::Services),
    ("poststarthook/rbac/bootstrap-roles", Stage::Roles),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Stage::PriorityClasses),
    ("poststarthook/priority-and-fairness-config-producer", Stage::FlowControl),
    ("poststarthook/bootstrap-controller", Stage::Services),
    ("poststarthook/start-kubernetes-service-cidr-controller", Stage::Services),
    ("poststarthook/start-kube-aggregator-informers", Stage::Definitions),
    ("poststarthook/apiservice-status-local-available-controller", Stage::Definitions),
    ("poststarthook/apiservice-status-remote-available-controller", Stage::Definitions),
    ("poststarthook/apiservice-registration-controller", Stage::Definitions),
    ("poststarthook/apiservice-discovery-controller", Stage::Definitions),
    ("poststarthook/kube-apiserver-autoregistration", Stage::Definitions),
    ("autoregister-completion", Stage::Definitions),
    ("poststarthook/apiservice-openapi-controller", Stage::Definitions),
    ("poststarthook/apiservice-openapiv3-controller", Stage::Definitions),
];

/// The checks of an endpoint, in kube-apiserver's order.
pub(crate) fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let (first, last): (&[&str], &[&str]) = match endpoint {
        "readyz" => (&["ping", "log", "etcd", "etcd-readiness", "informer-sync"], &["shutdown"]),
        _ => (&["ping", "log", "loopback-serving-certificate", "etcd"], &[]),
    };
    let started = STARTED.iter().map(|(name, _)| name);
    first.iter().chain(started).chain(last).copied()
}

/// Serves an endpoint, or one check of it.
pub(crate) fn serve(server: &ServerParts, head: &request::Parts, endpoint: &str, rest: &[&str]) -> Reply {
    let state = State { store: server.store.health(), startup: &server.startup };
    if rest.is_empty() {
        return all(&state, head.uri.query().unwrap_or_default(), endpoint);
    }
    let name = rest.join("/");
    match checks(endpoint).find(|check| *check == name) {
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n".into()),
        Some(check) if state.passes(check) => {
            // As upstream, without the header that all other answers have.
            reply::with_type(StatusCode::OK, "text/plain; charset=utf-8", ReplyBody::full("ok".to_owned()))
        }
        Some(check) => {
            let text = format!("internal server error: {check} failed\n");
            plain(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

/// State that the checks evaluate.
struct State<'a> {
    store: Health,
    startup: &'a Startup,
}

impl State<'_> {
    /// A restart does not free a full disk, and reads and deletes work: the server is alive, but not ready for writes.
    fn passes(&self, check: &str) -> bool {
        if let Some((_, stage)) = STARTED.iter().find(|(name, _)| *name == check) {
            return self.startup.has_reached(*stage);
        }
        match (&self.store, check) {
            (_, "informer-sync") => self.startup.has_reached(Stage::Controllers),
            (Health::Writable, _) => true,
            (Health::Full, check) => check != "etcd-readiness",
            (Health::Failed(_) | Health::Closed, check) => !matches!(check, "etcd" | "etcd-readiness"),
        }
    }
}

fn all(state: &State<'_>, query: &str, endpoint: &str) -> Reply {
    let (verbose, mut excluded) = options(query);
    let mut lines = String::new();
    let mut failed = false;
    for check in checks(endpoint) {
        if excluded.remove(check) {
            lines.push_str(&format!("[+]{check} excluded: ok\n"));
        } else if state.passes(check) {
            lines.push_str(&format!("[+]{check} ok\n"));
        } else {
            failed = true;
            lines.push_str(&format!("[-]{check} failed: reason withheld\n"));
        }
    }
    if !excluded.is_empty() {
        let unknown: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    match (failed, verbose) {
        (true, _) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n")),
        (false, true) => plain(StatusCode::OK, format!("{lines}{endpoint} check passed\n")),
        (false, false) => plain(StatusCode::OK, "ok".into()),
    }
}

/// Whether all checks are listed, and which are left out.
fn options(query: &str) -> (bool, BTreeSet<String>) {
    let mut verbose = false;
    let mut excluded = BTreeSet::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "verbose" => verbose = true,
            "exclude" => {
                let value = value.replace('+', " ");
                excluded.insert(percent_decode_str(&value).decode_utf8_lossy().into_owned());
            }
            _ => {}
        }
    }
    (verbose, excluded)
}

fn plain(code: StatusCode, text: String) -> Reply {
    let mut reply = reply::text(code, text);
    reply.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(reply: Reply) -> (u16, String) {
        let code = reply.status().as_u16();
        let bytes = http_body_util::BodyExt::collect(reply.into_body()).await.expect("a body").to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn checked(store: Health, startup: &Startup, query: &str, endpoint: &str) -> (u16, String) {
        text(all(&State { store, startup }, query, endpoint)).await
    }

    fn started() -> Startup {
        let startup = Startup::default();
        startup.reach(Stage::Done);
        startup
    }

    #[tokio::test]
    async fn checks_are_listed_excluded_and_failed_as_kube_apiserver_does() {
        let startup = &started();
        assert_eq!(checked(Health::Writable, startup, "", "livez").await, (200, "ok".into()));
        let (code, lines) =
            checked(Health::Writable, startup, "verbose&exclude=etcd&exclude=no%20pe", "readyz").await;
        assert_eq!(code, 200);
        assert!(
            lines.starts_with("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n"),
            "{lines}"
        );
        let end = "[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"no pe\"\n\
                   readyz check passed\n";
        assert!(lines.ends_with(end), "{lines}");
        assert_eq!(checked(Health::Full, startup, "", "livez").await.0, 200);
        let (code, lines) = checked(Health::Full, startup, "", "readyz").await;
        assert_eq!(code, 500);
        assert!(lines.contains("[+]etcd ok\n[-]etcd-readiness failed: reason withheld\n"), "{lines}");
        assert!(lines.ends_with("readyz check failed\n"), "{lines}");
        assert_eq!(checked(Health::Closed, startup, "", "livez").await.0, 500);
        assert_eq!(checked(Health::Closed, startup, "exclude=etcd", "livez").await.0, 200);
    }

    #[tokio::test]
    async fn a_step_passes_when_its_stage_is_reached_and_not_before() {
        let startup = Startup::default();
        let (code, lines) = checked(Health::Writable, &startup, "", "readyz").await;
        assert_eq!(code, 500);
        assert!(STARTED.iter().all(|(name, _)| lines.contains(&format!("[-]{name} failed"))), "{lines}");
        startup.reach(Stage::Roles);
        let (_, lines) = checked(Health::Writable, &startup, "", "readyz").await;
        assert!(lines.contains("[+]poststarthook/rbac/bootstrap-roles ok"), "{lines}");
        assert!(lines.contains("[+]poststarthook/crd-informer-synced ok"), "{lines}");
        assert!(lines.contains("[-]poststarthook/priority-and-fairness-config-producer failed"), "{lines}");
        startup.reach(Stage::Done);
        startup.reach(Stage::Assembled);
        assert_eq!(checked(Health::Writable, &startup, "", "readyz").await.0, 200);
    }
}
