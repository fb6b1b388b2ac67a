use capstan_capi_types::bootstrap::{ClusterConfiguration, EncryptionAlgorithmType as Algorithm};
use capstan_object::OwnerReference;
use capstan_x509::Signer;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;
use crate::Error;
use crate::testing::{now, object};

fn seed(n: u64) -> Seed {
    SeededKeys::new(n).seed("fleet/blue").expect("a seed")
}

fn settings(algorithm: Algorithm) -> KeySettings {
    KeySettings { algorithm, authority_days: 3650 }
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate").to_vec()
}

fn is_signed_by(certificate: &[u8], issuer: &[u8], algorithm: &'static dyn VerificationAlgorithm) -> bool {
    let (_, certificate) = X509Certificate::from_der(certificate).expect("a certificate");
    let (_, issuer) = X509Certificate::from_der(issuer).expect("a certificate");
    let key = UnparsedPublicKey::new(algorithm, issuer.public_key().subject_public_key.data.as_ref());
    certificate.issuer().as_raw() == issuer.subject().as_raw()
        && key.verify(certificate.tbs_certificate.as_ref(), certificate.signature_value.as_ref()).is_ok()
}

#[test]
fn signatures_verify_with_every_algorithm() {
    let table: [(Algorithm, &'static dyn VerificationAlgorithm, &str); 3] = [
        (Algorithm::EcdsaP256, &signature::ECDSA_P256_SHA256_ASN1, "EC PRIVATE KEY"),
        (Algorithm::EcdsaP384, &signature::ECDSA_P384_SHA384_ASN1, "EC PRIVATE KEY"),
        (Algorithm::Rsa2048, &signature::RSA_PKCS1_2048_8192_SHA256, "RSA PRIVATE KEY"),
    ];
    for (algorithm, verification, label) in table {
        let pair = KeyPair::make(Purpose::ClusterCa, settings(algorithm), &seed(1), now()).expect("a pair");
        assert!(pair.key.starts_with(&format!("-----BEGIN {label}-----")), "{algorithm}");
        let authority = Authority::from_pair(&pair).expect("an authority");
        assert!(is_signed_by(&der(&pair.certificate), &der(&pair.certificate), verification), "{algorithm}");
        let key = PrivateKey::from_seed(Algorithm::EcdsaP256, &seed(2)).expect("a key");
        let client = authority
            .client_certificate(&key, "kubernetes-admin", &["system:masters"], 365, now())
            .expect("a certificate");
        assert!(is_signed_by(&der(&client), &der(&pair.certificate), verification), "{algorithm}");
        let other = KeyPair::make(Purpose::EtcdCa, settings(algorithm), &seed(3), now()).expect("a pair");
        assert!(!is_signed_by(&der(&client), &der(&other.certificate), verification), "{algorithm}");
    }
}

#[test]
fn one_seed_gives_one_set_of_certificates() {
    for purpose in Purpose::MADE {
        let make =
            |n| KeyPair::make(purpose, settings(Algorithm::EcdsaP256), &seed(n), now()).expect("a pair");
        assert_eq!(make(1), make(1), "{purpose:?}");
        assert_ne!(make(1), make(2), "{purpose:?}");
    }
    let make = |purpose| KeyPair::make(purpose, settings(Algorithm::EcdsaP256), &seed(1), now());
    assert_ne!(make(Purpose::ClusterCa), make(Purpose::EtcdCa));
}

#[test]
fn a_ca_has_the_fields_of_upstreams() {
    let config: ClusterConfiguration = object("{caCertificateValidityPeriodDays: 100}");
    let settings = KeySettings::of(&config, Algorithm::EcdsaP256);
    let pair = KeyPair::make(Purpose::FrontProxyCa, settings, &seed(1), now()).expect("a pair");
    let der = der(&pair.certificate);
    let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
    assert_eq!(certificate.subject().to_string(), "CN=kubernetes");
    let constraints = certificate.basic_constraints().expect("constraints").expect("constraints").value;
    assert_eq!((constraints.ca, constraints.path_len_constraint), (true, Some(0)));
    let usage = certificate.key_usage().expect("usage").expect("usage").value;
    assert!(usage.digital_signature() && usage.key_encipherment() && usage.key_cert_sign());
    let (from, to) = (certificate.validity().not_before, certificate.validity().not_after);
    assert_eq!(from.timestamp(), now().as_second() - 300);
    assert_eq!(to.timestamp(), now().as_second() + 100 * 24 * 3600);
}

#[test]
fn the_service_account_pair_is_a_public_and_a_private_key() {
    let pair = KeyPair::make(Purpose::ServiceAccount, settings(Algorithm::EcdsaP256), &seed(1), now())
        .expect("a pair");
    assert!(pair.certificate.starts_with("-----BEGIN PUBLIC KEY-----"));
    let key = PrivateKey::from_pem(&pair.key).expect("a key");
    assert_eq!(key.public_pem(), pair.certificate);
}

#[test]
fn keys_are_parsed_in_every_format() {
    use p256::pkcs8::EncodePrivateKey;
    let made = PrivateKey::from_seed(Algorithm::EcdsaP256, &seed(1)).expect("a key");
    let secret = {
        let sec1 = rustls_pki_types::PrivateKeyDer::from_pem_slice(made.to_pem().as_bytes()).expect("a key");
        p256::SecretKey::from_sec1_der(sec1.secret_der()).expect("a key")
    };
    let pkcs8 = capstan_x509::pem("PRIVATE KEY", secret.to_pkcs8_der().expect("PKCS#8").as_bytes());
    let read = PrivateKey::from_pem(&pkcs8).expect("a key");
    assert_eq!(read.public_key_info(), made.public_key_info());
    assert_eq!(
        PrivateKey::from_pem("nonsense").expect_err("no key"),
        Error::Key("there is none in the PEM text")
    );
}

#[test]
fn a_key_of_another_certificate_is_rejected() {
    let make = |n| {
        KeyPair::make(Purpose::ClusterCa, settings(Algorithm::EcdsaP256), &seed(n), now()).expect("a pair")
    };
    let mixed = KeyPair { certificate: make(1).certificate, key: make(2).key };
    let error = Authority::from_pair(&mixed).expect_err("not a pair");
    assert_eq!(error.to_string(), "certificate and key do not belong together");
}

#[test]
fn secrets_are_named_typed_labelled_and_owned() {
    let owner = OwnerReference {
        name: "blue-control-plane".to_owned(),
        controller: Some(true),
        ..Default::default()
    };
    for (purpose, name) in [
        (Purpose::ClusterCa, "blue-ca"),
        (Purpose::EtcdCa, "blue-etcd"),
        (Purpose::FrontProxyCa, "blue-proxy"),
        (Purpose::ServiceAccount, "blue-sa"),
    ] {
        let pair = KeyPair::make(purpose, settings(Algorithm::EcdsaP256), &seed(1), now()).expect("a pair");
        let secret = pair.to_secret("fleet", "blue", purpose, owner.clone());
        assert_eq!((secret.metadata.namespace.as_str(), secret.metadata.name.as_str()), ("fleet", name));
        assert_eq!(secret.kind, "cluster.x-k8s.io/secret");
        assert_eq!(secret.metadata.labels["cluster.x-k8s.io/cluster-name"], "blue");
        assert_eq!(secret.metadata.owner_references, std::slice::from_ref(&owner));
        assert_eq!(secret.data.keys().collect::<Vec<_>>(), ["tls.crt", "tls.key"]);
        assert_eq!(KeyPair::from_secret(&secret).expect("a pair"), pair);
    }
    assert_eq!(Purpose::Kubeconfig.secret_name("blue"), "blue-kubeconfig");
    assert_eq!(Purpose::ApiServerEtcdClient.secret_name("blue"), "blue-apiserver-etcd-client");
}

#[test]
fn a_secret_without_key_is_a_pair_and_one_without_certificate_is_not() {
    let pair =
        KeyPair::make(Purpose::EtcdCa, settings(Algorithm::EcdsaP256), &seed(1), now()).expect("a pair");
    let mut secret = pair.to_secret("fleet", "blue", Purpose::EtcdCa, OwnerReference::default());
    secret.data.remove("tls.key");
    assert_eq!(KeyPair::from_secret(&secret).expect("a pair").key, "");
    secret.data.clear();
    let error = KeyPair::from_secret(&secret).expect_err("no certificate");
    assert_eq!(error.to_string(), "secret blue-etcd has no key \"tls.crt\"");
}

#[test]
fn certificates_have_kubeadms_paths() {
    let paths = |config: &str| -> Vec<(String, Option<String>)> {
        let locations = locations_for_control_plane(&object::<ClusterConfiguration>(config));
        locations.into_iter().map(|location| (location.certificate_file, location.key_file)).collect()
    };
    let at = |crt: &str, key: &str| (crt.to_owned(), (!key.is_empty()).then(|| key.to_owned()));
    assert_eq!(
        paths("{}"),
        [
            at("/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"),
            at("/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"),
            at("/etc/kubernetes/pki/front-proxy-ca.crt", "/etc/kubernetes/pki/front-proxy-ca.key"),
            at("/etc/kubernetes/pki/sa.pub", "/etc/kubernetes/pki/sa.key"),
        ]
    );
    let external = "{certificatesDir: /pki/, etcd: {external: {endpoints: ['https://e:2379'], caFile: /e/ca, certFile: /e/crt, keyFile: /e/key}}}";
    assert_eq!(
        paths(external),
        [
            at("/pki/ca.crt", "/pki/ca.key"),
            at("/e/ca", ""),
            at("/pki/front-proxy-ca.crt", "/pki/front-proxy-ca.key"),
            at("/pki/sa.pub", "/pki/sa.key"),
            at("/e/crt", "/e/key"),
        ]
    );
}

#[test]
fn files_of_certificates_have_their_modes_and_a_worker_gets_no_key() {
    let pair = KeyPair { certificate: "crt".to_owned(), key: "key".to_owned() };
    let modes = |locations: Vec<CertificateLocation>| -> Vec<(String, String)> {
        locations[0].files(&pair).into_iter().map(|file| (file.path, file.permissions)).collect()
    };
    let own = |path: &str, mode: &str| (path.to_owned(), mode.to_owned());
    assert_eq!(
        modes(locations_for_control_plane(&ClusterConfiguration::default())),
        [own("/etc/kubernetes/pki/ca.crt", "0640"), own("/etc/kubernetes/pki/ca.key", "0600")]
    );
    assert_eq!(modes(locations_for_worker("")), [own("/etc/kubernetes/pki/ca.crt", "0640")]);
}

#[test]
fn every_certificate_of_a_bundle_is_pinned() {
    let make = |n| {
        KeyPair::make(Purpose::ClusterCa, settings(Algorithm::EcdsaP256), &seed(n), now())
            .expect("a pair")
            .certificate
    };
    let both = ca_hashes(&format!("{}{}", make(1), make(2))).expect("hashes");
    assert_eq!(both, [ca_hashes(&make(1)).expect("a hash"), ca_hashes(&make(2)).expect("a hash")].concat());
    assert!(both[0].starts_with("sha256:") && both[0].len() == 71, "{both:?}");
    assert!(ca_hashes("").is_err());
}

#[test]
fn the_admin_kubeconfig_is_renewed_at_half_its_lifetime() {
    let pair =
        KeyPair::make(Purpose::ClusterCa, settings(Algorithm::EcdsaP256), &seed(1), now()).expect("a pair");
    let authority = Authority::from_pair(&pair).expect("an authority");
    let wanted = AdminKubeconfig {
        cluster: "blue",
        server: "https://10.0.0.10:6443",
        algorithm: Algorithm::EcdsaP256,
    };
    let text = wanted.render(&authority, &seed(1), now()).expect("a kubeconfig");
    let secret = wanted.to_secret("fleet", OwnerReference::default(), &text);
    assert_eq!(secret.metadata.name, "blue-kubeconfig");
    assert_eq!(server_of(&secret, "blue").expect("a server"), "https://10.0.0.10:6443");

    let config: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(config["current-context"], "blue-admin@blue");
    let decoded = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        config["users"][0]["user"]["client-certificate-data"].as_str().expect("a certificate"),
    );
    let der = der(&String::from_utf8(decoded.expect("base64")).expect("PEM"));
    let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
    assert_eq!(certificate.subject().to_string(), "O=system:masters, CN=kubernetes-admin");

    for (days, due) in [(0, false), (182, false), (183, true), (365, true)] {
        let later = now() + jiff::SignedDuration::from_hours(24 * days);
        assert_eq!(is_due_for_renewal(&secret, later), Ok(due), "after {days} days");
    }
    let renewed = wanted.render(&authority, &seed(1), now() + jiff::SignedDuration::from_hours(24 * 183));
    assert_ne!(renewed.expect("a kubeconfig"), text);
}

#[test]
fn keys_are_never_shown() {
    let pair =
        KeyPair::make(Purpose::ClusterCa, settings(Algorithm::EcdsaP256), &seed(1), now()).expect("a pair");
    let key = PrivateKey::from_pem(&pair.key).expect("a key");
    for shown in [format!("{pair:?}"), format!("{key:?}"), format!("{:?}", Authority::from_pair(&pair))] {
        assert!(!shown.contains("PRIVATE KEY"), "{shown}");
    }
}
