//! API servers through ports of Pods.

use std::sync::Arc;

use capstan_apiserver::pki::tls_time;
use capstan_object::Key;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::testing::{Bed, pass};

/// Shakes hands with whoever listens on a port of a machine's API server, as somebody who knows it by a name.
async fn shake_hands(bed: &Bed, node: &str, port: u16, name: &str) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(bed.authorities.ca.credential().certificate.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_details(provider, tls_time(&bed.env))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let pod = Key::new("kube-system", format!("kube-apiserver-{node}"));
    let stream = bed.remote().port_forward(&pod, port).await.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let shaken = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    shaken.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn each_api_server_shows_its_own_certificate_through_its_pod() {
    let mut bed = Bed::new();
    bed.init().await;
    let second = bed.control_plane("cp-2").await;
    pass(5).await;
    shake_hands(&bed, "cp-1", 6443, "cp-1").await.expect("the first");
    shake_hands(&bed, "cp-2", 6443, "cp-2").await.expect("the second");
    assert!(shake_hands(&bed, "cp-2", 6443, "cp-1").await.is_err(), "each has its own");
    assert!(shake_hands(&bed, "cp-1", 8443, "cp-1").await.is_err(), "nothing listens elsewhere");
    bed.site.stop(&second).expect("stopped");
    assert!(shake_hands(&bed, "cp-2", 6443, "cp-2").await.is_err(), "nobody is there");
}
