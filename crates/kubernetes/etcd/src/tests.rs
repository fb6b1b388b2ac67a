//! Client against server; `cargo xtask etcd-members` tests both against etcd.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{PrivateKeyDer, ServerName};

use crate::{
    Alarm, AlarmKind, Answer, Client, Code, DEADLINE, Error, Header, Member, Refusal, Service, Status, frame,
    serve, wire,
};

/// A cluster: a list of members and a leader.
#[derive(Default)]
struct Toy {
    members: Mutex<Vec<Member>>,
    leader: Mutex<u64>,
    refusal: Mutex<Option<Refusal>>,
    is_mute: bool,
}

const HEADER: Header = Header { cluster_id: 77, member_id: 1, raft_term: 4 };

impl Toy {
    fn of(ids: &[u64]) -> Self {
        let members = ids.iter().map(|id| Member {
            id: *id,
            name: format!("m{id}"),
            peer_urls: vec![format!("https://10.0.0.{id}:2380")],
            client_urls: vec![format!("https://10.0.0.{id}:2379")],
            is_learner: *id == 9,
        });
        Self { members: Mutex::new(members.collect()), leader: Mutex::new(1), ..Self::default() }
    }

    fn answer<'a, T: Send + 'a>(&self, content: T) -> BoxFuture<'a, Result<Answer<T>, Refusal>> {
        if self.is_mute {
            return futures::future::pending().boxed();
        }
        let refusal = self.refusal.lock().clone();
        futures::future::ready(refusal.map_or(Ok(Answer { header: HEADER, content }), Err)).boxed()
    }
}

impl Service for Toy {
    fn status(&self) -> BoxFuture<'_, Result<Status, Refusal>> {
        let status = Status {
            member_id: HEADER.member_id,
            cluster_id: HEADER.cluster_id,
            leader: *self.leader.lock(),
            version: "3.6.5".into(),
            db_size: 20_480,
            raft_index: 12,
            raft_term: 4,
            raft_applied_index: 11,
            is_learner: true,
            errors: vec!["memberID:1 alarm:NOSPACE ".into()],
        };
        let answer = self.answer(status);
        async move { Ok(answer.await?.content) }.boxed()
    }

    fn members(&self, linearizable: bool) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        assert!(linearizable, "what a lone member remembers is not asked for");
        self.answer(self.members.lock().clone())
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Answer<Vec<Alarm>>, Refusal>> {
        let kinds = [AlarmKind::NoSpace, AlarmKind::Corrupt, AlarmKind::Other(7)];
        self.answer(kinds.map(|kind| Alarm { member_id: u64::MAX, kind }).to_vec())
    }

    fn remove_member(&self, id: u64) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        let mut members = self.members.lock();
        let before = members.len();
        members.retain(|member| member.id != id);
        if members.len() == before {
            return futures::future::ready(Err(Refusal::MEMBER_NOT_FOUND)).boxed();
        }
        self.answer(members.clone())
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<Answer<()>, Refusal>> {
        *self.leader.lock() = to;
        self.answer(())
    }
}

async fn connected(service: Arc<dyn Service>) -> (Client, tokio::task::JoinHandle<()>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(serve(far, None, service));
    (Client::connect(near, None).await.expect("connected"), serving)
}

#[tokio::test(start_paused = true)]
async fn all_calls_succeed() {
    let toy = Arc::new(Toy::of(&[1, 2, 9]));
    let (mut client, _) = connected(toy.clone()).await;
    assert_eq!(client.status().await.expect("status"), toy.status().await.expect("status"));
    assert_eq!(client.members().await.expect("members"), *toy.members.lock());
    assert_eq!(client.alarms().await.expect("alarms"), toy.alarms().await.expect("alarms").content);
    client.remove_member(2).await.expect("removed");
    let left: Vec<_> = client.members().await.expect("members").iter().map(|member| member.id).collect();
    assert_eq!(left, [1, 9]);
    client.move_leader(9).await.expect("moved");
    assert_eq!(client.status().await.expect("status").leader, 9);
}

type Recognises = fn(&Error) -> bool;

#[tokio::test(start_paused = true)]
async fn errors_of_etcd_are_recognized() {
    let toy = Arc::new(Toy::of(&[1]));
    let (mut client, _) = connected(toy.clone()).await;
    let cases: [(Refusal, Recognises); 10] = [
        (Refusal::MEMBER_NOT_FOUND, |error| matches!(error, Error::MemberNotFound)),
        (Refusal::UNHEALTHY_CLUSTER, |error| matches!(error, Error::UnhealthyCluster)),
        (Refusal::NOT_ENOUGH_STARTED, |error| matches!(error, Error::NotEnoughStarted)),
        (Refusal::NO_LEADER, |error| matches!(error, Error::NoLeader)),
        (Refusal::NOT_LEADER, |error| matches!(error, Error::NotLeader)),
        (Refusal::BAD_LEADER_TRANSFEREE, |error| matches!(error, Error::BadLeaderTransferee)),
        (Refusal::LEARNER, |error| matches!(error, Error::Learner)),
        (
            Refusal::STOPPED,
            |error| matches!(error, Error::Unavailable(text) if text == "etcdserver: server stopped"),
        ),
        (
            Refusal::new(Code::PERMISSION_DENIED, "100% nö\n"),
            |error| matches!(error, Error::Grpc { code: Code::PERMISSION_DENIED, message } if message == "100% nö\n"),
        ),
        (
            Refusal::new(Code(99), ""),
            |error| matches!(error, Error::Grpc { code: Code(99), message } if message.is_empty()),
        ),
    ];
    for (refusal, recognises) in cases {
        *toy.refusal.lock() = Some(refusal.clone());
        let error = client.status().await.expect_err("refused");
        assert!(recognises(&error), "{refusal:?} became {error:?}");
    }
    *toy.refusal.lock() = None;
    assert!(client.status().await.is_ok(), "the connection outlives refusals");
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_times_out() {
    let (mut client, _) = connected(Arc::new(Toy { is_mute: true, ..Toy::of(&[1]) })).await;
    let begin = tokio::time::Instant::now();
    let error = client.status().await.expect_err("no answer");
    assert!(matches!(error, Error::DeadlineExceeded { after: DEADLINE, .. }), "{error:?}");
    assert_eq!(begin.elapsed().as_secs(), DEADLINE.as_secs());
    let patience = Duration::from_secs(1);
    let mut client = client.with_deadline(patience);
    let error = client.members().await.expect_err("no answer");
    assert!(matches!(error, Error::DeadlineExceeded { after, .. } if after == patience), "{error:?}");
}

#[tokio::test]
async fn an_oversized_member_list_is_rejected() {
    let (mut client, _) = connected(Arc::new(Toy::of(&vec![0; 10_000]))).await;
    let error = client.members().await.expect_err("too long");
    assert!(matches!(&error, Error::Malformed { what, .. } if what.contains("larger than")), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_without_http2_times_out() {
    let (near, _far) = tokio::io::duplex(1024);
    let mut client = Client::connect(near, None).await.expect("nothing is heard until the first question");
    let error = client.status().await.expect_err("no answer");
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_stays_broken() {
    let (mut client, serving) = connected(Arc::new(Toy::of(&[1]))).await;
    client.status().await.expect("answered");
    serving.abort();
    let _ = serving.await;
    for _ in 0..2 {
        let error = client.status().await.expect_err("closed");
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_client_ends_the_server() {
    let (client, serving) = connected(Arc::new(Toy::of(&[1]))).await;
    drop(client);
    serving.await.expect("the server's future ended");
}

/// A CA certificate and a leaf, in both configurations.
fn tls(trusted: bool) -> (Arc<rustls::ClientConfig>, Arc<rustls::ServerConfig>) {
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed");
        (certificate.der().clone(), Issuer::new(params, key))
    };
    let (root, issuer) = authority();
    let (other, _) = authority();
    let leaf = || {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["etcd.example".to_owned()]).expect("parameters");
        let certificate = params.signed_by(&key, &issuer).expect("signed");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        (vec![certificate.der().clone()], key)
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).expect("a root");
    let mut wrong = rustls::RootCertStore::empty();
    wrong.add(other).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots.clone()),
        provider.clone(),
    )
    .build()
    .expect("a verifier");
    let (chain, key) = leaf();
    let client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(if trusted { roots } else { wrong })
        .with_client_auth_cert(chain, key)
        .expect("a client certificate");
    let (chain, key) = leaf();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .expect("a server certificate");
    (Arc::new(client), Arc::new(server))
}

#[tokio::test(start_paused = true)]
async fn mutual_tls_works() {
    let name = ServerName::try_from("etcd.example").expect("a name");
    for trusted in [true, false] {
        let (client, server) = tls(trusted);
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(far, Some(server), Arc::new(Toy::of(&[1, 2]))));
        match (trusted, Client::connect(near, Some((client, name.clone()))).await) {
            (true, Ok(mut client)) => assert_eq!(client.members().await.expect("members").len(), 2),
            (false, Err(error)) => assert!(matches!(error, Error::Tls(_)), "{error:?}"),
            (trusted, outcome) => panic!("trusted: {trusted}, but {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn an_error_is_in_the_trailers_as_go_expects() {
    let toy = Toy { refusal: Mutex::new(Some(Refusal::NO_LEADER)), ..Toy::of(&[1]) };
    let (near, far) = tokio::io::duplex(4096);
    tokio::spawn(serve(far, None, Arc::new(toy)));
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(near));
    let (mut sender, connection) = handshake.await.expect("a connection");
    tokio::spawn(connection);
    let question = frame::encode(&wire::MemberListRequest { linearizable: true });
    let request = http::Request::post(format!("http://etcd{}", wire::path::MEMBER_LIST))
        .header(http::header::CONTENT_TYPE, frame::CONTENT_TYPE)
        .body(Full::new(question))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    assert!(!response.headers().contains_key(frame::STATUS));
    let answer = response.into_body().collect().await.expect("a whole answer");
    let trailers = answer.trailers().expect("trailers");
    assert_eq!(trailers[frame::STATUS], "14");
    assert_eq!(trailers[frame::MESSAGE], "etcdserver: no leader");
}
