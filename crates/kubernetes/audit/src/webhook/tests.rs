//! A webhook behind TLS that fails, hangs and recovers.

use std::convert::Infallible;
use std::sync::Mutex;

use base64::Engine as _;
use capstan_env::Env;
use capstan_pki::Pki;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::log::tests::event;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Takes,
    Fails,
    Refuses,
    Hangs,
}

struct Served {
    behaviour: Mutex<Behaviour>,
    /// Lists of ids, by batch.
    batches: Mutex<Vec<Vec<String>>>,
    authorization: Mutex<String>,
    requests: watch::Sender<usize>,
}

impl Served {
    async fn start(folder: &Path, behaviour: Behaviour) -> (Arc<Self>, PathBuf) {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("https://127.0.0.1:{}/audit", listener.local_addr().unwrap().port());
        let tls = TlsAcceptor::from(pki.server_config(&["127.0.0.1".to_owned()]).unwrap());
        let served = Arc::new(Self {
            behaviour: Mutex::new(behaviour),
            batches: Mutex::default(),
            authorization: Mutex::default(),
            requests: watch::channel(0).0,
        });
        let shared = served.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, served) = (tls.clone(), shared.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request| {
                        let served = served.clone();
                        async move { Ok::<_, Infallible>(served.respond(request).await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let authority = base64::engine::general_purpose::STANDARD.encode(pki.ca_pem().unwrap());
        let config = json!({
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": "let-me-in"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        let path = folder.join("webhook.kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        (served, path)
    }

    async fn respond(&self, request: Request<hyper::body::Incoming>) -> http::Response<Full<Bytes>> {
        let authorization = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
        *self.authorization.lock().unwrap() = authorization;
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let behaviour = *self.behaviour.lock().unwrap();
        self.requests.send_modify(|count| *count += 1);
        let code = match behaviour {
            Behaviour::Takes => {
                let list: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(
                    (&list["kind"], &list["apiVersion"]),
                    (&json!("EventList"), &json!("audit.k8s.io/v1"))
                );
                let ids = list["items"].as_array().unwrap().iter();
                let ids = ids.map(|item| item["auditID"].as_str().unwrap().to_owned()).collect();
                self.batches.lock().unwrap().push(ids);
                200
            }
            Behaviour::Fails => 503,
            Behaviour::Refuses => 400,
            Behaviour::Hangs => std::future::pending().await,
        };
        http::Response::builder().status(code).body(Full::default()).unwrap()
    }

    async fn requests(&self, count: usize) {
        self.requests.subscribe().wait_for(|seen| *seen >= count).await.unwrap();
    }
}

fn options(config: &Path) -> WebhookOptions {
    WebhookOptions {
        buffer: 8,
        batch: 3,
        wait: Duration::from_millis(5),
        backoff: Duration::from_millis(5),
        timeout: Duration::from_millis(200),
        ..WebhookOptions::new(config)
    }
}

/// Waits until the counts fulfil a condition.
async fn until(webhook: &Webhook, condition: impl Fn(WebhookCounts) -> bool) -> WebhookCounts {
    loop {
        let counts = webhook.counts();
        if condition(counts) {
            return counts;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn events_arrive_once_in_order_and_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let (served, config) = Served::start(folder.path(), Behaviour::Takes).await;
    let webhook =
        Webhook::open(WebhookOptions { wait: Duration::from_secs(3600), ..options(&config) }).unwrap();
    for id in 0..6 {
        webhook.record(&event(id));
    }
    let counts = until(&webhook, |counts| counts.queued == 0).await;
    assert_eq!(counts, WebhookCounts { sent: 6, ..WebhookCounts::default() });
    let batches = served.batches.lock().unwrap().clone();
    assert_eq!(batches, [["id-0", "id-1", "id-2"], ["id-3", "id-4", "id-5"]]);
    assert_eq!(*served.authorization.lock().unwrap(), "Bearer let-me-in");
}

#[tokio::test]
async fn a_webhook_that_fails_and_hangs_gets_the_batch_when_it_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let (served, config) = Served::start(folder.path(), Behaviour::Fails).await;
    let webhook = Webhook::open(options(&config)).unwrap();
    webhook.record(&event(1));
    served.requests(1).await;
    *served.behaviour.lock().unwrap() = Behaviour::Hangs;
    served.requests(2).await;
    *served.behaviour.lock().unwrap() = Behaviour::Takes;
    let counts = until(&webhook, |counts| counts.queued == 0).await;
    assert_eq!((counts.sent, counts.dropped), (1, 0));
    assert!(counts.failed_requests >= 2, "{counts:?}");
    assert_eq!(*served.batches.lock().unwrap(), [["id-1"]]);
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_and_never_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (served, config) = Served::start(folder.path(), Behaviour::Hangs).await;
    let webhook =
        Webhook::open(WebhookOptions { timeout: Duration::from_secs(3600), batch: 1, ..options(&config) });
    let webhook = webhook.unwrap();
    webhook.record(&event(0));
    served.requests(1).await;
    // One is being sent; eight wait.
    for id in 1..20 {
        webhook.record(&event(id));
    }
    let counts = webhook.counts();
    assert_eq!((counts.queued, counts.dropped), (9, 11), "{counts:?}");
    // A server that stops does not wait for an hour either: the attempt ends with the process, not with this test.
    std::mem::forget(webhook);
}

#[tokio::test]
async fn a_batch_that_is_refused_or_fails_too_often_is_dropped_and_the_next_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (served, config) = Served::start(folder.path(), Behaviour::Refuses).await;
    let webhook = Webhook::open(options(&config)).unwrap();
    webhook.record(&event(1));
    until(&webhook, |counts| counts.dropped == 1).await;
    assert_eq!(*served.requests.borrow(), 1, "a refusal is not retried");
    *served.behaviour.lock().unwrap() = Behaviour::Fails;
    webhook.record(&event(2));
    until(&webhook, |counts| counts.dropped == 2).await;
    assert_eq!(*served.requests.borrow(), 6, "one attempt and four retries");
    *served.behaviour.lock().unwrap() = Behaviour::Takes;
    webhook.record(&event(3));
    until(&webhook, |counts| counts.sent == 1).await;
    assert_eq!(*served.batches.lock().unwrap(), [["id-3"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_sent_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (served, config) = Served::start(folder.path(), Behaviour::Takes).await;
    let webhook =
        Webhook::open(WebhookOptions { wait: Duration::from_secs(3600), ..options(&config) }).unwrap();
    webhook.record(&event(1));
    tokio::task::spawn_blocking(move || drop(webhook)).await.unwrap();
    assert_eq!(*served.batches.lock().unwrap(), [["id-1"]]);
}
