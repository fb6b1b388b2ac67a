use std::sync::Arc;

use capstan_controller::{Client as ApiClient, Health, Stream, WorkloadError, Workloads};
use capstan_etcd::{Alarm, AlarmKind, Answer, Header, Member, Refusal, Service, Status, serve};
use capstan_object::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;

use super::{Credentials, Etcd};
use crate::certificates::{KeyPair, Keys, SeededKeys};
use crate::control_plane::observed::EtcdState;

/// Three members: the first leads, the third has a NOSPACE alarm.
#[derive(Default)]
struct FakeEtcd {
    state: std::sync::Mutex<(Vec<u64>, u64)>,
}

impl FakeEtcd {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: (vec![1, 2, 3], 1).into() })
    }

    fn answer<'a, T: Send + 'a>(content: T) -> BoxFuture<'a, Result<Answer<T>, Refusal>> {
        futures::future::ready(Ok(Answer { header: Header::default(), content })).boxed()
    }

    fn list(&self) -> Vec<Member> {
        let (ids, _) = self.state.lock().expect("a lock").clone();
        ids.iter().map(|id| Member { id: *id, name: format!("n{id}"), ..Member::default() }).collect()
    }
}

impl Service for FakeEtcd {
    fn status(&self) -> BoxFuture<'_, Result<Status, Refusal>> {
        let leader = self.state.lock().expect("a lock").1;
        futures::future::ready(Ok(Status { leader, ..Status::default() })).boxed()
    }

    fn members(&self, _: bool) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        Self::answer(self.list())
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Answer<Vec<Alarm>>, Refusal>> {
        Self::answer(vec![Alarm { member_id: 3, kind: AlarmKind::NoSpace }])
    }

    fn remove_member(&self, id: u64) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        self.state.lock().expect("a lock").0.retain(|known| *known != id);
        Self::answer(self.list())
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<Answer<()>, Refusal>> {
        self.state.lock().expect("a lock").1 = to;
        Self::answer(())
    }
}

/// A cluster whose Pods are etcd members; the one on node `down` does not answer.
struct Cluster {
    etcd: Arc<FakeEtcd>,
    tls: Arc<rustls::ServerConfig>,
    down: &'static str,
}

impl Workloads for Cluster {
    fn client<'a>(&'a self, cluster: &'a Key) -> BoxFuture<'a, Result<ApiClient, WorkloadError>> {
        futures::future::ready(Err(WorkloadError::NoKubeconfig(cluster.clone()))).boxed()
    }

    fn port_forward<'a>(
        &'a self,
        cluster: &'a Key,
        pod: &'a Key,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, WorkloadError>> {
        assert_eq!((pod.namespace.as_str(), port), ("kube-system", 2379));
        if pod.name == format!("etcd-{}", self.down) {
            let error =
                WorkloadError::Unreachable { cluster: cluster.clone(), why: "no such pod".to_owned() };
            return futures::future::ready(Err(error)).boxed();
        }
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(far, Some(self.tls.clone()), self.etcd.clone()));
        futures::future::ready(Ok(Box::new(near) as Box<dyn Stream>)).boxed()
    }

    fn forget(&self, _: &Key) {}

    fn health(&self, _: &Key) -> Health {
        Health::default()
    }
}

struct Pki {
    authority: KeyPair,
    server: Arc<rustls::ServerConfig>,
}

/// A CA, and a server certificate signed by it for another name.
fn pki() -> Pki {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().expect("a key"))
        .expect("an authority");
    let key = rcgen::KeyPair::generate().expect("a key");
    let named = CertificateParams::new(vec!["node-1.example".to_owned()]).expect("parameters");
    let certificate = named.signed_by(&key, &issuer).expect("a certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(issuer.der().clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().expect("it");
    let key_der = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate.der().clone()], key_der)
        .expect("a server");
    Pki {
        authority: KeyPair { certificate: issuer.pem(), key: issuer.key().serialize_pem() },
        server: Arc::new(server),
    }
}

fn credentials(authority: &KeyPair) -> Credentials {
    let seed = SeededKeys::new(1).seed("etcd").expect("a seed");
    let now = Timestamp::now();
    let pass = Credentials::issue(authority, None, &seed, now).expect("a certificate");
    Credentials::new(authority, &pass, now).expect("credentials")
}

fn nodes(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn requests_go_to_the_first_pod_that_responds() {
    let pki = pki();
    let cluster = Cluster { etcd: FakeEtcd::new(), tls: pki.server.clone(), down: "n1" };
    let key = Key::new("fleet", "blue");
    let etcd = Etcd { workloads: &cluster, cluster: &key, credentials: credentials(&pki.authority) };
    let EtcdState::Members { members, leader } = etcd.look(&nodes(&["n1", "n2"])).await.expect("an answer")
    else {
        panic!("members")
    };
    assert_eq!(leader, "n1");
    assert_eq!(members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    assert_eq!(members[2].alarms, ["NOSPACE"]);

    etcd.move_leader("n1", "n3").await.expect_err("its own pod does not answer");
    let whole = Cluster { down: "", ..cluster };
    let etcd = Etcd { workloads: &whole, cluster: &key, credentials: credentials(&pki.authority) };
    etcd.move_leader("n2", "n3").await.expect("nothing to do: n2 does not lead");
    assert_eq!(whole.etcd.state.lock().expect("a lock").1, 1);
    etcd.move_leader("n1", "n3").await.expect("moved");
    assert_eq!(whole.etcd.state.lock().expect("a lock").1, 3);

    etcd.remove(1, &nodes(&["n2"])).await.expect("removed");
    etcd.remove(1, &nodes(&["n2"])).await.expect("once more changes nothing");
    assert_eq!(etcd.has(1, &nodes(&["n2"])).await, Ok(false));
    etcd.remove(2, &nodes(&["n3"])).await.expect("removed");
    assert_eq!(
        etcd.remove(3, &nodes(&["n3"])).await,
        Err("the last member of etcd is not removed".to_owned())
    );
}

#[tokio::test]
async fn a_member_with_another_ca_is_rejected() {
    let (theirs, ours) = (pki(), pki());
    let cluster = Cluster { etcd: FakeEtcd::new(), tls: theirs.server.clone(), down: "" };
    let key = Key::new("fleet", "blue");
    let etcd = Etcd { workloads: &cluster, cluster: &key, credentials: credentials(&ours.authority) };
    let why = etcd.look(&nodes(&["n1"])).await.expect_err("a stranger");
    assert!(why.starts_with("Failed to connect to etcd: etcd-n1: TLS with etcd failed"), "{why}");
}
