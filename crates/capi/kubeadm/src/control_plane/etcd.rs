//! etcd of a control plane, reached through the ports of its Pods.
//!
//! Every question is put to one member, the first that answers, with a client certificate that the cluster's etcd
//! authority signs for the occasion. What it proves of itself must come from the same authority; under which name
//! is no matter, because the API server led there by the name of the Pod.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use capstan_controller::{View, Workloads};
use capstan_etcd::{AlarmKind, Client};
use capstan_object::Key;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

use super::EtcdMember;
use crate::Error;
use crate::certificates::{Authority, KeyPair, PrivateKey, Seed};

const NAMESPACE: &str = "kube-system";
const PORT: u16 = 2379;
/// A member that says nothing for so long is passed over.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EtcdSeen {
    /// It runs elsewhere, or there is no machine yet to ask.
    #[default]
    NotAsked,
    /// Nobody answered, and why.
    Failed(String),
    /// It answered.
    Members {
        /// Its members, in the order of their names.
        members: Vec<EtcdMember>,
        /// Name of the leader.
        leader: String,
    },
}

impl EtcdSeen {
    /// The members, if they can be told.
    pub fn members(&self) -> &[EtcdMember] {
        match self {
            Self::Members { members, .. } => members,
            _ => &[],
        }
    }
}

/// What lets a client in.
#[derive(Clone)]
pub(super) struct Credentials {
    tls: Arc<rustls::ClientConfig>,
}

impl Credentials {
    /// A certificate signed by etcd's authority, valid for a day. If its key is the user's own secret, `client` must be
    /// at hand.
    pub fn pass(
        authority: &KeyPair,
        client: Option<&KeyPair>,
        seed: &Seed,
        now: Timestamp,
    ) -> Result<KeyPair, Error> {
        if authority.key.is_empty() {
            return client.cloned().ok_or(Error::Key("of etcd's authority is missing, and so is a client's"));
        }
        let key = PrivateKey::from_seed(EncryptionAlgorithmType::EcdsaP256, &seed.derive("etcd-client"))?;
        let signer = Authority::from_pair(authority)?;
        let certificate = signer.client_certificate(&key, "capstan", &[], 1, now)?;
        Ok(KeyPair { certificate, key: key.to_pem().to_owned() })
    }

    /// Shows a certificate to whoever the authority vouches for.
    pub fn new(authority: &KeyPair, own: &KeyPair, now: Timestamp) -> Result<Self, Error> {
        let unreadable = |_| Error::Certificate("cannot be read");
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.certificate.as_bytes()) {
            let certificate = certificate.map_err(unreadable)?;
            roots.add(certificate).map_err(|_| Error::Certificate("is no authority"))?;
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(own.certificate.as_bytes()).collect();
        let chain = chain.map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())
            .map_err(|_| Error::Key("there is none in the PEM text"))?;
        let unusable = |_| Error::Certificate("cannot be used for TLS");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|_| Error::Certificate("cannot be used for TLS"))?;
        let mut tls = rustls::ClientConfig::builder_with_details(provider, Arc::new(Moment(now)))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyName(verifier)))
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(Self { tls: Arc::new(tls) })
    }
}

/// The time of the look, so that a simulation judges certificates by its own clock.
#[derive(Debug)]
struct Moment(Timestamp);

impl rustls::time_provider::TimeProvider for Moment {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Asks for a certificate of the authority, for whatever name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// The etcd of one cluster.
pub(super) struct Etcd<'a> {
    pub workloads: &'a dyn Workloads,
    pub cluster: &'a Key,
    pub credentials: Credentials,
}

impl Etcd<'_> {
    async fn connect(&self, node: &str) -> Result<Client, String> {
        let pod = Key::new(NAMESPACE, format!("etcd-{node}"));
        let forwarded = self.workloads.port_forward(self.cluster, &pod, PORT).await;
        let stream = forwarded.map_err(|error| error.to_string())?;
        // The name that Cluster API's client asks by: servers of many members choose the certificate by it.
        let name = ServerName::try_from(pod.name.clone()).or_else(|_| ServerName::try_from("localhost"));
        let name = name.map_err(|error| error.to_string())?;
        let client = Client::connect(stream, Some((self.credentials.tls.clone(), name))).await;
        Ok(client.map_err(|error| words(&error))?.with_deadline(PATIENCE))
    }

    /// A connection to the first node whose member answers, and the id of the leader it knows.
    async fn first(&self, nodes: &[String]) -> Result<(Client, u64), String> {
        let mut last = "there is no node to ask".to_owned();
        for node in nodes {
            let tried = async {
                let mut client = self.connect(node).await?;
                let leader = client.status().await.map_err(|error| words(&error))?.leader;
                if leader == 0 { Err("etcd has no leader".to_owned()) } else { Ok((client, leader)) }
            };
            match tried.await {
                Ok(answered) => return Ok(answered),
                Err(why) => last = format!("etcd-{node}: {why}"),
            }
        }
        Err(last)
    }

    /// Who the members are, who leads them, and what is wrong with them.
    pub async fn look(&self, nodes: &[String]) -> Result<EtcdSeen, String> {
        let (mut client, leader) =
            self.first(nodes).await.map_err(|why| format!("Failed to connect to etcd: {why}"))?;
        let members = client.members().await;
        let members = members.map_err(|error| format!("Failed to get etcd members: {}", words(&error)))?;
        let alarms = client.alarms().await;
        let alarms = alarms.map_err(|error| format!("Failed to get etcd alarms: {}", words(&error)))?;
        let leads = members.iter().find(|member| member.id == leader);
        let Some(leader) = leads.map(|member| member.name.clone()) else {
            return Err("Failed to get etcd leader: it is none of the members".to_owned());
        };
        let mut members: Vec<EtcdMember> = members
            .into_iter()
            .map(|member| EtcdMember {
                id: member.id,
                name: member.name,
                learner: member.is_learner,
                alarms: alarms
                    .iter()
                    .filter(|alarm| alarm.member_id == member.id)
                    .map(|alarm| word(alarm.kind))
                    .collect(),
            })
            .collect();
        members.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(EtcdSeen::Members { members, leader })
    }

    /// Takes a member out; one that is gone counts as taken out. The answer to a question that etcd agrees upon
    /// comes first: without quorum nothing is removed.
    pub async fn remove(&self, id: u64, nodes: &[String]) -> Result<(), String> {
        let (mut client, _) = self.first(nodes).await?;
        let members = client.members().await.map_err(|error| words(&error))?;
        if !members.iter().any(|member| member.id == id) {
            return Ok(());
        }
        if members.len() == 1 {
            return Err("the last member of etcd is not removed".to_owned());
        }
        match client.remove_member(id).await {
            Ok(()) | Err(capstan_etcd::Error::MemberNotFound) => Ok(()),
            Err(error) => Err(words(&error)),
        }
    }

    /// The member is there; asked of the whole cluster.
    pub async fn has(&self, id: u64, nodes: &[String]) -> Result<bool, String> {
        let (mut client, _) = self.first(nodes).await?;
        let members = client.members().await.map_err(|error| words(&error))?;
        Ok(members.iter().any(|member| member.id == id))
    }

    /// Has a member that leads make another one the leader; does nothing if it does not lead.
    pub async fn move_leader(&self, from: &str, to: &str) -> Result<(), String> {
        let (mut client, leader) = self.first(&[from.to_owned()]).await?;
        let members = client.members().await.map_err(|error| words(&error))?;
        let id_of = |name: &str| members.iter().find(|member| member.name == name).map(|member| member.id);
        if id_of(from) != Some(leader) {
            return Ok(());
        }
        let to = id_of(to).ok_or_else(|| format!("etcd has no member {to}"))?;
        client.move_leader(to).await.map_err(|error| words(&error))
    }
}

/// The workload clusters that this plane reaches.
pub(super) fn workloads(view: &View) -> Result<&dyn Workloads, String> {
    view.workloads().map(AsRef::as_ref).ok_or_else(|| "this plane reaches no workload clusters".to_owned())
}

fn word(kind: AlarmKind) -> String {
    match kind {
        AlarmKind::NoSpace => "NOSPACE".to_owned(),
        AlarmKind::Corrupt => "CORRUPT".to_owned(),
        AlarmKind::Other(number) => format!("alarm {number}"),
    }
}

fn words(error: &capstan_etcd::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
