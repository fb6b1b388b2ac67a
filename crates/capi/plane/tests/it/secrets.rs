//! Objects that name Secrets of other namespaces, written by somebody who may not read them.

use std::sync::Arc;

use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, Server};
use capstan_capi_plane::{ALLOWED_NAMESPACES, ClusterApi, Reviewer, Rules};
use capstan_capi_types::admission::{self, SecretUse};
use capstan_capi_types::conversion::Converter;
use capstan_controller::{ApiError, Body, Client, Env, KindName, Patch, Transport, TransportError};
use capstan_object::{Key, Kind, Scope};
use capstan_pki::Pki;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::plane::core;

/// The kind of the test: a ConfigMap whose data names a Secret.
const CONFIG_MAP: Kind =
    Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", scope: Scope::Namespaced };

fn rules() -> Rules {
    Rules::default().with([admission::Rules {
        kind: CONFIG_MAP,
        default: |_, _| Ok(false),
        validate: |_, _, _| Ok(Vec::new()),
        secrets: |object| {
            let text = |field: &str| object["data"][field].as_str().unwrap_or_default();
            let secret = Key::new(text("namespace"), text("name"));
            Ok(if secret.name.is_empty() {
                Vec::new()
            } else {
                vec![SecretUse { path: "data".to_owned(), secret }]
            })
        },
    }])
}

/// Requests of one user.
struct As {
    server: Server,
    user: User,
}

impl Transport for As {
    fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<Body>, TransportError>> {
        let request = request.map(http_body_util::Full::new);
        let handled = self.server.handle_as(self.user.clone(), request);
        Box::pin(async move { Ok(handled.await.map(Body::new)) })
    }
}

fn kind(group: &'static str, kind: &'static str, plural: &'static str, scope: Scope) -> KindName {
    Kind { group, version: "v1", kind, plural, scope }.into()
}

/// A server with namespaces `team` and `operators`, Secrets in the latter, and `tenant`, who may do everything in the former.
async fn server() -> (Client, Client) {
    let pki = Arc::new(Pki::ephemeral(Env::system()));
    let config = Config::in_memory().with_kinds(Arc::new(ClusterApi::new(rules())));
    let server = Server::start(config, pki).await.expect("a server");
    let admin = Client::in_process(server.clone(), "admin");
    for name in ["team", "operators"] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        admin.create(&kind("", "Namespace", "namespaces", Scope::Cluster), "", &body).await.expect(name);
    }
    for (name, annotations) in
        [("cloud", json!({})), ("lent", json!({ALLOWED_NAMESPACES: "elsewhere, team"}))]
    {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": annotations},
        });
        let secrets = kind("", "Secret", "secrets", Scope::Namespaced);
        admin.create(&secrets, "operators", &body).await.expect(name);
    }
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "tenant"}],
    });
    let bindings = kind(group, "RoleBinding", "rolebindings", Scope::Namespaced);
    admin.create(&bindings, "team", &binding).await.expect("a binding");
    let user = User::new("tenant", ["system:authenticated"]);
    (admin, Client::new(Arc::new(As { server, user }), "tenant"))
}

fn config_map(name: &str, namespace: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "team"},
        "data": {"namespace": namespace, "name": secret},
    })
}

async fn create(client: &Client, body: &Value) -> Result<(), ApiError> {
    client.create(&CONFIG_MAP.into(), "team", body).await.map(drop)
}

#[tokio::test]
async fn whoever_may_not_read_a_secret_may_not_have_it_used() {
    let (admin, tenant) = server().await;
    let refused = create(&tenant, &config_map("a", "operators", "cloud")).await.expect_err("not theirs");
    let text = refused.to_string();
    assert!(refused.is_invalid() && text.contains("data: Forbidden"), "{text}");
    assert!(text.contains("operators/cloud") && text.contains(ALLOWED_NAMESPACES), "{text}");
    let unknown = create(&tenant, &config_map("a", "operators", "none")).await.expect_err("not theirs");
    assert_eq!(unknown.to_string().replace("none", "cloud"), text, "existence is not revealed");

    create(&tenant, &config_map("own", "team", "any")).await.expect("its own namespace");
    create(&tenant, &config_map("lent", "operators", "lent")).await.expect("its owner lends it");
    create(&admin, &config_map("made", "operators", "cloud")).await.expect("may read it");

    let patch = |client: Client, data: Value| async move {
        let patch = Patch::Merge(json!({ "data": data }));
        client.patch(&CONFIG_MAP.into(), &Key::new("team", "made"), None, &patch).await.map(drop)
    };
    patch(tenant.clone(), json!({"more": "x"})).await.expect("what an administrator allowed stays");
    let refused = patch(tenant, json!({"name": "other"})).await.expect_err("another Secret");
    assert!(refused.is_invalid(), "{refused}");
}

/// An object of the topology of cluster `c`, cloned from the ConfigMap `template`.
fn of_topology(name: &str, namespace: &str, secret: &str) -> Value {
    let mut body = config_map(name, namespace, secret);
    body["metadata"]["labels"] =
        json!({"topology.cluster.x-k8s.io/owned": "", "cluster.x-k8s.io/cluster-name": "c"});
    body["metadata"]["annotations"] = json!({
        "cluster.x-k8s.io/cloned-from-name": "template", "cluster.x-k8s.io/cloned-from-groupkind": "ConfigMap.",
    });
    body
}

#[tokio::test]
async fn a_patch_of_a_class_may_not_use_what_its_template_does_not_name() {
    // The controllers are `admin` here: they may read everything.
    let (admin, tenant) = server().await;
    capstan_capi_plane::install(&admin, &capstan_capi_plane::definitions()).await.expect("definitions");
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"topology": {"classRef": {"name": "k"}, "version": "v1.36.0"}},
    });
    admin.create(&core("Cluster", "clusters"), "team", &cluster).await.expect("a cluster");
    let refused = create(&admin, &of_topology("a", "operators", "cloud")).await.expect_err("by a patch");
    assert!(refused.to_string().contains("an object of a ClusterClass may not use"), "{refused}");
    create(&admin, &of_topology("own", "team", "any")).await.expect("its own namespace");
    create(&admin, &of_topology("lent", "operators", "lent")).await.expect("its owner lends it");

    create(&tenant, &config_map("template", "operators", "cloud")).await.expect_err("not theirs");
    create(&admin, &config_map("template", "operators", "cloud")).await.expect("may read it");
    let forged = create(&tenant, &of_topology("forged", "operators", "cloud")).await.expect_err("not theirs");
    assert!(forged.is_invalid(), "{forged}");
    create(&admin, &of_topology("a", "operators", "cloud")).await.expect("as the template says");
    let refused = create(&admin, &of_topology("b", "operators", "other")).await.expect_err("another one");
    assert!(refused.is_invalid(), "{refused}");
}

#[tokio::test]
async fn a_class_of_another_namespace_lends_no_secrets() {
    let (admin, tenant) = server().await;
    capstan_capi_plane::install(&admin, &capstan_capi_plane::definitions()).await.expect("definitions");
    let mut template = config_map("template", "operators", "cloud");
    template["metadata"]["namespace"] = json!("operators");
    admin.create(&CONFIG_MAP.into(), "operators", &template).await.expect("a template");
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"topology": {"classRef": {"name": "k", "namespace": "operators"}, "version": "v1.36.0"}},
    });
    tenant.create(&core("Cluster", "clusters"), "team", &cluster).await.expect("a cluster");
    // The controllers are `admin` here: they write what the class says, for whoever made the cluster.
    for (client, who) in [(&tenant, "the tenant"), (&admin, "the controllers")] {
        let refused = create(client, &of_topology("a", "operators", "cloud")).await.expect_err(who);
        assert!(refused.to_string().contains(ALLOWED_NAMESPACES), "{who}: {refused}");
    }
    create(&admin, &of_topology("lent", "operators", "lent")).await.expect("its owner lends it");
}

/// What an API server asks a webhook when a user creates the ConfigMap `a`.
fn review(user: &Value, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "namespace": "team", "name": "a", "userInfo": user,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": object,
        },
    })
}

#[tokio::test]
async fn a_webhook_asks_the_api_server_what_the_requester_may_do() {
    let (admin, _) = server().await;
    let reviewer = Reviewer::new(rules(), Converter::default(), admin);
    for (user, secret, allowed) in [
        (json!({"username": "tenant"}), "cloud", false),
        (json!({"username": "tenant"}), "lent", true),
        (json!({"username": "root", "groups": ["system:masters"]}), "cloud", true),
        (json!({}), "cloud", false),
    ] {
        let review = review(&user, &config_map("a", "operators", secret));
        let answer = reviewer.validate(review).await.expect("a review");
        assert_eq!(answer["response"]["allowed"], allowed, "{user} {secret}: {answer}");
    }
}

#[tokio::test]
async fn a_webhook_judges_an_object_of_a_class_by_its_template_and_the_rights_of_the_requester() {
    let (admin, _) = server().await;
    capstan_capi_plane::install(&admin, &capstan_capi_plane::definitions()).await.expect("definitions");
    for (name, class) in [("c", json!({"name": "k"})), ("d", json!({"name": "k", "namespace": "operators"}))]
    {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"topology": {"classRef": class, "version": "v1.36.0"}},
        });
        admin.create(&core("Cluster", "clusters"), "team", &cluster).await.expect(name);
    }
    for namespace in ["team", "operators"] {
        let mut template = config_map("template", "operators", "cloud");
        template["metadata"]["namespace"] = json!(namespace);
        admin.create(&CONFIG_MAP.into(), namespace, &template).await.expect(namespace);
    }
    let reviewer = Reviewer::new(rules(), Converter::default(), admin);
    let (tenant, root) =
        (json!({"username": "tenant"}), json!({"username": "r", "groups": ["system:masters"]}));
    for (user, cluster, secret, allowed) in [
        (&tenant, "c", "cloud", false),
        (&tenant, "c", "lent", true),
        (&root, "c", "cloud", true),
        (&root, "c", "other", false),
        (&root, "d", "cloud", false),
        (&root, "d", "lent", true),
        (&root, "none", "cloud", false),
    ] {
        let mut object = of_topology("a", "operators", secret);
        object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = json!(cluster);
        let review = review(user, &object);
        let answer = reviewer.validate(review).await.expect("a review");
        assert_eq!(answer["response"]["allowed"], allowed, "{user} {cluster} {secret}: {answer}");
    }
}
