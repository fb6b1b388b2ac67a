//! An extension server on loopback: real TLS, responses to order.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use capstan_controller::Env;
use capstan_pki::Pki;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Healthy,
    /// Closes connections.
    Down,
    /// Never responds.
    Silent,
    /// Responds with something that is no JSON.
    Garbage,
    /// Responds with more than anybody reads.
    Huge,
}

/// More than a response may have.
const HUGE: usize = 33 * 1024 * 1024;

struct Shape {
    mood: Mood,
    /// Responses by hook, beside the status.
    responses: BTreeMap<&'static str, Value>,
    /// Paths and bodies of the calls so far.
    calls: Vec<(String, Value)>,
}

/// A server that has one handler for each hook, called as the hook in lower case.
#[derive(Clone)]
pub struct Extension {
    pub address: SocketAddr,
    pub ca: String,
    shape: Arc<Mutex<Shape>>,
}

/// Hooks that it answers.
const HOOKS: [&str; 16] = [
    "GeneratePatches",
    "ValidateTopology",
    "DiscoverVariables",
    "BeforeClusterCreate",
    "AfterControlPlaneInitialized",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "AfterWorkersUpgrade",
    "AfterClusterUpgrade",
    "BeforeClusterDelete",
    "GenerateUpgradePlan",
    "CanUpdateMachine",
    "CanUpdateMachineSet",
    "UpdateMachine",
];

impl Extension {
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().expect("an address")).await
    }

    pub async fn start_at(address: SocketAddr) -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let acceptor = TlsAcceptor::from(pki.server_config(&["127.0.0.1".to_owned()]).expect("TLS"));
        let listener = TcpListener::bind(address).await.expect("a port");
        let shape = Shape { mood: Mood::Healthy, responses: BTreeMap::new(), calls: Vec::new() };
        let server = Self {
            address: listener.local_addr().expect("an address"),
            ca: pki.ca_pem().expect("an authority"),
            shape: Arc::new(Mutex::new(shape)),
        };
        let shape = server.shape.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (acceptor, shape) = (acceptor.clone(), shape.clone());
                if shape.lock().mood == Mood::Down {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| respond(request, shape.clone()));
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        server
    }

    /// The spec of an ExtensionConfig for this server, under a path of it.
    pub fn spec(&self, path: &str) -> Value {
        json!({"clientConfig": {
            "url": format!("https://{}{path}", self.address),
            "caBundle": STANDARD.encode(&self.ca),
        }})
    }

    pub fn behave(&self, mood: Mood) {
        self.shape.lock().mood = mood;
    }

    /// Has a hook respond with these fields; null for the default.
    pub fn respond(&self, hook: &'static str, fields: Value) {
        self.shape.lock().responses.insert(hook, fields);
    }

    /// Has a hook block.
    pub fn block(&self, hook: &'static str, message: &str) {
        self.respond(hook, json!({"retryAfterSeconds": 1, "message": message}));
    }

    pub fn release(&self, hook: &'static str) {
        self.respond(hook, Value::Null);
    }

    /// Bodies of the calls to a hook.
    pub fn calls(&self, hook: &str) -> Vec<Value> {
        let path = format!("/{}/", hook.to_lowercase());
        let shape = self.shape.lock();
        let calls = shape.calls.iter().filter(|(called, _)| called.contains(&path));
        calls.map(|(_, body)| body.clone()).collect()
    }

    /// Paths of all calls.
    pub fn paths(&self) -> Vec<String> {
        self.shape.lock().calls.iter().map(|(path, _)| path.clone()).collect()
    }
}

async fn respond(
    request: Request<Incoming>,
    shape: Arc<Mutex<Shape>>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mood = shape.lock().mood;
    shape.lock().calls.push((path.clone(), body.clone()));
    let (status, text): (u16, String) = match mood {
        Mood::Down => return Err(io::Error::other("down")),
        Mood::Silent => std::future::pending().await,
        Mood::Garbage => (200, "<html>not a hook</html>".to_owned()),
        Mood::Huge => (200, " ".repeat(HUGE)),
        // Handlers below this path fail, and say that this may be ignored.
        Mood::Healthy if path.starts_with("/flaky/") && !path.ends_with("/discovery") => {
            (500, "broken".to_owned())
        }
        Mood::Healthy => (200, response(&path, &body, &shape).to_string()),
    };
    Ok(Response::builder().status(status).body(Full::new(Bytes::from(text))).expect("a response"))
}

fn response(path: &str, body: &Value, shape: &Mutex<Shape>) -> Value {
    let mut response = json!({"status": "Success"});
    let hook = HOOKS.into_iter().find(|hook| path.contains(&format!("/{}/", hook.to_lowercase())));
    let ordered = hook.and_then(|hook| shape.lock().responses.get(hook).cloned());
    match (hook, ordered) {
        (_, Some(Value::Object(fields))) => {
            response.as_object_mut().expect("an object").extend(fields);
        }
        (None, _) => response["handlers"] = handlers(path.starts_with("/flaky/")),
        (Some("GeneratePatches"), _) => response["items"] = patches(body),
        (Some("GenerateUpgradePlan"), _) => {
            let plan = |from: &str| minors(&body[from], &body["toKubernetesVersion"]);
            response["controlPlaneUpgrades"] = plan("fromControlPlaneKubernetesVersion");
            response["workersUpgrades"] = plan("fromWorkersKubernetesVersion");
        }
        (Some("DiscoverVariables"), _) => {
            let schema = json!({"openAPIV3Schema": {"type": "string", "default": "small"}});
            response["variables"] = json!([{"name": "flavor", "required": false, "schema": schema}]);
        }
        _ => {}
    }
    response
}

/// The first patch of each minor after one version up to another.
fn minors(from: &Value, to: &Value) -> Value {
    let minor = |version: &Value| -> Option<u32> { version.as_str()?.split('.').nth(1)?.parse().ok() };
    let (Some(from), Some(to)) = (minor(from), minor(to)) else { return json!([]) };
    (from + 1..=to).map(|minor| json!({"version": format!("v1.{minor}.0")})).collect()
}

fn handlers(flaky: bool) -> Value {
    let handler = |hook: &str| {
        json!({
            "name": hook.to_lowercase(), "timeoutSeconds": 5,
            "failurePolicy": if flaky { "Ignore" } else { "Fail" },
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
        })
    };
    // Only these: what it is asked about templates must not fail.
    let all: Vec<&str> = HOOKS.into_iter().filter(|hook| !flaky || hook.starts_with("Before")).collect();
    all.into_iter().map(handler).collect()
}

/// Gives machines the flavor that the variable says.
fn patches(body: &Value) -> Value {
    let variables = body["variables"].as_array().cloned().unwrap_or_default();
    let flavor = variables.iter().find(|variable| variable["name"] == "flavor");
    let flavor = flavor.map(|variable| variable["value"].clone()).unwrap_or_default();
    let items = body["items"].as_array().cloned().unwrap_or_default();
    let machines = items.iter().filter(|item| item["object"]["kind"] == "FakeMachineTemplate");
    let patch = json!([{"op": "add", "path": "/spec/template/spec/flavor", "value": flavor}]);
    machines
        .map(|item| {
            json!({"uid": item["uid"], "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())})
        })
        .collect()
}
