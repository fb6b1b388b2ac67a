//! Permissions in one namespace do not extend beyond it: every kind, subresource, verb and form of path, tried by
//! users whose permissions end at the namespace `foo`.
//!
//! The expected result follows from the scope of a kind in the table of kinds, never from the router: whatever is not
//! in `foo` is out of reach, by any path.

use std::collections::BTreeMap;

use capstan_apiserver::auth::User;
use serde_json::{Value, json};

use crate::client::{Client, read};

/// In every object outside of `foo`; no response may contain it.
const CANARY: &str = "canary-7c1f";
/// Name of the objects that are out of reach, except for Namespaces: theirs is `bar`.
const NAME: &str = "canary";
const INTRUDER: &str = "intruder";
/// Name of the IPAddress out of reach, and of one that is not there.
const ADDRESS: &str = "10.77.0.1";
const FREE_ADDRESS: &str = "10.77.0.2";

/// A kind from the table.
struct Kind {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
    stored: bool,
    subresources: Vec<String>,
}

impl Kind {
    fn root(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// Path of the collection for a user with all permissions.
    fn collection(&self, namespace: &str) -> String {
        let (root, plural) = (self.root(), &self.plural);
        if self.namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    /// Name of the object out of reach.
    fn target(&self) -> &'static str {
        match self.plural.as_str() {
            _ if self.is_namespace() => "bar",
            "ipaddresses" => ADDRESS,
            _ => NAME,
        }
    }

    fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// Reviews that everybody may create.
    fn is_for_everybody(&self) -> bool {
        self.plural.starts_with("selfsubject")
    }

    fn object(&self, name: &str, mark: &str) -> Value {
        let api_version = match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        };
        let mut object = contents(self);
        object["apiVersion"] = api_version.into();
        object["kind"] = self.kind.as_str().into();
        object["metadata"] = json!({"name": name, "annotations": {"mark": mark}});
        if self.plural == "customresourcedefinitions" {
            object["metadata"]["name"] = format!("{name}s.made.up").into();
            object["spec"]["names"] = json!({"plural": format!("{name}s"), "kind": "Made"});
        }
        if self.plural == "ipaddresses" {
            let known = [NAME, ADDRESS].contains(&name);
            object["metadata"]["name"] = if known { ADDRESS } else { FREE_ADDRESS }.into();
        }
        if self.plural == "apiservices" {
            object["metadata"]["name"] = format!("v1.{name}.made.up").into();
            object["spec"]["group"] = format!("{name}.made.up").into();
        }
        object
    }
}

/// The minimal content of an object of a kind.
fn contents(kind: &Kind) -> Value {
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let job = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    });
    let selector = json!({"matchLabels": {"a": "b"}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let scales = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
    let constraints = json!({"resourceRules": [{
        "apiGroups": ["made.up"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"],
    }]});
    match kind.plural.as_str() {
        "bindings" => json!({"target": {"kind": "Node", "name": "n"}}),
        "certificatesigningrequests" => json!({"spec": {
            "request": certificate_request(), "signerName": "made.up/signer", "usages": ["client auth"],
        }}),
        "controllerrevisions" => json!({"revision": 1, "data": {"a": "b"}}),
        "cronjobs" => json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job}}}}),
        "csidrivers" => json!({"spec": {}}),
        "csistoragecapacities" => json!({"storageClassName": "c"}),
        "ipaddresses" => json!({"spec": {"parentRef": {"resource": "things", "name": "t"}}}),
        "servicecidrs" => json!({"spec": {"cidrs": ["10.77.0.0/24"]}}),
        "volumeattributesclasses" => json!({"driverName": "d.made.up", "parameters": {"a": "b"}}),
        "csinodes" => json!({"spec": {"drivers": []}}),
        "customresourcedefinitions" => json!({"spec": {
            "group": "made.up", "scope": "Namespaced",
            "versions": [{"name": "v1", "served": false, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }}),
        "daemonsets" | "deployments" | "replicasets" => {
            json!({"spec": {"selector": selector, "template": template}})
        }
        "endpointslices" => json!({"addressType": "IPv4", "endpoints": []}),
        "events" if kind.group.is_empty() => json!({"involvedObject": {"namespace": "bar"}}),
        "events" => json!({
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a/b", "reportingInstance": "c",
            "action": "Did", "reason": "Because", "type": "Normal", "regarding": {"namespace": "bar"},
        }),
        "deviceclasses" => json!({"spec": {}}),
        "resourceclaims" => json!({"spec": {"devices": {}}}),
        "resourceclaimtemplates" => json!({"spec": {"spec": {"devices": {}}}}),
        "resourceslices" => json!({"spec": {
            "driver": "made.up", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1},
        }}),
        "horizontalpodautoscalers" => json!({"spec": {"maxReplicas": 2, "scaleTargetRef": scales}}),
        "ingressclasses" => json!({"spec": {"controller": "made.up/c"}}),
        "ingresses" => {
            json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}})
        }
        "jobs" => json!({"spec": {"template": job}}),
        "localsubjectaccessreviews" | "subjectaccessreviews" => json!({
            "spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "foo"}},
        }),
        "networkpolicies" => json!({"spec": {"podSelector": {}}}),
        "persistentvolumeclaims" => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}),
        "persistentvolumes" => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"},
        }}),
        "poddisruptionbudgets" => json!({"spec": {"selector": selector, "minAvailable": 1}}),
        "pods" => json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}),
        "podtemplates" => json!({"template": template}),
        "priorityclasses" => json!({"value": 1}),
        "replicationcontrollers" => json!({"spec": {"selector": {"a": "b"}, "template": template}}),
        "clusterrolebindings" | "rolebindings" => json!({"subjects": [], "roleRef": role}),
        "runtimeclasses" => json!({"handler": "h"}),
        "services" => json!({"spec": {"ports": [{"port": 80}], "clusterIP": "None"}}),
        "statefulsets" => json!({"spec": {"selector": selector, "template": template, "serviceName": "s"}}),
        "storageclasses" => json!({"provisioner": "made.up/p"}),
        "tokenreviews" => json!({"spec": {"token": "x"}}),
        "volumeattachments" => json!({"spec": {
            "attacher": "made.up", "nodeName": "n", "source": {"persistentVolumeName": "v"},
        }}),
        "apiservices" => json!({"spec": {
            "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"name": "s", "namespace": "bar"},
        }}),
        "mutatingadmissionpolicies" => json!({"spec": {
            "matchConstraints": constraints, "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        }}),
        "mutatingadmissionpolicybindings" => json!({"spec": {"policyName": "none"}}),
        "validatingadmissionpolicies" => {
            json!({"spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]}})
        }
        "validatingadmissionpolicybindings" => {
            json!({"spec": {"policyName": "none", "validationActions": ["Deny"]}})
        }
        "flowschemas" => json!({"spec": {"priorityLevelConfiguration": {"name": "catch-all"}}}),
        "prioritylevelconfigurations" => {
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}})
        }
        _ => json!({}),
    }
}

/// A PKCS#10 request.
fn certificate_request() -> String {
    use base64::Engine;
    let key = rcgen::KeyPair::generate().expect("a key");
    let request = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
    base64::engine::general_purpose::STANDARD.encode(request.pem().expect("PEM"))
}

/// Every served kind: built-in ones, and custom ones of both scopes. One of them is called `namespaces`, whose paths
/// look like those of a namespace.
fn kinds() -> Vec<Kind> {
    let built_in = capstan_builtin::kinds().iter().map(|kind| Kind {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
        namespaced: kind.namespaced,
        stored: kind.stored(),
        subresources: kind.subresources.iter().map(|s| s.name.to_owned()).collect(),
    });
    built_in
        .chain(CUSTOM.into_iter().map(|(plural, kind, namespaced)| Kind {
            group: "ex.io".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
            stored: true,
            subresources: vec!["status".into(), "scale".into()],
        }))
        .collect()
}

const CUSTOM: [(&str, &str, bool); 3] =
    [("widgets", "Widget", true), ("gadgets", "Gadget", false), ("namespaces", "Space", false)];

fn definition(plural: &str, kind: &str, namespaced: bool) -> Value {
    let replicas = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.io"), "annotations": {"mark": CANARY}},
        "spec": {
            "group": "ex.io", "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": replicas, "status": replicas}}},
            }],
        },
    })
}

/// A server with one object of every kind outside of `foo`.
async fn with_one_object_of_each_kind() -> Client {
    let admin = Client::start().await;
    for namespace in ["foo", "bar"] {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "annotations": {"mark": if namespace == "bar" { CANARY } else { "" }}},
        });
        assert_eq!(admin.create("/api/v1/namespaces", &object).await.0, 201);
    }
    for (plural, kind, namespaced) in CUSTOM {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, created) = admin.create(path, &definition(plural, kind, namespaced)).await;
        assert_eq!(code, 201, "{created}");
        admin.until(&format!("/apis/ex.io/v1/{plural}"), |(code, _)| *code == 200).await;
    }
    let mut refused = Vec::new();
    for kind in kinds().iter().filter(|kind| kind.stored && !kind.is_namespace()) {
        let (code, created) = admin.create(&kind.collection("bar"), &kind.object(NAME, CANARY)).await;
        // Two groups or versions may have the same objects.
        if code != 201 && code != 409 {
            refused.push(format!("{} {}: {}", kind.group, kind.plural, created["message"]));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    for (user, role) in [("admin-of-foo", "cluster-admin"), ("viewer-of-foo", "view")] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": user},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/foo/rolebindings";
        assert_eq!(admin.create(path, &binding).await.0, 201);
    }
    for namespace in ["foo", "bar"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        admin.until(&path, |(code, _)| *code == 200).await;
    }
    wait_idle(&admin).await;
    admin
}

/// Waits until the built-in controllers are idle.
async fn wait_idle(client: &Client) {
    let (mut revision, mut quiet) = (client.server().store().revision(), 0);
    while quiet < 1000 {
        tokio::task::yield_now().await;
        let now = client.server().store().revision();
        quiet = if now == revision { quiet + 1 } else { 0 };
        revision = now;
    }
}

/// Everything out of reach, with its revision.
fn out_of_reach(client: &Client) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for kind in kinds().iter().filter(|kind| kind.stored) {
        let bucket = format!("{}/{}", kind.group, kind.plural);
        let snapshot = client.server().store().snapshot(&bucket);
        for entry in snapshot.range("", None) {
            let in_foo = entry.key.starts_with("foo/") || (kind.is_namespace() && *entry.key == *"foo");
            if !in_foo {
                found.insert(format!("{bucket} {}", entry.key), entry.revision);
            }
        }
    }
    found
}

/// One path to something out of reach.
struct Attempt<'a> {
    kind: &'a Kind,
    path: String,
    /// The path has the namespace `foo` and a cluster-scoped kind: permissions in `foo` pass the authorizer, and
    /// nothing may be served.
    misplaced: bool,
}

/// Every path that does not lead into `foo`.
fn attempts(kind: &Kind) -> Vec<Attempt<'_>> {
    let (root, plural, name) = (kind.root(), &kind.plural, kind.target());
    let mut paths = Vec::new();
    for prefix in ["", "watch/", "proxy/"] {
        for (place, misplaced) in
            [("", false), ("namespaces/foo/", !kind.namespaced), ("namespaces/bar/", false)]
        {
            if place == "namespaces/foo/" && kind.namespaced {
                continue;
            }
            let collection = format!("{root}/{prefix}{place}{plural}");
            let mut tails = vec![String::new(), format!("/{name}"), format!("/{name}/none")];
            tails.extend(kind.subresources.iter().map(|s| format!("/{name}/{s}")));
            if misplaced {
                // A Namespace is in no namespace, not even in itself.
                tails.extend(["/foo", "/foo/status", "/foo/finalize"].map(str::to_owned));
            }
            paths.extend(tails.into_iter().map(|tail| (format!("{collection}{tail}"), misplaced)));
        }
    }
    // The cluster-scoped kind called `namespaces` outside of the core group: its objects look like namespaces.
    if plural == "namespaces" && !kind.group.is_empty() {
        paths.push((format!("{root}/namespaces/foo"), true));
        paths.push((format!("{root}/namespaces/foo/status"), true));
    }
    paths.into_iter().map(|(path, misplaced)| Attempt { kind, path, misplaced }).collect()
}

/// Sends every verb to a path. Returns what should not have happened.
async fn try_everything(client: &Client, who: &str, attempt: &Attempt<'_>) -> Vec<String> {
    let kind = attempt.kind;
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let change = json!({"metadata": {"annotations": {"mark": "tampered"}}, "status": {"phase": "tampered"}});
    let mut wrong = Vec::new();
    for (method, query, content_type, body) in [
        ("GET", "", json, Value::Null),
        ("GET", "?watch=true&timeoutSeconds=1", json, Value::Null),
        ("GET", "?fieldSelector=metadata.name%3Dfoo", json, Value::Null),
        ("HEAD", "", json, Value::Null),
        ("POST", "", json, kind.object(INTRUDER, "")),
        ("PUT", "", json, kind.object(kind.target(), "tampered")),
        ("PATCH", "", merge, change.clone()),
        ("PATCH", "?fieldManager=it&force=true", "application/apply-patch+yaml", kind.object(INTRUDER, "")),
        ("DELETE", "", json, Value::Null),
        ("OPTIONS", "", json, Value::Null),
    ] {
        // Verbs in the path are the same whatever the method.
        let verb_in_path = attempt.path.contains("/watch/") || attempt.path.contains("/proxy/");
        if verb_in_path && !(matches!(method, "GET" | "DELETE") && query.is_empty()) {
            continue;
        }
        // Everybody may review their own access, but not in a namespace.
        let permitted = kind.is_for_everybody() && method == "POST";
        if permitted && !attempt.path.contains("/namespaces/") {
            continue;
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("{}{query}", attempt.path);
        let reply = client.reply(method, &path, &[("content-type", content_type)], body).await;
        let code = reply.status().as_u16();
        let complaint = |what: &str| format!("{who}: {method} {path}: {code} {what}");
        let expected = match (who, attempt.misplaced) {
            _ if permitted => code == 403 || code == 404,
            ("nobody", _) | (_, false) => code == 403,
            ("admin-of-foo", true) => code == 404,
            (_, true) => code == 403 || code == 404,
        };
        if !expected {
            wrong.push(complaint("is not the refusal it should be"));
        }
        if code < 400 {
            continue;
        }
        let (_, answer) = read(reply).await;
        if answer.to_string().contains(CANARY) {
            wrong.push(complaint("shows what is out of reach"));
        }
    }
    wrong
}

#[tokio::test]
async fn permissions_in_one_namespace_reach_nothing_else_by_any_path() {
    let admin = with_one_object_of_each_kind().await;
    let before = out_of_reach(&admin);
    let kinds = kinds();
    let mut wrong = Vec::new();
    for who in ["admin-of-foo", "viewer-of-foo", "nobody"] {
        let client = admin.as_user(User::new(who, ["system:authenticated"]));
        for attempt in kinds.iter().flat_map(attempts) {
            wrong.extend(try_everything(&client, who, &attempt).await);
        }
    }
    wait_idle(&admin).await;
    let after = out_of_reach(&admin);
    for key in before.keys().chain(after.keys()) {
        if before.get(key) != after.get(key) {
            wrong.push(format!("{key} was at revision {:?} and is at {:?}", before.get(key), after.get(key)));
        }
    }
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn rights_in_one_namespace_are_good_for_everything_in_it() {
    let admin = with_one_object_of_each_kind().await;
    let owner = admin.as_user(User::new("admin-of-foo", ["system:authenticated"]));
    let mut refused = Vec::new();
    // The events here refer to something in `bar`.
    for kind in kinds().iter().filter(|kind| kind.stored && kind.namespaced && kind.plural != "events") {
        let collection = kind.collection("foo");
        let item = format!("{collection}/own");
        let answers = [
            owner.create(&collection, &kind.object("own", "")).await,
            owner.get(&collection).await,
            owner.get(&item).await,
            owner.delete(&item).await,
        ];
        let failed = answers.into_iter().filter(|(code, _)| code / 100 != 2);
        refused.extend(failed.map(|(code, body)| format!("{collection}: {code} {}", body["message"])));
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // As upstream, a Namespace counts as being in itself for authorization.
    let own = "/api/v1/namespaces/foo";
    assert_eq!(owner.get(own).await.0, 200);
    let label = json!({"metadata": {"labels": {"own": "yes"}}});
    let (code, patched) = owner.patch(own, "application/merge-patch+json", &label).await;
    assert_eq!((code, &patched["metadata"]["labels"]["own"]), (200, &json!("yes")));
    let (code, _) = owner.call("PUT", &format!("{own}/finalize"), &patched).await;
    assert_eq!(code, 200);
    assert_eq!(owner.get("/api/v1/namespaces/bar").await.0, 403);
    assert_eq!(owner.get("/api/v1/namespaces").await.0, 403);
}

#[tokio::test]
async fn paths_that_fit_no_route_are_answered_as_upstream_answers_them() {
    let client = with_one_object_of_each_kind().await;
    let mut wrong = Vec::new();
    for (method, path, code) in [
        // Lists and watches of all namespaces, and nothing else.
        ("GET", "/api/v1/secrets", 200),
        ("POST", "/api/v1/secrets", 405),
        ("DELETE", "/api/v1/secrets", 405),
        ("GET", "/api/v1/secrets/canary", 404),
        ("GET", "/apis/ex.io/v1/widgets", 200),
        ("POST", "/apis/ex.io/v1/widgets", 404),
        ("GET", "/apis/ex.io/v1/widgets/canary", 404),
        // Unsupported methods.
        ("PUT", "/api/v1/namespaces/bar/secrets", 405),
        ("POST", "/api/v1/namespaces/bar/secrets/canary", 405),
        ("POST", "/apis/ex.io/v1/namespaces/bar/widgets/canary", 405),
        ("PATCH", "/apis/ex.io/v1/namespaces/bar/widgets", 400),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", 404),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", 404),
        ("DELETE", "/api/v1/watch/namespaces/bar/secrets", 405),
        ("GET", "/api/v1/watch/namespaces/bar/status", 404),
        ("DELETE", "/api/v1/namespaces/bar/status", 405),
        // Documents are read-only. Those outside of upstream's router are read whatever the method.
        ("POST", "/version", 405),
        ("POST", "/api", 405),
        ("PUT", "/apis/apps/v1", 405),
        ("POST", "/apis/apps/v2", 404),
        ("DELETE", "/apis", 200),
        ("POST", "/apis/ex.io/v1", 200),
        ("POST", "/openapi/v2", 200),
        ("POST", "/nowhere", 404),
        ("GET", "/version/", 200),
        // Empty segments are not found.
        ("GET", "//version", 404),
        ("GET", "//api/v1/namespaces", 404),
        ("GET", "/api//v1/namespaces", 404),
        ("GET", "/api/v1//namespaces", 404),
        ("GET", "/api/v1/namespaces//secrets", 404),
        ("GET", "/apis/ex.io/v1/namespaces/bar//widgets", 404),
        ("GET", "/api/v1/namespaces/bar/secrets/", 200),
    ] {
        let (got, body) = client.call(method, path, &json!({})).await;
        if got != code {
            wrong.push(format!("{method} {path}: {got}, not {code}: {body}"));
        } else if (code == 405 || (code == 404 && path.starts_with("/api/"))) && body["kind"] != "Status" {
            wrong.push(format!("{method} {path}: no Status: {body}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
