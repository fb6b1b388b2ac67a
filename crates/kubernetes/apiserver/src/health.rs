//! Health checks, under kube-apiserver's names: `/livez`, `/readyz/etcd`, `?verbose`, `?exclude=NAME`.
//!
//! `etcd` is the store. The steps named `poststarthook/…` are those of kube-apiserver; here all of their work is done
//! before the first request is served, so a server that answers has passed them.

use std::collections::BTreeSet;

use ::http::{HeaderValue, StatusCode, header, request};
use capstan_store::Health;
use percent_encoding::percent_decode_str;

use crate::parts::ServerParts;
use crate::reply::{self, Reply};

/// The endpoints.
pub(crate) const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

const STARTED: [&str; 30] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The checks of an endpoint, in kube-apiserver's order.
pub(crate) fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let (first, last): (&[&str], &[&str]) = match endpoint {
        "readyz" => (&["ping", "log", "etcd", "etcd-readiness", "informer-sync"], &["shutdown"]),
        _ => (&["ping", "log", "loopback-serving-certificate", "etcd"], &[]),
    };
    first.iter().chain(&STARTED).chain(last).copied()
}

/// Serves an endpoint, or one check of it.
pub(crate) fn serve(server: &ServerParts, head: &request::Parts, endpoint: &str, rest: &[&str]) -> Reply {
    let state = server.store.health();
    if rest.is_empty() {
        return all(&state, head.uri.query().unwrap_or_default(), endpoint);
    }
    let name = rest.join("/");
    match checks(endpoint).find(|check| *check == name) {
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n".into()),
        Some(check) if passes(&state, check) => reply::text(StatusCode::OK, "ok"),
        Some(check) => {
            let text = format!("internal server error: {check} failed\n");
            plain(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

/// A restart does not free a full disk, and reads and deletes work: the server is alive, but not ready for writes.
fn passes(state: &Health, check: &str) -> bool {
    match (state, check) {
        (Health::Writable, _) => true,
        (Health::Full, check) => check != "etcd-readiness",
        (Health::Failed(_) | Health::Closed, check) => !matches!(check, "etcd" | "etcd-readiness"),
    }
}

fn all(state: &Health, query: &str, endpoint: &str) -> Reply {
    let (verbose, mut excluded) = options(query);
    let mut lines = String::new();
    let mut failed = false;
    for check in checks(endpoint) {
        if excluded.remove(check) {
            lines.push_str(&format!("[+]{check} excluded: ok\n"));
        } else if passes(state, check) {
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

    #[tokio::test]
    async fn checks_are_listed_excluded_and_failed_as_kube_apiserver_does() {
        assert_eq!(text(all(&Health::Writable, "", "livez")).await, (200, "ok".into()));
        let (code, lines) =
            text(all(&Health::Writable, "verbose&exclude=etcd&exclude=no%20pe", "readyz")).await;
        assert_eq!(code, 200);
        assert!(
            lines.starts_with("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n"),
            "{lines}"
        );
        let end = "[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"no pe\"\n\
                   readyz check passed\n";
        assert!(lines.ends_with(end), "{lines}");
        assert_eq!(text(all(&Health::Full, "", "livez")).await.0, 200);
        let (code, lines) = text(all(&Health::Full, "", "readyz")).await;
        assert_eq!(code, 500);
        assert!(lines.contains("[+]etcd ok\n[-]etcd-readiness failed: reason withheld\n"), "{lines}");
        assert!(lines.ends_with("readyz check failed\n"), "{lines}");
        assert_eq!(text(all(&Health::Closed, "", "livez")).await.0, 500);
        assert_eq!(text(all(&Health::Closed, "exclude=etcd", "livez")).await.0, 200);
    }
}
