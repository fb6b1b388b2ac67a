//! Which objects a runtime looks after.

use capstan_apiserver::{Config, Server};
use capstan_object::{ObjectMeta, OwnerReference, Scope, object};
use capstan_pki::Pki;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;

mod failing;

use super::*;
use crate::code::catalogue;
use crate::{Call, Decision, Effect, ListOptions, Look, NoCall, Note, ObserveError, Outcome};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ConfigMap {
    metadata: ObjectMeta,
}

object!(ConfigMap, "" / "v1", "ConfigMap", "configmaps", Namespaced);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Secret {
    metadata: ObjectMeta,
}

object!(Secret, "" / "v1", "Secret", "secrets", Namespaced);

/// Reports which objects it observes.
struct Looks(mpsc::UnboundedSender<String>);

impl Controller for Looks {
    const NAME: &'static str = "looks";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<ConfigMap>) {
        watches.owned::<Secret>();
    }

    async fn observe(&self, object: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        // Every namespace has one of the server's own.
        if object.metadata.name != "kube-root-ca.crt" {
            self.0.send(object.key().to_string()).expect("somebody listens");
        }
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        Decision::rest(look)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Event {
    metadata: ObjectMeta,
    note: String,
}

object!(Event, "events.k8s.io" / "v1", "Event", "events", Namespaced);

struct World {
    client: Client,
    looked: mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
    runtime: Option<Runtime>,
}

impl World {
    async fn new() -> Self {
        let pki = Arc::new(Pki::ephemeral(Env::system()));
        let plane = Server::start(Config::in_memory(), pki).await.expect("a server");
        let client = Client::in_process(plane.clone(), "test");
        for name in ["a", "b"] {
            let namespace = json!({"metadata": {"name": name}});
            let kind = KindName {
                scope: Scope::Cluster,
                ..KindName::namespaced("", "v1", "Namespace", "namespaces")
            };
            client.create(&kind, "", &namespace).await.expect("a namespace");
        }
        Self { client, looked: mpsc::unbounded_channel().1, seen: Vec::new(), runtime: None }
    }

    fn start(&mut self, options: Options) {
        let (looks, looked) = mpsc::unbounded_channel();
        let mut runtime = Runtime::new(self.client.clone(), Env::system(), options);
        runtime.add(Looks(looks)).start();
        (self.looked, self.runtime) = (looked, Some(runtime));
    }

    async fn create(&self, namespace: &str, name: &str, labels: &[(&str, &str)]) -> ConfigMap {
        let mut metadata = ObjectMeta::named(namespace, name);
        metadata.labels =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.client.create_object(&ConfigMap { metadata }).await.expect("created")
    }

    async fn bear(&self, owner: &ConfigMap, name: &str) {
        let mut metadata = ObjectMeta::named("a", name);
        metadata.owner_references = vec![OwnerReference::controlled_by(owner)];
        self.client.create_object(&Secret { metadata }).await.expect("created");
    }

    /// Waits until an object is looked at, and remembers which were before.
    async fn until_looked_at(&mut self, key: &str) {
        loop {
            let looked = tokio::time::timeout(Duration::from_secs(30), self.looked.recv()).await;
            let looked = looked.expect("nobody looks").expect("the controller is gone");
            self.seen.push(looked.clone());
            if looked == key {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_runtime_for_one_namespace_sees_no_other() {
    let mut world = World::new().await;
    world.create("a", "before", &[]).await;
    world.create("b", "before", &[]).await;
    world.start(Options { namespace: "a".into(), ..Options::default() });
    world.until_looked_at("a/before").await;
    world.create("b", "after", &[]).await;
    world.create("a", "after", &[]).await;
    world.until_looked_at("a/after").await;
    assert!(world.seen.iter().all(|key| key.starts_with("a/")), "{:?}", world.seen);
    let cached = world.runtime.as_ref().expect("a runtime").caches().ensure::<ConfigMap>();
    let cached = cached.list("").expect("readable");
    assert!(cached.iter().all(|object| object.metadata.namespace == "a"), "{cached:?}");
}

#[tokio::test]
async fn an_object_without_the_label_of_the_filter_is_left_alone_whatever_happens_around_it() {
    let mut world = World::new().await;
    let ours = world.create("a", "ours", &[("watched-by", "us")]).await;
    let theirs = world.create("a", "theirs", &[("watched-by", "them")]).await;
    world.create("a", "nobodys", &[]).await;
    let watch_filter = Some(("watched-by".to_owned(), "us".to_owned()));
    world.start(Options { watch_filter, ..Options::default() });
    world.until_looked_at("a/ours").await;
    // What an object owns wakes it, and theirs is still not for us.
    world.bear(&theirs, "child-of-theirs").await;
    world.bear(&ours, "child-of-ours").await;
    world.until_looked_at("a/ours").await;
    world.create("a", "more-of-ours", &[("watched-by", "us")]).await;
    world.until_looked_at("a/more-of-ours").await;
    let strange: Vec<_> = world.seen.iter().filter(|key| !key.ends_with("ours")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

/// Never comes to an end of looking.
struct Ponders(Arc<mpsc::UnboundedSender<String>>);

impl Controller for Ponders {
    const NAME: &'static str = "ponders";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, object: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        let pondering = self.0.clone();
        pondering.send(object.key().to_string()).expect("somebody listens");
        std::future::pending().await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        Decision::rest(look)
    }
}

#[tokio::test]
async fn nothing_is_under_way_in_a_runtime_that_has_stopped() {
    let world = World::new().await;
    let (looks, mut looked) = mpsc::unbounded_channel();
    let looks = Arc::new(looks);
    let mut runtime = Runtime::new(world.client.clone(), Env::system(), Options::default());
    runtime.add(Ponders(looks.clone())).start();
    world.create("a", "one", &[]).await;
    looked.recv().await.expect("somebody looks");
    assert!(Arc::strong_count(&looks) > 2, "it ponders");
    runtime.stop().await;
    assert_eq!(Arc::strong_count(&looks), 1, "neither a controller nor a reconcile is left");
}

/// Asks the cloud for something that it refuses.
struct Begs(mpsc::UnboundedSender<String>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Beg(String);

impl Call for Beg {
    fn idempotency_key(&self) -> String {
        self.0.clone()
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        format!("beg {}", self.0)
    }
}

impl Controller for Begs {
    const NAME: &'static str = "begs";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = Beg;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, _: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        if look.object.metadata.name != "kube-root-ca.crt" {
            decision.call(Beg(look.object.key().to_string()));
        }
        decision
    }

    async fn call(&self, call: &Beg, _: &Arc<ConfigMap>, _: &View) -> Outcome {
        self.0.send(call.0.clone()).expect("somebody listens");
        Outcome::failed(catalogue::API_REFUSED, "no room")
    }
}

#[tokio::test]
async fn a_call_that_fails_is_not_made_again_because_it_was_journalled() {
    let world = World::new().await;
    let (begs, mut begged) = mpsc::unbounded_channel();
    let hour = Duration::from_secs(3600);
    let options = Options { backoff: Backoff { first: hour, most: hour }, ..Options::default() };
    let mut runtime = Runtime::new(world.client.clone(), Env::system(), options);
    runtime.add(Begs(begs)).start();
    let mut heard = async || begged.recv().await.expect("the controller is there");
    world.create("a", "one", &[]).await;
    assert_eq!(heard().await, "a/one");
    world.create("a", "two", &[]).await;
    assert_eq!(heard().await, "a/two", "nothing has changed for a/one but what its own reconcile wrote");
    // What somebody else changes is a reason to try again.
    let one = KindName::of::<ConfigMap>();
    let patch = crate::client::Patch::Merge(json!({"metadata": {"labels": {"room": "more"}}}));
    world.client.patch(&one, &Key::new("a", "one"), None, &patch).await.expect("patched");
    assert_eq!(heard().await, "a/one");
    runtime.stop().await;
}

/// Panics when it looks at an object for the first time.
struct Stumbles {
    stumbled: Mutex<bool>,
    looks: mpsc::UnboundedSender<String>,
}

impl Controller for Stumbles {
    const NAME: &'static str = "stumbles";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, object: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        if object.metadata.name == "one" {
            let before = std::mem::replace(&mut *self.stumbled.lock(), true);
            assert!(before, "this panic is part of a test");
            self.looks.send(object.key().to_string()).expect("somebody listens");
        }
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        Decision::rest(look)
    }
}

#[tokio::test]
async fn a_reconcile_that_panics_is_counted_and_tried_again() {
    let world = World::new().await;
    let (looks, mut looked) = mpsc::unbounded_channel();
    let mut runtime = Runtime::new(world.client.clone(), Env::system(), Options::default());
    runtime.add(Stumbles { stumbled: Mutex::default(), looks }).start();
    world.create("a", "one", &[]).await;
    assert_eq!(looked.recv().await.as_deref(), Some("a/one"), "its key is not busy for ever");
    let text = runtime.metrics().render();
    let line = "controller_runtime_reconcile_panics_total{controller=\"stumbles\"} 1";
    assert!(text.lines().any(|have| have == line), "{text}");
    runtime.stop().await;
}

/// Reports whether the Secret of a name is there.
struct Needs(mpsc::UnboundedSender<bool>);

impl Controller for Needs {
    const NAME: &'static str = "needs";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, object: &Arc<ConfigMap>, view: &View) -> Result<(), ObserveError> {
        if object.metadata.name == "needy" {
            let wanted = Key::new(object.metadata.namespace.as_str(), "wanted");
            let found = view.external(&KindName::of::<Secret>(), &wanted).await?;
            self.0.send(found.is_some()).expect("somebody listens");
        }
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        Decision::rest(look)
    }
}

#[tokio::test]
async fn who_asked_for_something_that_is_not_there_looks_again_when_it_appears() {
    let world = World::new().await;
    let (needs, mut found) = mpsc::unbounded_channel();
    let mut runtime = Runtime::new(world.client.clone(), Env::system(), Options::default());
    runtime.add(Needs(needs)).start();
    world.create("a", "needy", &[]).await;
    assert_eq!(found.recv().await, Some(false), "nobody has made it yet");
    for (namespace, name) in [("b", "wanted"), ("a", "another"), ("a", "wanted")] {
        let secret = Secret { metadata: ObjectMeta::named(namespace, name) };
        world.client.create_object(&secret).await.expect("created");
    }
    let next = tokio::time::timeout(Duration::from_secs(30), found.recv()).await;
    assert_eq!(next.expect("nobody looks"), Some(true), "nothing else wakes it");
}

/// A call of [`Tries`]: its name, whether it is required, and whether it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Try(String, bool, bool);

impl Call for Try {
    fn idempotency_key(&self) -> String {
        self.0.clone()
    }

    fn journalled(&self) -> bool {
        false
    }

    fn summary(&self) -> String {
        self.0.clone()
    }
}

/// Plans calls until each has succeeded, and takes its finalizer off after them.
struct Tries {
    calls: Vec<Try>,
    made: mpsc::UnboundedSender<String>,
}

const HELD: &str = "test/held";

impl Controller for Tries {
    const NAME: &'static str = "tries";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = Try;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, _: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        if look.object.metadata.finalizers != [HELD] {
            return decision;
        }
        for call in self.calls.iter().filter(|call| look.result_of(call).is_none()) {
            let decision = match call.1 {
                true => decision.then(Effect::Call(call.clone())),
                false => decision.best_effort(Effect::Call(call.clone())),
            };
            decision.or_noting(Note::warning("FailedTry", "Try", format!("Failed to try {}", call.0)));
        }
        decision.remove_finalizer(HELD);
        decision
    }

    async fn call(&self, call: &Try, _: &Arc<ConfigMap>, _: &View) -> Outcome {
        self.made.send(call.0.clone()).expect("somebody listens");
        match call.2 {
            true => Outcome::failed(catalogue::API_REFUSED, "no"),
            false => Outcome::done(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_best_effort_holds_up_neither_what_comes_after_it_nor_finalizers() {
    let (required, fails) = (true, true);
    for (calls, made, released) in [
        (vec![("a", required, !fails), ("b", required, !fails)], vec!["a", "b"], true),
        (vec![("a", required, fails), ("b", required, !fails)], vec!["a"], false),
        (vec![("a", !required, fails), ("b", required, !fails)], vec!["a", "b"], true),
        (
            vec![("a", !required, fails), ("b", !required, fails), ("c", required, !fails)],
            vec!["a", "b", "c"],
            true,
        ),
        (
            vec![("a", !required, fails), ("b", required, fails), ("c", !required, !fails)],
            vec!["a", "b"],
            false,
        ),
        (vec![("a", required, !fails), ("b", !required, fails)], vec!["a", "b"], true),
    ] {
        let world = World::new().await;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let hour = Duration::from_secs(3600);
        let options = Options { backoff: Backoff { first: hour, most: hour }, ..Options::default() };
        let mut runtime = Runtime::new(world.client.clone(), Env::system(), options);
        let calls: Vec<_> =
            calls.into_iter().map(|(name, need, fails)| Try(name.to_owned(), need, fails)).collect();
        let any_failed = calls.iter().any(|call| call.2);
        let failed: Vec<String> = calls
            .iter()
            .filter(|call| call.2 && made.contains(&call.0.as_str()))
            .map(|call| format!("Failed to try {}: E-API-REFUSED: no", call.0))
            .collect();
        runtime.add(Tries { calls: calls.clone(), made: sender }).start();
        let mut object = ConfigMap { metadata: ObjectMeta::named("a", "one") };
        object.metadata.finalizers = vec![HELD.to_owned()];
        world.client.create_object(&object).await.expect("created");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut heard = Vec::new();
        while let Ok(name) = receiver.try_recv() {
            heard.push(name);
        }
        assert_eq!(heard, made, "{calls:?}");
        let object: Option<ConfigMap> = world.client.get(&Key::new("a", "one")).await.expect("an answer");
        assert_eq!(object.expect("the object").metadata.finalizers.is_empty(), released, "{calls:?}");
        let events: Vec<Event> =
            world.client.list_all("a", &ListOptions::default()).await.expect("a list of events");
        let mut notes: Vec<String> = events.into_iter().map(|event| event.note).collect();
        notes.sort();
        assert_eq!(notes, failed, "{calls:?}");
        let errors = runtime.metrics().render();
        let line = "controller_runtime_reconcile_errors_total{controller=\"tries\"} ";
        let errors = errors.lines().find_map(|have| have.strip_prefix(line)).map(str::to_owned);
        assert_eq!(errors.is_some_and(|errors| errors != "0"), any_failed, "{calls:?}");
        runtime.stop().await;
    }
}

/// Decides on the same call for ever, while the object has the label `loop`.
struct Loops(mpsc::UnboundedSender<()>);

impl Controller for Loops {
    const NAME: &'static str = "loops";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = Try;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, _: &Arc<ConfigMap>, _: &View) -> Result<(), ObserveError> {
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        if look.object.metadata.labels.contains_key("loop") {
            decision.call(Try("bind a role".to_owned(), true, false));
        } else if look.object.metadata.name == "one" {
            self.0.send(()).expect("somebody listens");
        }
        decision
    }

    async fn call(&self, _: &Try, _: &Arc<ConfigMap>, _: &View) -> Outcome {
        Outcome::done()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_settle_is_an_error_with_object_effect_and_code() {
    let world = World::new().await;
    let (settled, mut settles) = mpsc::unbounded_channel();
    let mut runtime = Runtime::new(world.client.clone(), Env::system(), Options::default());
    runtime.add(Loops(settled)).start();
    world.create("a", "one", &[("loop", "")]).await;
    let key = Key::new("a", "one");
    let marks = async || {
        let found = world.client.get::<ConfigMap>(&key).await.expect("readable").expect("it is there");
        crate::NotSettled::of(&found.metadata)
    };
    let what = "controller loops does not settle on ConfigMap a/one: after 12 rounds it still decides to bind a role";
    while marks().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(marks().await[0].message, format!("E-NOT-SETTLED: {what}"));
    let waits = || runtime.waits::<ConfigMap>(&key).remove(0).1;
    while waits().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let waits = waits();
    assert_eq!((waits[0].code, waits[0].what.as_str()), (Some(catalogue::NOT_SETTLED), what));
    let text = runtime.metrics().render();
    let line = "capstan_reconcile_not_settled_total{controller=\"loops\"} ";
    assert!(text.lines().any(|have| have.starts_with(line) && !have.ends_with(" 0")), "{text}");

    let settle = crate::client::Patch::Merge(json!({"metadata": {"labels": {"loop": null}}}));
    world.client.patch(&KindName::of::<ConfigMap>(), &key, None, &settle).await.expect("patched");
    settles.recv().await.expect("it settles");
    while !marks().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    runtime.stop().await;
}
