//! What the authority signs is accepted by others, kept on disk and renewed in time.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::{ServerName, UnixTime};

use super::*;

const START: i64 = 1_800_000_000;
const DAY: i64 = 24 * 3600;

/// An environment whose clock the test moves.
fn env() -> (Env, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(START));
    let read = clock.clone();
    let now = move || Timestamp::from_second(read.load(Ordering::Relaxed)).unwrap();
    (Env::simulated(now, 7), clock)
}

fn names() -> Vec<String> {
    ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
}

fn accepted_as(pki: &Pki, credential: &Credential, name: &str, at: i64) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(pki.authority().unwrap().credential().certificate.clone()).unwrap();
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), tls::provider()).build().unwrap();
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at as u64));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&credential.certificate, &[], &name, &[], at).is_ok()
}

#[test]
fn a_serving_certificate_holds_for_its_names_and_its_year() {
    let (env, _) = env();
    let pki = Pki::ephemeral(env);
    let credential = pki.credential("server", &Leaf::Server { names: names() }).unwrap();
    for (name, at, accepted) in [
        ("localhost", START, true),
        ("127.0.0.1", START, true),
        ("::1", START, true),
        ("example.org", START, false),
        ("localhost", START - 3600, false),
        ("localhost", START + 364 * DAY, true),
        ("localhost", START + 366 * DAY, false),
    ] {
        assert_eq!(accepted_as(&pki, &credential, name, at), accepted, "{name} {at}");
    }
}

#[test]
fn a_client_certificate_names_the_user_and_every_group_until_it_ends() {
    let (env, _) = env();
    let pki = Pki::ephemeral(env.clone());
    let credential = pki.client("ada", &["devs", "ops", "system:masters"]).unwrap();
    let peer = pki.peer(std::slice::from_ref(&credential.certificate)).unwrap();
    let user = peer.subject(env.now()).unwrap().unwrap();
    assert_eq!(
        (user.name.as_str(), &user.groups[..]),
        ("ada", &["devs", "ops", "system:masters"].map(str::to_owned)[..])
    );
    assert_eq!(user.fingerprint.len(), 64);
    assert!(peer.subject(Timestamp::from_second(START + 366 * DAY).unwrap()).is_err());

    let stranger = Pki::ephemeral(env.clone()).client("ada", &["system:masters"]).unwrap();
    assert!(pki.peer(&[stranger.certificate]).unwrap().subject(env.now()).is_err());
    let server = pki.credential("server", &Leaf::Server { names: names() }).unwrap();
    assert!(pki.peer(&[server.certificate]).unwrap().subject(env.now()).is_err());
    let nameless = pki.client("", &["devs"]).unwrap();
    assert_eq!(pki.peer(&[nameless.certificate]).unwrap().subject(env.now()), Ok(None));
    assert!(pki.peer(&[]).is_none());
}

#[test]
fn a_directory_keeps_keys_from_others_and_gives_back_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pki");
    let (env, clock) = env();
    let server = Leaf::Server { names: names() };
    let first = Pki::load_or_create(&path, env.clone()).unwrap();
    let certificate = first.credential("server", &server).unwrap().certificate;
    for file in ["ca.key", "sa.key", "server.key"] {
        let mode = std::fs::metadata(path.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    let again = Pki::load_or_create(&path, env.clone()).unwrap();
    assert_eq!(again.ca_pem().unwrap(), first.ca_pem().unwrap());
    assert_eq!(again.token_key().unwrap().id(), first.token_key().unwrap().id());
    assert_eq!(again.credential("server", &server).unwrap().certificate, certificate);
    // Other names need another certificate.
    let other = again.credential("server", &Leaf::Server { names: vec!["x.test".into()] }).unwrap();
    assert_ne!(other.certificate, certificate);

    let kept = again.credential("server", &server).unwrap().certificate;
    clock.fetch_add(240 * DAY, Ordering::Relaxed);
    assert_eq!(again.credential("server", &server).unwrap().certificate, kept);
    clock.fetch_add(5 * DAY, Ordering::Relaxed);
    assert_ne!(again.credential("server", &server).unwrap().certificate, kept);
}

#[test]
fn a_key_without_certificate_is_used_and_a_damaged_leaf_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (env, _) = env();
    let pki = Pki::load_or_create(directory.path(), env.clone()).unwrap();
    let key = pki.authority().unwrap().credential().key.id();
    std::fs::remove_file(directory.path().join("ca.crt")).unwrap();
    let again = Pki::load_or_create(directory.path(), env.clone()).unwrap();
    assert_eq!(again.authority().unwrap().credential().key.id(), key);

    let leaf = Leaf::Client { name: "admin".into(), groups: vec![] };
    again.credential("admin", &leaf).unwrap();
    std::fs::write(directory.path().join("admin.crt"), "no certificate").unwrap();
    let replaced = again.credential("admin", &leaf).unwrap();
    assert!(again.peer(&[replaced.certificate]).unwrap().subject(env.now()).unwrap().is_some());
    std::fs::write(directory.path().join("ca.key"), "no key").unwrap();
    assert!(Pki::load_or_create(directory.path(), env).is_err());
}

#[test]
fn the_kubeconfig_of_admin_carries_a_master() {
    let (env, _) = env();
    let pki = Pki::ephemeral(env);
    let config = pki.admin_kubeconfig("capstan", "https://127.0.0.1:6443").unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
    assert_eq!(config["current-context"], "admin@capstan");
    assert!(config["users"][0]["user"]["client-key-data"].is_string());
}

#[test]
fn tokens_signed_by_a_key_verify_with_it_alone() {
    let (ours, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let signature = ours.sign_token(b"message").unwrap();
    assert!(ours.verifies_token(b"message", &signature));
    assert!(!ours.verifies_token(b"massage", &signature) && !other.verifies_token(b"message", &signature));
    let again = PrivateKey::from_pem(&ours.to_pem()).unwrap();
    assert_eq!((again.id(), again.to_jwk()), (ours.id(), ours.to_jwk()));
}

#[test]
fn keys_in_the_older_form_of_openssl_are_read() {
    let key = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIB6sc9s+8T6AIvq0YtdYM+Ur/WPW+xgU5AqVRWFahR30oAoGCCqGSM49
AwEHoUQDQgAEvpr60YnT2FVJhvIZ7UffR7wzirhvQ632/Rbpmf/Ug0nSamGAGWQh
jX8dvEkw0rfo73WPPRAmUVx0uRrP630rGw==
-----END EC PRIVATE KEY-----
";
    let key = PrivateKey::from_pem(key).unwrap();
    assert_eq!(key.token_algorithm(), "ES256");
    assert_eq!(key.to_jwk()["x"], "vpr60YnT2FVJhvIZ7UffR7wzirhvQ632_Rbpmf_Ug0k");
    assert!(
        PrivateKey::from_pem("-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n").is_err()
    );
}

#[test]
fn a_lost_key_is_an_error_until_a_new_one_is_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = Pki::load_or_create(directory.path(), Env::system()).expect("keys");
    let first = made.token_key().expect("a key").id();
    std::fs::remove_file(directory.path().join("sa.key")).expect("removed");
    let error = Pki::load_or_create(directory.path(), Env::system()).err().expect("an error").to_string();
    assert!(error.contains("sa.key is missing") && error.contains("--new-token-key"), "{error}");
    assert!(!directory.path().join("sa.key").exists(), "nothing is made in its place");

    Pki::replace_lost_token_key(directory.path()).expect("a new key");
    let again = Pki::load_or_create(directory.path(), Env::system()).expect("keys");
    let second = again.token_key().expect("a key").id();
    assert_ne!(first, second);
    Pki::replace_lost_token_key(directory.path()).expect("nothing to do");
    let kept = Pki::load_or_create(directory.path(), Env::system()).expect("keys");
    assert_eq!(kept.token_key().expect("a key").id(), second, "a key that is there stays");

    std::fs::remove_file(directory.path().join("ca.key")).expect("removed");
    let error = Pki::load_or_create(directory.path(), Env::system()).err().expect("an error").to_string();
    assert!(error.contains("ca.key is missing") && !directory.path().join("ca.key").exists(), "{error}");
}

#[test]
fn private_keys_are_cleared_when_they_are_dropped() {
    fn cleared<T: zeroize::ZeroizeOnDrop>() {}
    cleared::<PrivateKey>();
    cleared::<Keys>();
}
