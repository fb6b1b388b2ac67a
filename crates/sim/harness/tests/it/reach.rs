//! Other servers and processes: workload clusters over TLS without a socket, and leader election.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::front;
use capstan_apiserver::{Config, Server};
use capstan_controller::{
    Candidate, Client, Clusters, Dial, Election, Env, KindName, Stream, WorkloadError, Workloads,
};
use capstan_object::Key;
use capstan_pki::Pki;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;

fn env() -> Env {
    let begun = Instant::now();
    let begin = jiff::Timestamp::from_second(1_767_225_600).expect("a moment");
    let since = move || jiff::SignedDuration::try_from(begun.elapsed()).expect("a short time");
    Env::simulated(move || begin + since(), 1)
}

async fn plane(env: &Env) -> Server {
    let pki = Arc::new(Pki::ephemeral(env.clone()));
    Server::start(Config::in_memory().with_env(env.clone()), pki).await.expect("a server starts")
}

/// Connects every dial to one server in this process.
struct Only(Server);

impl Dial for Only {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            if (host, port) != ("10.0.0.7", 6443) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = tokio::io::duplex(64 * 1024);
            let pki = self.0.pki().clone();
            let tls = pki.server_config(&[host.to_owned()]).map_err(io::Error::other)?;
            tokio::spawn(front::serve_connection(far, tls, pki, self.0.clone()));
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

fn secrets() -> KindName {
    KindName::namespaced("", "v1", "Secret", "secrets")
}

fn kubeconfig_of(cluster: &Key) -> (Key, &'static str) {
    (Key::new(cluster.namespace.clone(), format!("{}-kubeconfig", cluster.name)), "value")
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_reached_by_its_kubeconfig_while_it_answers() {
    let env = env();
    let management = Client::in_process(plane(&env).await, "test");
    let workload = plane(&env).await;
    let pki = workload.pki().clone();
    let clusters =
        Clusters::new(management.clone(), kubeconfig_of, Arc::new(Only(workload)), env.clone(), "test");
    let cluster = Key::new("default", "c");
    let error = clusters.client(&cluster).await.err().expect("no kubeconfig");
    assert!(matches!(error, WorkloadError::NoKubeconfig(_)), "{error}");

    let text = pki.admin_kubeconfig("c", "https://10.0.0.7:6443").expect("a kubeconfig").to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-kubeconfig"}, "stringData": {"value": text},
    });
    management.create(&secrets(), "default", &secret).await.expect("created");
    let client = clusters.client(&cluster).await.expect("it answers");
    let mut namespaces = KindName::namespaced("", "v1", "Namespace", "namespaces");
    namespaces.scope = capstan_object::Scope::Cluster;
    let kube_system = Key::new("", "kube-system");
    assert!(client.get_raw(&namespaces, &kube_system).await.expect("an answer").is_some());
    assert_eq!(clusters.health(&cluster).failures, 0);

    // The kubeconfig changes to an address without a server.
    let text = text.replace("10.0.0.7", "10.0.0.8");
    let moved = capstan_controller::Patch::Merge(json!({"stringData": {"value": text}}));
    management.patch(&secrets(), &Key::new("default", "c-kubeconfig"), None, &moved).await.expect("patched");
    let error = clusters.client(&cluster).await.err().expect("nothing listens");
    assert!(matches!(error, WorkloadError::Unreachable { .. }), "{error}");
    assert!(!error.to_string().contains("BEGIN"), "no keys in errors: {error}");
    assert_eq!(clusters.health(&cluster).error.as_deref(), Some("connection refused"));
}

fn candidate(client: &Client, env: &Env, name: &str) -> Candidate {
    Candidate::new(client.clone(), env.clone(), Election::new(Key::new("default", "leader"), name))
}

#[tokio::test(start_paused = true)]
async fn one_process_leads_until_it_stops_renewing_or_resigns() {
    let env = env();
    let client = Client::in_process(plane(&env).await, "test");
    let mut first = candidate(&client, &env, "first");
    let mut second = candidate(&client, &env, "second");
    first.lead().await;
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::select! {
            () = first.keep() => "first gave up",
            () = second.lead() => "second took over",
        }
    });
    assert!(waited.await.is_err(), "a leader that renews stays");

    let silent = Instant::now();
    second.lead().await;
    let took = silent.elapsed();
    assert!(took >= Duration::from_secs(10) && took <= Duration::from_secs(20), "{took:?}");

    let ended = tokio::time::timeout(Duration::from_secs(5), first.keep()).await;
    assert!(ended.is_ok(), "a former leader notices at the next renewal");

    second.resign().await.expect("resigned");
    let resigned = Instant::now();
    first.lead().await;
    assert!(resigned.elapsed() <= Duration::from_secs(3), "{:?}", resigned.elapsed());
}
