//! API servers through port forwarding.

use std::sync::Arc;

use capstan_object::Key;
use capstan_pki::tls_time;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::testing::{TestSite, pass};

/// TLS handshake with a machine's API server, expecting a server name.
async fn handshake(test_site: &TestSite, node: &str, port: u16, name: &str) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(test_site.authorities.ca.credential().certificate.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_details(provider, tls_time(&test_site.env))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let pod = Key::new("kube-system", format!("kube-apiserver-{node}"));
    let stream = test_site.remote().port_forward(&pod, port).await.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let shaken = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    shaken.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn each_api_server_serves_its_own_certificate() {
    let mut test_site = TestSite::new();
    test_site.init().await;
    let second = test_site.control_plane("cp-2").await;
    pass(5).await;
    handshake(&test_site, "cp-1", 6443, "cp-1").await.expect("the first");
    handshake(&test_site, "cp-2", 6443, "cp-2").await.expect("the second");
    assert!(handshake(&test_site, "cp-2", 6443, "cp-1").await.is_err(), "each has its own");
    assert!(handshake(&test_site, "cp-1", 8443, "cp-1").await.is_err(), "nothing listens elsewhere");
    test_site.site.stop(&second).expect("stopped");
    assert!(handshake(&test_site, "cp-2", 6443, "cp-2").await.is_err(), "nothing listens");
}
