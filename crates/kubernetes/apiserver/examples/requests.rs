//! Measures the processor time of one request in an in-memory server, without network and disk: `cargo run --release -p
//! capstan-apiserver --example requests`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops at the first error"
)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;

/// Requests of each kind in a round.
const MANY: usize = 4_000;
const ROUNDS: usize = 5;
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}

fn config_map(name: &str, payload: &str) -> Bytes {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"bench": "yes"}}, "data": {"payload": payload.repeat(600)}});
    object.to_string().into()
}

async fn send(server: &Server, method: Method, path: &str, content: &str, body: Bytes) {
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let request = request.body(Full::new(body)).unwrap();
    let reply = server.handle_as(User::privileged("bench"), request).await;
    assert!(reply.status().is_success(), "{path}: {}", reply.status());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let pki = Arc::new(Pki::ephemeral(Env::system()));
    let server = Server::start(Config::in_memory(), pki).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let mut best = [Duration::MAX; 4];
    for round in 0..ROUNDS {
        for (kind, best) in best.iter_mut().enumerate() {
            let before = processor_time();
            for number in 0..MANY {
                let name = format!("c-{round}-{number}");
                let one = format!("{COLLECTION}/{name}");
                match kind {
                    0 => send(&server, Method::POST, COLLECTION, json, config_map(&name, "x")).await,
                    1 => send(&server, Method::GET, &one, json, Bytes::new()).await,
                    2 => send(&server, Method::PUT, &one, json, config_map(&name, "y")).await,
                    _ => send(&server, Method::PATCH, &one, merge, config_map(&name, "z")).await,
                }
            }
            *best = (*best).min((processor_time() - before) / MANY as u32);
        }
    }
    for (verb, time) in ["create", "get", "update", "patch"].iter().zip(best) {
        println!("{verb:8} {time:.1?}");
    }
}
