//! Which events are written, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use capstan_apiserver::{Config, Server};
use capstan_object::object;
use capstan_pki::Pki;
use serde::{Deserialize, Serialize};

use super::*;
use crate::ListOptions;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Event {
    metadata: ObjectMeta,
    note: String,
    series: Option<Series>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    count: u32,
    last_observed_time: String,
}

object!(Event, "events.k8s.io" / "v1", "Event", "events", Namespaced);

struct World {
    recorder: Recorder,
    client: Client,
    seconds: Arc<AtomicI64>,
}

impl World {
    async fn new() -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let plane = Server::start(Config::in_memory(), pki).await.expect("a server");
        let client = Client::in_process(plane.clone(), "test");
        let seconds = Arc::new(AtomicI64::new(1_000_000));
        let clock = seconds.clone();
        let now = move || Timestamp::from_second(clock.load(Ordering::Relaxed)).expect("a time");
        let recorder = Recorder::new(client.clone(), Env::simulated(now, 1), "here");
        Self { recorder, client, seconds }
    }

    async fn say(&self, message: &str) {
        let object = ObjectRef::new(
            KindName::namespaced("", "v1", "ConfigMap", "configmaps"),
            Key::new("default", "thing"),
        );
        let note = Note::normal("Waits", "Look", message);
        self.recorder.record("test", &object, &ObjectMeta::default(), vec![note]).await;
    }

    fn pass(&self, minutes: i64) {
        self.seconds.fetch_add(minutes * 60, Ordering::Relaxed);
    }

    /// What is written: notes and how often each was seen, in order of their notes.
    async fn written(&self) -> Vec<(String, u32)> {
        let events: Vec<Event> =
            self.client.list_all("default", &ListOptions::default()).await.expect("a list");
        let of_ours = events.into_iter().filter(|event| event.metadata.name.starts_with("thing."));
        let mut written: Vec<_> =
            of_ours.map(|event| (event.note, event.series.map_or(1, |series| series.count))).collect();
        written.sort();
        written
    }
}

fn written(pairs: &[(&str, u32)]) -> Vec<(String, u32)> {
    pairs.iter().map(|(note, count)| ((*note).to_owned(), *count)).collect()
}

#[tokio::test]
async fn what_repeats_is_one_event_that_is_counted() {
    let world = World::new().await;
    world.say("for a").await;
    assert_eq!(world.written().await, written(&[("for a", 1)]));
    world.pass(1);
    world.say("for a").await;
    assert_eq!(world.written().await, written(&[("for a", 2)]));
    // From then on it is written seldom, however often it is said.
    for _ in 0..5 {
        world.pass(1);
        world.say("for a").await;
    }
    assert_eq!(world.written().await, written(&[("for a", 2)]));
    for _ in 0..6 {
        world.pass(5);
        world.say("for a").await;
    }
    assert_eq!(world.written().await, written(&[("for a", 12)]));
    world.say("for b").await;
    assert_eq!(world.written().await, written(&[("for a", 12), ("for b", 1)]));
}

#[tokio::test]
async fn what_comes_back_after_a_pause_is_another_event() {
    let world = World::new().await;
    world.say("for a").await;
    world.pass(7);
    world.say("for a").await;
    assert_eq!(world.written().await, written(&[("for a", 1), ("for a", 1)]));
}

#[tokio::test]
async fn events_about_things_without_a_namespace_are_in_the_default_one_and_notes_are_short() {
    let world = World::new().await;
    let kind = KindName { scope: Scope::Cluster, ..KindName::namespaced("", "v1", "Node", "nodes") };
    let object = ObjectRef::new(kind, Key::new("", "thing"));
    let note = Note::normal("Waits", "Look", "ö".repeat(600));
    world.recorder.record("test", &object, &ObjectMeta::default(), vec![note]).await;
    assert_eq!(world.written().await, written(&[(&"ö".repeat(512), 1)]));
}
