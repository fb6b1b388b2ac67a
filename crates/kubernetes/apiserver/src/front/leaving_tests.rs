//! Clients that leave while their request is handled.

use std::time::Duration;

use bytes::Bytes;
use capstan_audit::{AuditLog, LogOptions, Policy, Stage};
use futures::future::BoxFuture;
use http_body_util::{Full, StreamBody};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::tests::{connect, server};
use super::*;
use crate::admission::{Admission, AdmissionAttributes, Representations};
use crate::auth::{Authorizer, ObjectSource};
use crate::config::Kinds;
use crate::conversion::Conversions;
use crate::status::Result;
use crate::{Audit, Config};

const CONFIG_MAPS: &str = "https://localhost/api/v1/namespaces/default/configmaps";
const BODY: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"left"}}"#;

/// Holds requests where they are validated: everything before the commit is done.
#[derive(Clone)]
struct Gate {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }
}

impl Admission for Gate {
    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async {
            if attributes.name == "left" {
                self.reached.add_permits(1);
                self.open.acquire().await.expect("not closed").forget();
            }
            Ok(())
        })
    }
}

impl Kinds for Gate {
    fn admission(&self, _: &Arc<dyn ObjectSource>, _: &Arc<dyn Authorizer>) -> Vec<Arc<dyn Admission>> {
        vec![Arc::new(self.clone())]
    }

    fn conversions(&self, known: Conversions, _: &Arc<dyn ObjectSource>) -> Conversions {
        known
    }
}

/// A server whose audit log omits what a request says at its beginning.
async fn audited(gate: &Gate) -> (Server, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        path: dir.path().join("audit.log"),
        max_bytes: 1 << 20,
        max_backups: 0,
        max_age: Duration::ZERO,
    };
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: Metadata}]}";
    let log = AuditLog::open(options).expect("a log");
    let audit = Audit { policy: Policy::parse(policy).expect("a policy"), log: Some(log), webhook: None };
    let config = Config::in_memory().with_audit(Arc::new(audit)).with_kinds(Arc::new(gate.clone()));
    (server(config).await, dir)
}

/// The code and stage of each audit event about writes of ConfigMaps, once there is one.
async fn recorded(dir: &TempDir) -> Vec<(u64, String)> {
    for _ in 0..1000 {
        let text = std::fs::read_to_string(dir.path().join("audit.log")).expect("the log");
        let all = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let writes =
            all.filter(|event| event["verb"] == "create" && event["objectRef"]["resource"] == "configmaps");
        let found: Vec<_> = writes
            .map(|event| {
                let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
                (code, event["stage"].as_str().unwrap_or_default().to_owned())
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Vec::new()
}

fn create() -> http::Request<Full<Bytes>> {
    let request = http::Request::post(CONFIG_MAPS).header("host", "localhost");
    request.header("content-type", "application/json").body(Full::from(BODY)).expect("a request")
}

fn is_stored(server: &Server) -> bool {
    server.store().get("/configmaps", "default/left").is_some()
}

/// The client has gone when a request is about to be committed.
async fn outlives<Left: Future<Output = ()>>(leave: impl FnOnce(Server, Gate) -> Left, how: &str) {
    let gate = Gate::new();
    let (server, dir) = audited(&gate).await;
    leave(server.clone(), gate.clone()).await;
    assert!(!is_stored(&server), "{how}: it waits at the gate");
    gate.open.add_permits(1);
    let complete = format!("{:?}", Stage::ResponseComplete);
    assert_eq!(recorded(&dir).await, [(201, complete)], "{how}");
    assert!(is_stored(&server), "{how}");
}

#[tokio::test]
async fn a_write_is_recorded_although_its_client_resets_the_stream() {
    let reset = |server: Server, gate: Gate| async move {
        let stream = TokioIo::new(connect(&server, b"h2").await);
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut client, connection) = builder.handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let left = client.send_request(create());
        tokio::select! {
            _ = left => panic!("nothing is answered yet"),
            reached = gate.reached.acquire() => reached.expect("not closed").forget(),
        }
        // What the server receives after the reset, it has answered after the reset.
        for _ in 0..3 {
            let next =
                http::Request::get("https://localhost/version").body(Full::default()).expect("a request");
            let next = client.send_request(next).await.expect("a response");
            assert_eq!(next.status(), 200);
        }
    };
    outlives(reset, "RST_STREAM").await;
}

#[tokio::test]
async fn a_write_is_recorded_although_its_client_closes_the_connection() {
    for protocol in ["h2", "http/1.1"] {
        let close = |server: Server, gate: Gate| async move {
            let stream = TokioIo::new(connect(&server, protocol.as_bytes()).await);
            if protocol == "h2" {
                let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
                let (mut client, connection) = builder.handshake(stream).await.expect("HTTP/2");
                let connection = tokio::spawn(connection);
                let _left = tokio::spawn(client.send_request(create()));
                gate.reached.acquire().await.expect("not closed").forget();
                connection.abort();
            } else {
                let (mut client, connection) =
                    hyper::client::conn::http1::handshake(stream).await.expect("HTTP/1");
                let connection = tokio::spawn(connection);
                let _left = tokio::spawn(client.send_request(create()));
                gate.reached.acquire().await.expect("not closed").forget();
                connection.abort();
            }
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        outlives(close, protocol).await;
    }
}

#[tokio::test]
async fn a_write_whose_body_is_cut_off_has_no_effect() {
    let gate = Gate::new();
    let (server, dir) = audited(&gate).await;
    gate.open.add_permits(1);
    let stream = TokioIo::new(connect(&server, b"h2").await);
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut client, connection) = builder.handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    // YAML: what has arrived is an object, too.
    let (mut more, frames) = futures::channel::mpsc::channel::<std::result::Result<_, Infallible>>(1);
    let yaml = "{apiVersion: v1, kind: ConfigMap, metadata: {name: left}}\n";
    more.try_send(Ok(hyper::body::Frame::data(Bytes::from(yaml)))).expect("room");
    let request = http::Request::post(CONFIG_MAPS).header("content-type", "application/yaml");
    let request = request.body(StreamBody::new(frames)).expect("a request");
    let left = client.send_request(request);
    tokio::select! {
        _ = left => panic!("its body has no end yet"),
        () = tokio::time::sleep(Duration::from_millis(50)) => {}
    }
    let complete = format!("{:?}", Stage::ResponseComplete);
    assert_eq!(recorded(&dir).await, [(400, complete)]);
    assert!(!is_stored(&server));
    drop(more);
}

#[tokio::test]
async fn a_read_ends_with_its_client() {
    let (reached, ended) = (Arc::new(Semaphore::new(0)), Arc::new(()));
    let (reaches, held) = (reached.clone(), ended.clone());
    let mut read = Answering::new(
        async move {
            reaches.add_permits(1);
            std::future::pending::<()>().await;
            drop(held);
            panic!("it is never answered")
        },
        false,
    );
    assert!(futures::poll!(&mut read).is_pending());
    assert_eq!((reached.available_permits(), Arc::strong_count(&ended)), (1, 2));
    drop(read);
    assert_eq!(Arc::strong_count(&ended), 1);
}
