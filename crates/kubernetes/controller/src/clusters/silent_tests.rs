//! Clusters that do not answer, beside one that does.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use capstan_apiserver::{Config, Server, front};
use capstan_object::{ObjectMeta, Scope, object};
use capstan_pki::Pki;
use http::{Request, Response};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{Controller, Decision, Look, NoCall, ObserveError, Options, Runtime, View, Wait, Watches};

/// Stands for a cluster of the same name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ConfigMap {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

object!(ConfigMap, "" / "v1", "ConfigMap", "configmaps", Namespaced);

/// The annotation that counts how often the cluster was asked with success.
const ASKED: &str = "asked";
/// The annotation that says when.
const ASKED_AT: &str = "asked-at";
/// So often it is asked, once a second.
const OFTEN: usize = 20;

/// Asks clusters again and again.
struct Asks;

impl Controller for Asks {
    const NAME: &'static str = "asks";
    type Kind = ConfigMap;
    type Seen = Option<Result<(), String>>;
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, object: &Arc<ConfigMap>, view: &View) -> Result<Self::Seen, ObserveError> {
        if !object.data.contains_key("cluster") {
            return Ok(None);
        }
        let ask = async {
            let workloads = view.workloads().ok_or("no clusters")?;
            let client = workloads.client(&object.metadata.key()).await.map_err(|error| error.to_string())?;
            let mut namespaces = KindName::namespaced("", "v1", "Namespace", "namespaces");
            namespaces.scope = Scope::Cluster;
            let found = client.get_raw(&namespaces, &Key::new("", "default")).await;
            found.map(|_| ()).map_err(|error| error.to_string())
        };
        Ok(Some(ask.await))
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        let asked = asked(&look.object);
        match &look.seen {
            None => {}
            Some(Err(why)) => {
                decision.wait(Wait::on("Unreachable", why.as_str())).again_in(Duration::from_secs(1));
            }
            Some(Ok(())) if asked < OFTEN => {
                let annotations = &mut decision.object.metadata.annotations;
                let last = annotations.get(ASKED_AT).and_then(|at| at.parse::<Timestamp>().ok());
                if last.is_none_or(|last| look.now.duration_since(last) >= SignedDuration::from_secs(1)) {
                    annotations.insert(ASKED.to_owned(), (asked + 1).to_string());
                    annotations.insert(ASKED_AT.to_owned(), look.now.to_string());
                }
                decision.again_in(Duration::from_secs(1));
            }
            Some(Ok(())) => {}
        }
        decision
    }
}

fn asked(object: &ConfigMap) -> usize {
    object.metadata.annotations.get(ASKED).and_then(|asked| asked.parse().ok()).unwrap_or(0)
}

/// What clusters do, by the port they are reached at.
struct Site {
    workload: Server,
    tls: Arc<rustls::ServerConfig>,
}

/// It answers.
const HEALTHY: u16 = 6443;
/// It accepts connections and says nothing.
const SILENT: u16 = 6444;
/// It answers probes and nothing else.
const HALF_SILENT: u16 = 6445;

impl Dial for Site {
    fn dial<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let (server, tls) = (self.workload.clone(), self.tls.clone());
            tokio::spawn(async move {
                match port {
                    HEALTHY => {
                        // As far away as clusters are.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        front::serve_connection(far, tls, server.pki().clone(), server).await;
                    }
                    HALF_SILENT => probes_only(far, tls).await,
                    _ => {
                        let _open = far;
                        std::future::pending::<()>().await;
                    }
                }
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

async fn probes_only(stream: tokio::io::DuplexStream, tls: Arc<rustls::ServerConfig>) {
    let Ok(stream) = tokio_rustls::TlsAcceptor::from(tls).accept(stream).await else { return };
    let answer = service_fn(|request: Request<hyper::body::Incoming>| async move {
        if request.uri().path() != PROBE {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}

fn kubeconfig_of(cluster: &Key) -> (Key, &'static str) {
    (Key::new(cluster.namespace.clone(), format!("{}-kubeconfig", cluster.name)), "value")
}

/// How long it takes to ask a healthy cluster twenty times, beside others of which half are silent and half answer probes
/// only.
async fn time_beside(others: usize) -> Duration {
    let begun = Instant::now();
    let begin = Timestamp::from_second(1_767_225_600).expect("a moment");
    let since = move || SignedDuration::try_from(begun.elapsed()).expect("a short time");
    let env = Env::simulated(move || begin + since(), 1);
    let start = async || {
        let pki = Arc::new(Pki::ephemeral(env.clone()));
        Server::start(Config::in_memory().with_env(env.clone()), pki).await.expect("a server")
    };
    let (management, workload) = (Client::in_process(start().await, "test"), start().await);
    let pki = workload.pki().clone();
    let tls = pki.server_config(&["cluster".to_owned()]).expect("TLS");
    let template = pki.admin_kubeconfig("c", "https://cluster:1").expect("a kubeconfig").to_string();
    let add = async |name: &str, port: u16| {
        let text = template.replace("https://cluster:1", &format!("https://cluster:{port}"));
        let secret =
            json!({"metadata": {"name": format!("{name}-kubeconfig")}, "stringData": {"value": text}});
        let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
        management.create(&secrets, "default", &secret).await.expect("a kubeconfig");
        let cluster = json!({"metadata": {"name": name}, "data": {"cluster": "yes"}});
        management.create(&KindName::of::<ConfigMap>(), "default", &cluster).await.expect("a cluster");
    };
    for n in 0..others {
        add(&format!("dead-{n}"), if n % 2 == 0 { SILENT } else { HALF_SILENT }).await;
    }
    let dial = Arc::new(Site { workload, tls });
    let clusters = Clusters::new(management.clone(), kubeconfig_of, dial, env.clone(), "test");
    let workloads: Arc<dyn Workloads> = Arc::new(clusters);
    let mut runtime =
        Runtime::with_workloads(management.clone(), env.clone(), Options::default(), Some(workloads));
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    runtime.add(Asks);
    runtime.caches().listen::<ConfigMap>(move |change| {
        if change.new.as_ref().is_some_and(|object| asked(object) == OFTEN) {
            let _ = sender.send(change.key.name.clone());
        }
    });
    runtime.start();
    // The others are met first and have all workers.
    tokio::time::sleep(Duration::from_secs(7)).await;
    let added = Instant::now();
    add("healthy", HEALTHY).await;
    assert_eq!(receiver.recv().await.as_deref(), Some("healthy"));
    let took = added.elapsed();
    runtime.stop().await;
    took
}

#[tokio::test(start_paused = true)]
async fn a_thousand_silent_clusters_do_not_delay_one_that_answers() {
    let alone = time_beside(0).await;
    let beside = time_beside(1_000).await;
    println!("alone: {alone:?}, beside 1,000 silent clusters: {beside:?}");
    // The controller waits a second between two questions. What is left is the time of the answers.
    let pauses = Duration::from_secs(OFTEN as u64 - 1);
    let alone = alone.checked_sub(pauses).expect("a pause after each question");
    let beside = beside.saturating_sub(pauses);
    assert!(beside <= alone + alone / 10, "{alone:?} alone, {beside:?} beside silent clusters");
}
