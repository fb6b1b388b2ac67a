//! Any request gets a response: no panic, no hang. `cargo xtask fuzz` runs this for longer, with random seeds.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;
use http::Request;
use http_body::Body;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config as Proptest;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Simulated timeout of a response or a chunk of one. Watches last half an hour.
const TIMEOUT: Duration = Duration::from_secs(7200);

fn config(cases: u32) -> Proptest {
    let default = Proptest::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    Proptest { cases, failure_persistence: None, ..default }
}

/// One server for all cases, in a runtime with simulated time.
struct FuzzServer {
    runtime: Runtime,
    server: Server,
}

fn bed() -> &'static Mutex<FuzzServer> {
    static BED: OnceLock<Mutex<FuzzServer>> = OnceLock::new();
    BED.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let server = runtime.block_on(async {
            let pki = Pki::ephemeral(Env::system()).into();
            Server::start(Config::in_memory(), pki).await.expect("an empty server starts")
        });
        let bed = FuzzServer { runtime, server };
        let definition = definition();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        bed.ask("POST", path, &[], definition.to_string().into());
        bed.ask("GET", "/apis/ex.io/v1/widgets", &[], Bytes::new());
        Mutex::new(bed)
    })
}

fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a.size() < 5"}],
            "properties": {
                "a": {"type": "string"}, "n": {"type": "integer", "default": 1}, "replicas": {"type": "integer"},
                "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": schema}}]}})
}

impl FuzzServer {
    /// Sends a request and reads some of the response. Returns the status code.
    fn ask(&self, method: &str, target: &str, headers: &[(&str, String)], body: Bytes) -> Option<u16> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        // The HTTP library rejects what is not a request at all.
        let request = request.body(Full::new(body)).ok()?;
        self.runtime.block_on(async {
            let handled = self.server.handle_as(User::privileged("fuzz"), request);
            let answer = tokio::time::timeout(TIMEOUT, handled).await.expect("an answer");
            let code = answer.status().as_u16();
            let mut body = answer.into_body();
            // A watch may have no events; everything else ends.
            let whole = body.size_hint().exact().is_some();
            for _ in 0..8 {
                match tokio::time::timeout(TIMEOUT, body.frame()).await {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => {
                        assert!(!whole, "the end of {method} {target} never comes");
                        break;
                    }
                }
            }
            Some(code)
        })
    }
}

fn texts(list: &[&'static str]) -> impl Strategy<Value = String> + Clone + use<> {
    select(list.to_vec()).prop_map(str::to_owned)
}

/// A path that often exists.
fn path() -> impl Strategy<Value = String> {
    let collection = texts(&[
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/serviceaccounts",
        "/api/v1/namespaces/default/events",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/api/v1/nodes",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/batch/v1/namespaces/default/jobs",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        "/apis/ex.io/v1/widgets",
        "/apis/ex.io/v1/namespaces/default/widgets",
        "/api/v1/watch/namespaces/default/configmaps",
    ]);
    let name = texts(&[
        "",
        "/x",
        "/y",
        "/default",
        "/kubernetes",
        "/%2e%2e",
        "/a%00b",
        "/a%2Fb",
        "//",
        "/é",
        "/%ff",
    ]);
    let subresource = texts(&[
        "",
        "",
        "",
        "",
        "/status",
        "/scale",
        "/token",
        "/eviction",
        "/finalize",
        "/approval",
        "/binding",
        "/log",
        "/nope",
        "/status/more",
    ]);
    let document = texts(&[
        "/",
        "/api",
        "/apis",
        "/apis/ex.io",
        "/apis/ex.io/v1",
        "/version",
        "/healthz",
        "/readyz/ping",
        "/livez/nope",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/apis/ex.io/v1",
        "/capstan/v1/backup",
        "/apis//",
        "/api/v1/",
    ]);
    prop_oneof![
        12 => (collection, name, subresource).prop_map(|(c, n, s)| format!("{c}{n}{s}")),
        2 => document,
        1 => "/[a-z0-9/%._~-]{0,40}",
    ]
}

fn query() -> impl Strategy<Value = String> {
    let key = texts(&[
        "watch",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "timeoutSeconds",
        "timeout",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "pretty",
        "includeObject",
        "verbose",
        "hash",
    ]);
    let value = prop_oneof![
        8 => texts(&[
            "", "0", "1", "-1", "true", "false", "All", "Strict", "Ignore", "Exact", "NotOlderThan", "Foreground",
            "Background", "Orphan", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e3", "a=b",
            "a!=b,c", "a in (b,c)", "a notin (", "!a", "metadata.name=x", "metadata.namespace=default", "spec.nodeName=",
            "status.phase!=Running", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9", "1s", "1h1h", "-5ms",
            "None", "Metadata", "Object", "999999999999s",
        ]),
        2 => "[ -~]{0,12}",
        1 => "\\PC{0,6}",
    ];
    vec((key, value), 0..4).prop_map(|pairs| {
        let mut query = String::new();
        for (key, value) in pairs {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(&key);
            query.push('=');
            query.extend(value.bytes().map(|byte| format!("%{byte:02X}")));
        }
        query
    })
}

fn accept() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => texts(&[
            "*/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
            "application/vnd.kubernetes.protobuf,application/json", "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;stream=watch",
            "application/json;pretty=1", "text/html", "", ";", "a/b;c", "application/json;q=2", "*/*;q=0.1,,;",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        ]),
        1 => "[ -~]{0,20}",
    ]
}

fn content_type() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => texts(&[
            "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json-patch+json",
            "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
            "application/json; charset=utf-8", "", ";", "text/plain",
        ]),
        1 => "[ -~]{0,20}",
    ]
}

/// Small documents that are nearly objects.
fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts(&[
            "",
            "x",
            "default",
            "ClusterIP",
            "1Gi",
            "-1",
            "v1",
            "é\u{0}",
            "2026-01-01T00:00:00Z",
            "aGk="
        ])
        .prop_map(Value::from),
    ];
    let key = texts(&[
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "resourceVersion",
        "generateName",
        "uid",
        "deletionTimestamp",
        "a",
        "n",
        "l",
        "any",
        "replicas",
        "selector",
        "template",
        "containers",
        "image",
        "rules",
        "verbs",
        "roleRef",
        "subjects",
        "ports",
        "port",
        "type",
        "data",
        "stringData",
        "op",
        "path",
        "value",
        "from",
        "versions",
        "schema",
        "openAPIV3Schema",
        "properties",
        "group",
        "names",
        "request",
        "token",
        "$patch",
        "holderIdentity",
        "renewTime",
        "matchLabels",
    ]);
    let node = scalar.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let kind = select(vec![
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Pod"),
        ("v1", "Namespace"),
        ("v1", "Service"),
        ("v1", "Event"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "Job"),
        ("ex.io/v1", "Widget"),
        ("autoscaling/v1", "Scale"),
        ("policy/v1", "Eviction"),
        ("v1", "DeleteOptions"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("", ""),
    ]);
    let typed = (kind, node.clone(), node.clone(), node.clone()).prop_map(
        |((version, kind), metadata, spec, other)| {
            let mut object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
            if let Value::Object(other) = other
                && let Value::Object(object) = &mut object
            {
                object.extend(other);
            }
            if let Value::Object(metadata) = &mut object["metadata"] {
                metadata.entry("name").or_insert("x".into());
            }
            object
        },
    );
    prop_oneof![5 => typed, 1 => node]
}

/// Bodies: objects as JSON, YAML and protobuf, with bytes changed and truncated, and garbage.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop_oneof![
        6 => document().prop_map(|object| object.to_string().into_bytes()),
        1 => vec(document(), 0..3).prop_map(|items| Value::from(items).to_string().into_bytes()),
        1 => document().prop_map(|object| {
            capstan_builtin::protobuf::encode(&object).unwrap_or_else(|| b"k8s\0".to_vec())
        }),
        1 => texts(&[
            "", "{", "[", "nul", "\"", "a: &a [*a]", "a: &a [1]\nb: [*a,*a]", "? {}\n: {}", "--- a\n--- b", "!!binary x",
            "%YAML 9.9\n---", "\t", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}", "k8s\0", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}]",
        ]).prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..64),
    ];
    (whole, vec((any::<Index>(), any::<u8>()), 0..3), prop::option::of(any::<Index>())).prop_map(
        |(mut bytes, edits, cut)| {
            for (at, byte) in edits.into_iter().filter(|(_, byte)| byte % 4 == 0) {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            if let Some(cut) = cut
                && cut.index(3) == 0
            {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn any_request_gets_an_answer(
        method in texts(&["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "NOPE"]),
        path in path(),
        query in query(),
        accept in prop::option::of(accept()),
        content_type in prop::option::of(content_type()),
        body in body(),
    ) {
        let mut headers = vec![("user-agent", "fuzz/1".to_owned())];
        headers.extend(accept.map(|value| ("accept", value)));
        headers.extend(content_type.map(|value| ("content-type", value)));
        bed().lock().ask(&method, &format!("{path}{query}"), &headers, body.into());
    }
}

#[test]
fn a_watch_that_asks_for_more_time_than_clocks_count_is_served() {
    let target = format!("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds={}", i64::MAX);
    assert_eq!(bed().lock().ask("GET", &target, &[], Bytes::new()), Some(200));
}
