//! What it costs a cache to follow a server in its own process.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_object::{Key, ObjectMeta, object};
use capstan_pki::Pki;
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::registry::WatchScope;
use super::{Cache, Cached, reflector};
use crate::KindName;
use crate::allocations::Allocations;
use crate::client::{Client, Patch};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ConfigMap {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

object!(ConfigMap, "" / "v1", "ConfigMap", "configmaps", Namespaced);

const EVENTS: usize = 100;

/// What one of many events costs a cache.
#[derive(Debug)]
struct Cost {
    /// Delivering it and taking it in.
    event: Allocations,
    /// Decoding its object, which is the least a typed cache can do.
    decode: Allocations,
}

/// Follows changes of one object. If `absorb`, the cache knows them already as answers of its own process.
async fn cost(absorb: bool) -> Cost {
    let pki = Arc::new(Pki::ephemeral(Env::system()));
    let server = Server::start(Config::in_memory(), pki).await.expect("a server");
    let client = Client::in_process(server, "test");
    let kind = KindName::of::<ConfigMap>();
    let key = Key::new("default", "object");
    let data: BTreeMap<String, String> = (0..40).map(|n| (format!("key-{n}"), "x".repeat(40))).collect();
    let object = json!({
        "metadata": {"name": "object", "labels": {"tier": "web"}, "annotations": {"n": "0"}}, "data": data,
    });
    client.create(&kind, "default", &object).await.expect("an object");

    let cache = Arc::new(Cache::<ConfigMap>::new(kind.clone(), WatchScope::default()));
    let mut follow = pin!(reflector::follow(cache.clone(), client.clone()));
    let mut follow_until = |version: u64| {
        for _ in 0..10 * EVENTS {
            if cache.progress() >= version {
                return;
            }
            assert!((&mut follow).now_or_never().is_none(), "a cache follows for ever");
        }
        panic!("the cache is at {} and not at {version}", cache.progress());
    };
    follow_until(1);
    let mut last = Bytes::new();
    for n in 1..=EVENTS {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"n": n.to_string()}}}));
        last = client.patch(&kind, &key, None, &patch).await.expect("a change").bytes;
        if absorb {
            cache.absorb(&last);
        }
    }
    let decoded = ConfigMap::decode(&last).expect("an object");
    let version = super::version(&decoded.metadata);
    let (all, ()) = Allocations::of(|| follow_until(version));
    assert_eq!(cache.get(&key).expect("readable").as_deref(), Some(&decoded));
    let (decode, _) = Allocations::of(|| ConfigMap::decode(&last).map(Arc::new));
    Cost { event: Allocations { calls: all.calls / EVENTS, bytes: all.bytes / EVENTS }, decode }
}

#[tokio::test]
async fn an_event_in_process_costs_what_decoding_its_object_costs() {
    let Cost { event, decode } = cost(false).await;
    println!("event: {event:?}, of which decoding: {decode:?}");
    assert!(event.calls <= decode.calls + 10, "{event:?} for {decode:?}");
    assert!(event.bytes <= decode.bytes + 600, "{event:?} for {decode:?}");
}

#[tokio::test]
async fn the_echo_of_a_write_in_process_is_not_decoded() {
    let Cost { event, .. } = cost(true).await;
    println!("echo: {event:?}");
    assert!(event.calls <= 6 && event.bytes <= 300, "{event:?}");
}
