//! Calls over loopback TLS: requests, responses and errors.

use rcgen::{CertificateParams, IsCa, KeyPair};
use serde_json::json;
use tokio::net::TcpListener;

use super::testing::Server;
use super::*;
use crate::auth::bucket;
use crate::auth::testing::Objects;

fn client(objects: Objects) -> WebhookClient {
    WebhookClient::new(Arc::new(objects), Env::system())
}

async fn post(config: &Value, timeout: Duration) -> Result<Value, String> {
    let config = ClientConfig::from_json(config).unwrap();
    let answer = client(Objects::default()).post(&config, &json!({"a": 1}), timeout).await;
    answer.map_err(|error| error.to_string())
}

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn reviews_share_one_connection() {
    let server = Server::start(&["127.0.0.1"], |_, body| Some((200, json!({"got": body}).to_string()))).await;
    let client = client(Objects::default());
    let config = ClientConfig::from_json(&server.client_config("/mutate")).unwrap();
    for n in 0..3 {
        let answer = client.post(&config, &json!({"n": n}), SOON).await.unwrap();
        assert_eq!(answer, json!({"got": {"n": n}}));
    }
    let calls = server.calls.lock();
    assert_eq!(calls[0], ("/mutate?timeout=10s".to_owned(), json!({"n": 0})));
    assert_eq!((calls.len(), *server.connections.lock()), (3, 1));
}

#[tokio::test]
async fn a_service_is_called_at_its_endpoint_under_its_own_name() {
    let server = Server::start(&["hook.ns.svc"], |_, _| Some((200, "{}".into()))).await;
    let objects = Objects::default();
    let metadata = json!({"namespace": "ns", "name": "hook"});
    objects.put(bucket::SERVICES, json!({"metadata": metadata, "spec": {"ports": [{"port": 443}]}}));
    objects.put(
        bucket::ENDPOINTS,
        json!({
            "metadata": metadata,
            "subsets": [{
                "addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": server.address.port()}],
            }],
        }),
    );
    let config = json!({
        "service": {"namespace": "ns", "name": "hook", "path": "/p"}, "caBundle": server.ca_bundle,
    });
    let config = ClientConfig::from_json(&config).unwrap();
    client(objects).post(&config, &json!({}), SOON).await.unwrap();
    let failed = client(Objects::default()).post(&config, &json!({}), SOON).await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "failed to call webhook: Post \"https://hook.ns.svc:443/p?timeout=10s\": service \"hook\" not found"
    );
}

#[tokio::test]
async fn failures_read_as_upstream() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = json!({"url": format!("https://{unused}/x")});
    assert_eq!(
        post(&refused, SOON).await.unwrap_err(),
        format!(
            "failed to call webhook: Post \"https://{unused}/x?timeout=10s\": dial tcp {unused}: connect: connection refused"
        )
    );

    let server = Server::start(&["127.0.0.1"], |path, _| match path {
        "/never?timeout=1s" => None,
        "/500?timeout=10s" => Some((500, "boom".into())),
        "/404?timeout=10s" => Some((404, "gone".into())),
        "/status?timeout=10s" => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no"});
            Some((403, status.to_string()))
        }
        "/empty?timeout=10s" => Some((200, String::new())),
        _ => Some((200, "<html>".into())),
    })
    .await;
    let at = |path: &str| server.client_config(path);
    let url = format!("https://{}", server.address);
    for (path, message) in [
        ("/500", "an error on the server (\"boom\") has prevented the request from succeeding"),
        ("/404", "the server could not find the requested resource"),
        ("/status", "no"),
        ("/empty", "0-length response with status code: 200 and content type: application/json"),
        (
            "/html",
            r#"couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#,
        ),
    ] {
        let failed = post(&at(path), SOON).await.unwrap_err();
        assert_eq!(failed, format!("failed to call webhook: {message}"), "{path}");
    }
    assert_eq!(
        post(&at("/never"), Duration::from_millis(50)).await.unwrap_err(),
        format!("failed to call webhook: Post \"{url}/never?timeout=1s\": context deadline exceeded")
    );
}

#[tokio::test]
async fn certificates_are_trusted_by_bundle_and_name() {
    let server = Server::start(&["example.org"], |_, _| Some((200, "{}".into()))).await;
    let stranger = Server::start(&["127.0.0.1"], |_, _| Some((200, "{}".into()))).await;
    let url = format!("https://{}/", server.address);
    let failed = |why: &str| {
        format!(
            "failed to call webhook: Post \"{url}?timeout=10s\": tls: failed to verify certificate: {why}"
        )
    };
    assert_eq!(
        post(&server.client_config("/"), SOON).await.unwrap_err(),
        failed("x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs")
    );
    let mut foreign = server.client_config("/");
    foreign["caBundle"] = stranger.ca_bundle.clone().into();
    assert_eq!(
        post(&foreign, SOON).await.unwrap_err(),
        failed("x509: certificate signed by unknown authority")
    );
    foreign["caBundle"] = "bm8gcGVt".into();
    assert_eq!(
        post(&foreign, SOON).await.unwrap_err(),
        "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
    );
}

#[test]
fn a_serving_certificate_that_is_its_own_authority_is_trusted_by_its_bundle() {
    use rustls::client::danger::ServerCertVerifier;
    use rustls_pki_types::UnixTime;
    let mut params = CertificateParams::new(["hook.ns.svc".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let verify = |bundle: &[u8], name: &str| {
        trust::verifier(bundle).unwrap().verify_server_cert(
            certificate.der(),
            &[],
            &ServerName::try_from(name.to_owned()).unwrap(),
            &[],
            UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000)),
        )
    };
    let own = certificate.pem();
    assert!(verify(own.as_bytes(), "hook.ns.svc").is_ok());
    assert!(verify(own.as_bytes(), "other.ns.svc").is_err());
    let other = capstan_pki::Pki::ephemeral(Env::system()).ca_pem().unwrap();
    assert!(verify(other.as_bytes(), "hook.ns.svc").is_err());
}

#[tokio::test]
async fn a_client_certificate_is_presented_and_a_renewed_one_with_the_next_call() {
    let server = Server::start(&["127.0.0.1"], |_, _| Some((200, "{}".into()))).await;
    let config = ClientConfig::from_json(&server.client_config("/hook")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let issued = || {
        let credential = capstan_pki::Pki::ephemeral(Env::system()).client("caller", &[]).unwrap();
        std::fs::write(&certificate, credential.certificate_pem()).unwrap();
        std::fs::write(&key, credential.key.to_pem()).unwrap();
        Some(credential.certificate.to_vec())
    };
    client(Objects::default()).post(&config, &json!({}), SOON).await.unwrap();
    let first = issued();
    let client = client(Objects::default()).presenting(IdentityFiles::open(&certificate, &key).unwrap());
    for _ in 0..2 {
        client.post(&config, &json!({}), SOON).await.unwrap();
    }
    let second = issued();
    client.post(&config, &json!({}), SOON).await.unwrap();
    assert_eq!(*server.presented.lock(), [None, first, second]);

    std::fs::remove_file(&key).unwrap();
    let lost = client.post(&config, &json!({}), SOON).await.unwrap_err().to_string();
    assert!(lost.contains("tls.key cannot be read"), "{lost}");
}

#[test]
fn files_that_are_no_certificate_and_its_key_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let issued = || capstan_pki::Pki::ephemeral(Env::system()).client("caller", &[]).unwrap();
    let (one, other) = (issued(), issued());
    let certificate = file("a.crt", &one.certificate_pem());
    for (certificate, key, problem) in [
        (&certificate, &file("a.key", &one.key.to_pem()), None),
        (&certificate, &file("b.key", &other.key.to_pem()), Some("do not fit")),
        (&certificate, &file("none.key", "nothing"), Some("the client key is not PEM")),
        (
            &file("none.crt", "nothing"),
            &file("c.key", &one.key.to_pem()),
            Some("the client certificate is not PEM"),
        ),
        (&certificate, &folder.path().join("absent"), Some("absent cannot be read")),
    ] {
        match (IdentityFiles::open(certificate, key), problem) {
            (Ok(_), None) => {}
            (Err(found), Some(problem)) => assert!(found.contains(problem), "{found}"),
            (found, _) => panic!("{problem:?}: {found:?}"),
        }
    }
}
