//! Reconciles that keep failing are marked on their object.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::*;
use crate::NotSettled;
use crate::controller::Error;

/// Fails as the label of an object says.
struct Fails;

const HOW: &str = "fails";

impl Controller for Fails {
    const NAME: &'static str = "fails";
    type Kind = ConfigMap;
    type Seen = ();
    type Call = Try;

    fn watches(&self, _: &mut Watches<ConfigMap>) {}

    async fn observe(&self, object: &Arc<ConfigMap>, view: &View) -> Result<(), ObserveError> {
        match object.metadata.labels.get(HOW).map(String::as_str) {
            Some("observe") => {
                let why = format!("no answer at second {}", view.now.as_second());
                Err(ObserveError::outside(catalogue::WORKLOAD_UNREACHABLE, why))
            }
            Some("panic") => panic!("a secret"),
            _ => Ok(()),
        }
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        match look.object.metadata.labels.get(HOW).map(String::as_str) {
            Some("call") => drop(decision.call(Try("start".into(), true, true))),
            Some("best-effort") => drop(decision.best_effort(Effect::Call(Try("start".into(), false, true)))),
            Some("conflict") => drop(decision.call(Try("conflict".into(), true, true))),
            _ => {}
        }
        decision
    }

    async fn call(&self, call: &Try, _: &Arc<ConfigMap>, _: &View) -> Outcome {
        match call.0.as_str() {
            "conflict" => {
                Outcome::Failed(Error { code: catalogue::API_CONFLICT, message: "it changed".into() })
            }
            _ => Outcome::failed(catalogue::API_REFUSED, "no"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_keeps_failing_is_marked_once_until_it_succeeds() {
    let world = World::new().await;
    let (begun, begin) = (Instant::now(), Timestamp::from_second(1_767_225_600).expect("a moment"));
    let since = move || SignedDuration::try_from(begun.elapsed()).expect("a short time");
    let env = Env::simulated(move || begin + since(), 1);
    let mut runtime = Runtime::new(world.client.clone(), env, Options::default());
    runtime.add(Fails).start();
    let cases = [
        (
            "observe",
            Some(
                "E-WORKLOAD-UNREACHABLE: controller fails fails on ConfigMap a/observe: the state that the object depends \
                 on cannot be read: no answer at second",
            ),
        ),
        ("panic", Some("E-PANIC: controller fails fails on ConfigMap a/panic: it panicked")),
        (
            "call",
            Some("E-API-REFUSED: controller fails fails on ConfigMap a/call: an effect failed: start: no"),
        ),
        (
            "best effort",
            Some(
                "E-API-REFUSED: controller fails fails on ConfigMap a/best-effort: an effect failed: start: no",
            ),
        ),
        ("conflict", None),
    ];
    let key = |how: &str| Key::new("a", how.replace(' ', "-"));
    for (how, _) in cases {
        let mut metadata = ObjectMeta::named("a", key(how).name);
        metadata.labels.insert(HOW.to_owned(), how.replace(' ', "-"));
        world.client.create_object(&ConfigMap { metadata }).await.expect("created");
    }
    let found = async |how: &str| {
        world.client.get::<ConfigMap>(&key(how)).await.expect("readable").expect("it is there").metadata
    };
    tokio::time::sleep(Duration::from_secs(40)).await;
    for (how, _) in cases {
        assert_eq!(NotSettled::of(&found(how).await), [], "{how} for 40 s only");
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut versions = Vec::new();
    for (how, expected) in cases {
        let meta = found(how).await;
        let marks = NotSettled::of(&meta);
        let text = marks.first().map(|mark| mark.message.as_str());
        match expected {
            Some(expected) => assert!(text.is_some_and(|text| text.starts_with(expected)), "{how}: {text:?}"),
            None => assert_eq!(text, None, "{how}"),
        }
        assert!(marks.iter().all(|mark| mark.since.duration_since(begin).as_secs() < 5), "{how}: {marks:?}");
        versions.push(meta.resource_version);
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    for ((how, _), version) in cases.iter().zip(versions) {
        assert_eq!(found(how).await.resource_version, version, "{how} is not written again");
    }
    for (how, _) in cases {
        let mend = crate::client::Patch::Merge(json!({"metadata": {"labels": {HOW: null}}}));
        world.client.patch(&KindName::of::<ConfigMap>(), &key(how), None, &mend).await.expect("patched");
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (how, _) in cases {
        assert_eq!(NotSettled::of(&found(how).await), [], "{how} is mended");
    }
    runtime.stop().await;
}
