//! Servers that send without end, or hardly at all: what they may cost.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use capstan_object::{ObjectMeta, object};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;
use crate::{Caches, KindName};

object!(Thing, "" / "v1", "Thing", "things", Cluster);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Thing {
    metadata: ObjectMeta,
    size: u32,
}

fn things() -> KindName {
    KindName::of::<Thing>()
}

/// Limits that a test reaches soon.
const SIZES: Sizes = Sizes { answer: 64 << 10, event: 16 << 10, decoded: 256 << 10, page: 10, pages: 5 };
const TIMES: Times = Times {
    answer: Duration::from_secs(60),
    event: Duration::from_secs(30),
    watch: Duration::from_secs(600),
};

/// Answers every request with pieces that it makes as they are pulled, and counts what is pulled.
struct Hostile {
    answer: Box<dyn Fn(usize) -> BoxStream<'static, Bytes> + Send + Sync>,
    requests: AtomicUsize,
    pulled: Arc<AtomicUsize>,
    share: Arc<Share>,
    /// Most bytes that were held while something was pulled.
    most_held: Arc<AtomicUsize>,
}

impl Transport for Hostile {
    fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let pieces = (self.answer)(self.requests.fetch_add(1, Ordering::Relaxed));
        let (pulled, share, most) = (self.pulled.clone(), self.share.clone(), self.most_held.clone());
        let pieces = pieces.map(move |piece| {
            pulled.fetch_add(piece.len(), Ordering::Relaxed);
            most.fetch_max(share.held(), Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(piece))
        });
        Box::pin(std::future::ready(Ok(Response::new(Body::new(StreamBody::new(pieces))))))
    }
}

fn hostile(
    budget: &Arc<Budget>,
    answer: impl Fn(usize) -> BoxStream<'static, Bytes> + Send + Sync + 'static,
) -> (Client, Arc<Hostile>) {
    let server = Arc::new(Hostile {
        answer: Box::new(answer),
        requests: AtomicUsize::new(0),
        pulled: Arc::default(),
        share: budget.share(),
        most_held: Arc::default(),
    });
    let limits =
        Limits::custom("cluster default/bad", SIZES, TIMES, Some(server.share.clone()), Some(budget.share()));
    (Client::new(server.clone(), "test").limited(limits), server)
}

fn roomy() -> Arc<Budget> {
    Budget::new(1 << 20, 8 << 20, 4 << 20)
}

/// The same piece for ever.
fn endless(piece: &'static [u8]) -> BoxStream<'static, Bytes> {
    stream::repeat(Bytes::from_static(piece)).boxed()
}

fn once(text: impl Into<Bytes>) -> BoxStream<'static, Bytes> {
    stream::iter([text.into()]).boxed()
}

fn exceeded<T>(result: Result<T, ApiError>) -> Limit {
    match result {
        Err(ApiError::Limit(exceeded)) => exceeded.limit,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_and_the_error_says_whose_it_was_and_what_to_do() {
    let (client, server) = hostile(&roomy(), |_| endless(&[b' '; 1000]));
    let error = client.document("/").await.expect_err("too long");
    assert_eq!(
        error.to_string(),
        "E-WORKLOAD-LIMIT: cluster default/bad: an answer is longer than 65536 bytes; check what responds at the server \
         address in the cluster's kubeconfig Secret; retrying with back-off"
    );
    assert!(error.is_ambiguous());
    let (pulled, held) = (server.pulled.load(Ordering::Relaxed), server.most_held.load(Ordering::Relaxed));
    assert!(pulled <= SIZES.answer + 1000, "{pulled}");
    assert!(held <= SIZES.answer, "{held}");
    assert_eq!(server.share.held(), 0);
}

#[tokio::test]
async fn a_refusal_without_end_is_cut_off_too() {
    let (client, server) = hostile(&roomy(), |_| endless(b"{\"message\": \"no"));
    assert_eq!(exceeded(client.create(&things(), "", &Value::Null).await), Limit::Answer(SIZES.answer));
    assert_eq!(server.share.held(), 0);
}

#[tokio::test]
async fn a_watch_without_a_newline_is_cut_off() {
    for piece in [&b"x"[..], b"{\"a\":", b"{\n"] {
        let (client, server) = hostile(&roomy(), move |_| endless(piece));
        let mut watch = client.watch(&things(), "", &ListOptions::default()).await.expect("a watch");
        assert_eq!(exceeded(watch.next().await.expect("an error")), Limit::Event(SIZES.event));
        assert!(server.pulled.load(Ordering::Relaxed) <= SIZES.event + piece.len());
        drop(watch);
        assert_eq!(server.share.held(), 0);
    }
}

#[tokio::test]
async fn a_watch_of_blank_lines_holds_nothing() {
    let (client, server) = hostile(&roomy(), |_| endless(b"\n \n").take(100_000).boxed());
    let mut watch = client.watch(&things(), "", &ListOptions::default()).await.expect("a watch");
    assert!(watch.next().await.is_none());
    assert!(server.most_held.load(Ordering::Relaxed) <= 3);
}

/// A byte every ten seconds.
fn trickle(_: usize) -> BoxStream<'static, Bytes> {
    let slowly = |()| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Some((Bytes::from_static(b"x"), ()))
    };
    stream::unfold((), slowly).boxed()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_trickles_is_given_up() {
    let (client, server) = hostile(&roomy(), trickle);
    assert_eq!(exceeded(client.document("/").await), Limit::AnswerTime(TIMES.answer));
    assert!(server.pulled.load(Ordering::Relaxed) <= 6);
    let mut watch = client.watch(&things(), "", &ListOptions::default()).await.expect("a watch");
    assert_eq!(exceeded(watch.next().await.expect("an error")), Limit::EventTime(TIMES.event));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_ends_is_ended() {
    let (client, _) = hostile(&roomy(), |_| stream::pending().boxed());
    let mut watch = client.watch(&things(), "", &ListOptions::default()).await.expect("a watch");
    let begun = tokio::time::Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(begun.elapsed(), TIMES.watch);
}

#[tokio::test]
async fn tiny_objects_are_refused_before_they_are_decoded() {
    let tiny = format!("[{}]", vec![r#"{"":0}"#; 5000].join(","));
    assert!(tiny.len() < SIZES.answer);
    let body = tiny.clone();
    let (client, server) = hostile(&roomy(), move |_| once(body.clone()));
    assert_eq!(exceeded(client.document("/").await), Limit::Decoded(SIZES.decoded));
    let event = format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", &tiny[..7 * 2000 - 1].to_owned()) + "\n";
    let (client, _) = hostile(&roomy(), move |_| once(event.clone()));
    let mut watch = client.watch(&things(), "", &ListOptions::default()).await.expect("a watch");
    assert_eq!(exceeded(watch.next().await.expect("an error")), Limit::Decoded(SIZES.decoded));
    assert_eq!(server.share.held(), 0);
}

#[tokio::test]
async fn a_list_without_a_last_page_is_given_up() {
    let (client, server) =
        hostile(&roomy(), |_| once(r#"{"metadata": {"continue": "more"}, "items": [{}, {}]}"#));
    let list = client.list_all::<Thing>("", &ListOptions::default()).await;
    assert_eq!(exceeded(list), Limit::Pages(SIZES.pages));
    assert_eq!(server.requests.load(Ordering::Relaxed), SIZES.pages);
}

#[tokio::test]
async fn the_objects_of_a_long_list_count_until_it_is_done() {
    let budget = Budget::new(0, 8 << 20, 60_000);
    let page = || {
        let items = vec!["{}"; 20].join(",");
        once(format!(r#"{{"metadata": {{"continue": "more"}}, "items": [{items}]}}"#))
    };
    let (client, server) = hostile(&budget, move |_| page());
    let list = client.list_all::<Thing>("", &ListOptions::default()).await;
    assert_eq!(exceeded(list), Limit::Server(60_000));
    assert_eq!(server.share.held(), 0);
}

#[tokio::test]
async fn one_cluster_cannot_take_what_another_one_needs() {
    let budget = Budget::new(64 << 10, 256 << 10, 4 << 20);
    let answer = |_| once(vec![b' '; 30_000]);
    let (bad, server) = hostile(&budget, answer);
    let mut kept = Vec::new();
    let refused = loop {
        match bad.document("/").await {
            Ok(bytes) => kept.push(bytes),
            Err(error) => break exceeded(Err::<(), _>(error)),
        }
    };
    assert_eq!(refused, Limit::Process(256 << 10));
    assert!(server.share.held() <= (64 << 10) + (128 << 10), "{}", server.share.held());
    let (good, _) = hostile(&budget, answer);
    good.document("/").await.expect("room for another cluster");
    drop(kept);
    assert_eq!(server.share.held(), 0);
    bad.document("/").await.expect("room again");
}

#[tokio::test(start_paused = true)]
async fn a_cache_takes_no_more_objects_than_there_is_room_for() {
    let budget = Budget::new(0, 8 << 20, 64 << 10);
    let (client, server) = hostile(&budget, |_| {
        events(|n| format!("{{\"metadata\":{{\"name\":\"n{n}\",\"resourceVersion\":\"{n}\"}}}}"))
    });
    let caches = Caches::new("");
    let cache = caches.ensure::<Thing>();
    caches.start(&client);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let cached = cache.len();
    assert!(cached > 10 && cached * size_of::<Thing>() <= 64 << 10, "{cached}");
    assert_eq!(
        cache.failure().expect("a failure"),
        "E-WORKLOAD-LIMIT: cluster default/bad: its cached objects take more than 65536 bytes; check what responds at \
         the server address in the cluster's kubeconfig Secret; retrying with back-off"
    );
    let requests = server.requests.load(Ordering::Relaxed);
    assert!(requests <= 8, "{requests} requests in a minute");
}

/// Events of one form, numbered.
fn events(of: impl Fn(usize) -> String + Send + Sync + Clone + 'static) -> BoxStream<'static, Bytes> {
    let event = move |n| Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", of(n)));
    stream::iter(1..).map(event).boxed()
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_no_way_around_it() {
    let budget = Budget::new(0, 8 << 20, 64 << 10);
    let unreadable = |n| format!("{{\"metadata\":{{\"name\":\"n{n}\"}},\"size\":\"large\"}}");
    let nameless = |_| "{\"metadata\":0}".to_owned();
    for (answer, failure) in [
        (
            Box::new(move |_| events(unreadable)) as Box<dyn Fn(usize) -> _ + Send + Sync>,
            "E-WORKLOAD-LIMIT: ",
        ),
        (Box::new(move |_| events(nameless)), "the API server's answer cannot be read"),
    ] {
        let (client, server) = hostile(&budget, answer);
        let caches = Caches::new("");
        let cache = caches.ensure::<Thing>();
        caches.start(&client);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let failed = cache.failure().expect("a failure");
        assert!(failed.starts_with(failure), "{failed}");
        let (requests, pulled) =
            (server.requests.load(Ordering::Relaxed), server.pulled.load(Ordering::Relaxed));
        assert!(requests <= 8 && pulled < 1 << 20, "{requests} requests, {pulled} bytes");
    }
}
