//! A management cluster and a workload cluster in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_apiserver::{Config, Server};
use capstan_capi_plane::Settings;
use capstan_controller::{
    Body, Client, Env, Health, KindName, Patch, Runtime, Stream, Transport, TransportError, WorkloadError,
    Workloads,
};
use capstan_object::{Key, Scope};
use capstan_pki::Pki;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Time that jumps to the next timer when no task is ready.
fn env(seed: u64) -> Env {
    let begun = Instant::now();
    let clock = move || {
        let since = SignedDuration::try_from(begun.elapsed()).unwrap();
        Timestamp::from_second(1_767_225_600).unwrap() + since
    };
    Env::simulated(clock, seed)
}

async fn server(env: Env, configure: impl Fn(Config) -> Config) -> Server {
    let pki = Arc::new(Pki::ephemeral(env.clone()));
    let config = Config::in_memory().with_env(env).trusting_everybody();
    Server::start(configure(config), pki).await.expect("a server")
}

/// A server with the kinds of Cluster API and no controllers.
pub async fn management() -> (Server, Client) {
    let plane = server(env(1), capstan_capi_plane::configure).await;
    let client = Client::in_process(plane.clone(), "user");
    capstan_capi_plane::install(&client, &capstan_capi_plane::definitions()).await.expect("definitions");
    (plane, client)
}

/// A transport that rejects changes and deletions of Nodes on request.
struct Refusing {
    inner: Arc<dyn Transport>,
    refuses: Arc<AtomicBool>,
}

impl Transport for Refusing {
    fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<Body>, TransportError>> {
        let writes = matches!(*request.method(), http::Method::PATCH | http::Method::DELETE);
        let of_nodes = request.uri().path().starts_with("/api/v1/nodes/");
        if !(writes && of_nodes && self.refuses.load(Ordering::Relaxed)) {
            return self.inner.send(request);
        }
        let status =
            json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "nodes are not yours"});
        let response = http::Response::builder().status(403);
        let response = response.body(Body::new(http_body_util::Full::from(status.to_string())));
        Box::pin(std::future::ready(Ok(response.expect("an answer"))))
    }
}

/// One workload cluster that is always reachable.
struct Reachable {
    client: Client,
    env: Env,
}

impl Workloads for Reachable {
    fn client<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Client, WorkloadError>> {
        Box::pin(async { Ok(self.client.clone()) })
    }

    fn port_forward<'a>(
        &'a self,
        cluster: &'a Key,
        _: &'a Key,
        _: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, WorkloadError>> {
        Box::pin(async { Err(WorkloadError::NoKubeconfig(cluster.clone())) })
    }

    fn forget(&self, _: &Key) {}

    fn health(&self, _: &Key) -> Health {
        Health { last_success: Some(self.env.now()), ..Health::default() }
    }
}

pub struct World {
    pub user: Client,
    pub guest: Client,
    pub runtime: Runtime,
    /// The workload server rejects the controllers' writes to Nodes.
    pub refuses: Arc<AtomicBool>,
    planes: [Server; 2],
    env: Env,
}

pub const FAKES: [(&str, &str); 8] = [
    ("FakeCluster", "fakeclusters"),
    ("FakeControlPlane", "fakecontrolplanes"),
    ("FakeMachine", "fakemachines"),
    ("FakeConfig", "fakeconfigs"),
    ("FakeClusterTemplate", "fakeclustertemplates"),
    ("FakeControlPlaneTemplate", "fakecontrolplanetemplates"),
    ("FakeMachineTemplate", "fakemachinetemplates"),
    ("FakeConfigTemplate", "fakeconfigtemplates"),
];

pub fn fake(kind: &str) -> KindName {
    let (kind, plural) = FAKES.into_iter().find(|(known, _)| *known == kind).unwrap();
    KindName::namespaced("fake.example.com", "v1alpha1", kind, plural)
}

pub fn core(kind: &str, plural: &str) -> KindName {
    KindName::namespaced("cluster.x-k8s.io", "v1beta2", kind.to_owned(), plural.to_owned())
}

pub fn cluster_scoped(group: &str, version: &str, kind: &str, plural: &str) -> KindName {
    let mut name =
        KindName::namespaced(group.to_owned(), version.to_owned(), kind.to_owned(), plural.to_owned());
    name.scope = Scope::Cluster;
    name
}

fn definition(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.fake.example.com"),
            "labels": {"cluster.x-k8s.io/v1beta2": "v1alpha1"},
        },
        "spec": {
            "group": "fake.example.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn controllers(
    [management, workload]: &[Server; 2],
    env: &Env,
    settings: &Settings,
    refuses: &Arc<AtomicBool>,
) -> Runtime {
    let guest = Client::in_process(workload.clone(), "guest");
    let refusing = Refusing { inner: guest.transport().clone(), refuses: refuses.clone() };
    let guest = Client::new(Arc::new(refusing), "guest");
    let workloads = Arc::new(Reachable { client: guest, env: env.clone() });
    let client = Client::in_process(management.clone(), "capstan");
    let options = capstan_capi_plane::options(settings);
    let mut runtime = Runtime::with_workloads(client, env.clone(), options, Some(workloads));
    capstan_capi_plane::add_controllers(&mut runtime, settings);
    runtime.start();
    runtime
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(&Settings::default()).await
    }

    pub async fn start_with(settings: &Settings) -> Self {
        let env = env(1);
        let management = server(env.clone(), capstan_capi_plane::configure).await;
        let workload = server(env.clone(), |config| config).await;
        let user = Client::in_process(management.clone(), "user");
        let guest = Client::in_process(workload.clone(), "guest");
        let mut definitions = capstan_capi_plane::definitions();
        definitions.extend(FAKES.map(|(kind, plural)| definition(kind, plural)));
        capstan_capi_plane::install(&user, &definitions).await.expect("definitions");
        let planes = [management, workload];
        let refuses = Arc::default();
        let runtime = controllers(&planes, &env, settings, &refuses);
        Self { user, guest, runtime, refuses, planes, env }
    }

    /// Starts more controllers on the same server, like another process.
    pub fn another(&self, settings: &Settings) -> Runtime {
        controllers(&self.planes, &self.env, settings, &self.refuses)
    }

    /// Creates an object in the namespace `default`, with its status if it has one.
    pub async fn create(&self, kind: &KindName, name: &str, mut body: Value) {
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.kind.as_ref().into();
        body["metadata"]["name"] = name.into();
        self.user
            .create(kind, "default", &body)
            .await
            .unwrap_or_else(|error| panic!("{kind} {name}: {error:?}"));
        if body.get("status").is_some() {
            self.status(kind, name, body["status"].clone()).await;
        }
    }

    pub async fn status(&self, kind: &KindName, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.user.patch(kind, &Key::new("default", name), Some("status"), &patch).await.expect("a status");
    }

    pub async fn patch(&self, kind: &KindName, name: &str, change: Value) {
        self.user
            .patch(kind, &Key::new("default", name), None, &Patch::Merge(change))
            .await
            .expect("a patch");
    }

    /// Removes an object of the workload cluster at once, as a kubelet does when its containers have ended.
    pub async fn force_delete(&self, path: &str, options: &Value) {
        let request = http::Request::builder()
            .method("DELETE")
            .uri(path)
            .header("content-type", "application/json")
            .body(bytes::Bytes::from(options.to_string()))
            .expect("a request");
        let response = self.guest.transport().send(request).await.expect("an answer");
        assert!(response.status().is_success(), "{}", response.status());
    }

    pub async fn get(&self, kind: &KindName, name: &str) -> Option<Value> {
        let reply = self.user.get_raw(kind, &Key::new("default", name)).await.expect("an answer");
        reply.map(|reply| reply.parse().expect("an object"))
    }

    /// Lets simulated time pass until an object satisfies a condition.
    pub async fn until(
        &self,
        kind: &KindName,
        name: &str,
        what: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        for _ in 0..1200 {
            let object = self.get(kind, name).await;
            if holds(object.as_ref()) {
                return object;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let object = self.get(kind, name).await;
        panic!("{kind} {name} never came to: {what}\n{}", serde_json::to_string_pretty(&object).unwrap());
    }

    /// The versions of all objects of some kinds: equal if and only if nothing was written.
    pub async fn versions(&self, kinds: &[KindName]) -> Vec<String> {
        let mut versions = Vec::new();
        for kind in kinds {
            let list = self
                .user
                .list::<Value>(kind, "default", &capstan_controller::ListOptions::default())
                .await
                .unwrap();
            versions.extend(list.items.iter().map(|item| item["metadata"]["resourceVersion"].to_string()));
        }
        versions
    }
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}
