//! Certificate expiry of machines, read from the serving certificates of their API servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::bootstrap::KubeadmConfigSpec;
use capstan_controller::{Workloads, off_worker};
use capstan_object::Key;
use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::certificates::expiry_of;
use crate::control_plane::installed::{NAMESPACE, pod_name};

/// Common name of the serving certificate that kubeadm generates.
const COMMON_NAME: &str = "kube-apiserver";
/// Per API server; the next reconcile tries again.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn port(spec: &KubeadmConfigSpec) -> u16 {
    let joined = spec.join_configuration.control_plane.as_ref();
    let ports = [
        spec.init_configuration.local_api_endpoint.bind_port,
        joined.map(|control_plane| control_plane.local_api_endpoint.bind_port).unwrap_or_default(),
    ];
    ports.into_iter().find(|port| *port != 0).and_then(|port| u16::try_from(port).ok()).unwrap_or(6443)
}

/// Certificate expiry by node; nodes whose API server does not answer are left out.
pub(super) async fn read(
    workloads: &dyn Workloads,
    cluster: &Key,
    nodes: &[(String, u16)],
) -> BTreeMap<String, Timestamp> {
    let mut found = BTreeMap::new();
    for (node, port) in nodes {
        let shown = off_worker(tokio::time::timeout(TIMEOUT, shown(workloads, cluster, node, *port))).await;
        match shown.unwrap_or_else(|_| Err("it took too long".to_owned())) {
            Ok(expiry) => drop(found.insert(node.clone(), expiry)),
            Err(why) => tracing::debug!(%cluster, node, why, "cannot read the certificate of an API server"),
        }
    }
    found
}

async fn shown(workloads: &dyn Workloads, cluster: &Key, node: &str, port: u16) -> Result<Timestamp, String> {
    let pod = Key::new(NAMESPACE, pod_name("kube-apiserver", node));
    let stream = workloads.port_forward(cluster, &pod, port).await.map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(schemes)))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let expiry = certificates.iter().find_map(|certificate| expiry_of(certificate, COMMON_NAME));
    expiry.ok_or_else(|| "it shows no certificate of kubeadm's".to_owned())
}

/// Accepts any certificate: it is only read, and nothing is sent on the connection.
#[derive(Debug)]
struct AcceptAnyCertificate(Vec<SignatureScheme>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
