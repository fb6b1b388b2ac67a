//! Encryption at rest: what a thief of files finds, and what a server without its key says.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use http::Method;
use serde_json::{Value, json};

use crate::output::Transcript;
use crate::program::{Server, ask, capstan, failed, succeeded};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Distinct texts, so that a find says which path leaked.
const PASSWORD: &str = "correct-horse-battery-staple";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn secret(name: &str, password: &str) -> Value {
    let encoded = base64::engine::general_purpose::STANDARD.encode(password);
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": encoded}})
}

async fn create(server: &Server, name: &str) {
    let (code, answer) = ask(&server.admin(), Method::POST, SECRETS, &secret(name, PASSWORD)).await;
    assert_eq!(code, 201, "{answer}");
}

async fn read(server: &Server, name: &str) -> u16 {
    ask(&server.admin(), Method::GET, &format!("{SECRETS}/{name}"), &Value::Null).await.0
}

/// Every file below a path, or the path itself.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| files(&entry)).collect()
}

/// Files with the password, plain or in any alignment of base64.
fn leaks(path: &Path) -> Vec<PathBuf> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(PASSWORD);
    let needles = [PASSWORD.as_bytes(), &encoded.as_bytes()[..encoded.len() - 4]];
    let has = |file: &PathBuf| {
        let content = std::fs::read(file).unwrap();
        needles.iter().any(|needle| content.windows(needle.len()).any(|part| part == *needle))
    };
    files(path).into_iter().filter(has).collect()
}

fn contains(path: &Path, needle: &[u8]) -> bool {
    std::fs::read(path).unwrap().windows(needle.len()).any(|part| part == needle)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_directory_and_its_backups_have_no_secret_in_clear_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, key, running, stopped) = (path("data"), path("data.key"), path("running"), path("stopped"));
    let mut transcript = Transcript::new(folder.path());
    let server = Server::start(&data, &["--api-only"]);
    for name in ["one", "two", "three"] {
        create(&server, name).await;
    }
    let changed =
        ask(&server.admin(), Method::PUT, &format!("{SECRETS}/one"), &secret("one", "changed")).await;
    assert_eq!(changed.0, 200);
    let deleted = ask(&server.admin(), Method::DELETE, &format!("{SECRETS}/three"), &Value::Null).await;
    assert_eq!(deleted.0, 200);
    let admin = data.join("admin.kubeconfig");
    succeeded(transcript.run(&["backup", "--kubeconfig", text(&admin), "--to", text(&running)]));
    drop(server);
    // Once more, so that there is a snapshot too.
    let server = Server::start(&data, &["--api-only"]);
    assert_eq!(read(&server, "two").await, 200);
    drop(server);
    succeeded(transcript.run(&["encryption", "reencrypt", "--data-dir", text(&data)]));
    succeeded(transcript.run(&["backup", "--data-dir", text(&data), "--to", text(&stopped)]));
    for place in [&data, &running, &stopped] {
        assert_eq!(leaks(place), Vec::<PathBuf>::new());
    }
    // The keys of the server are in both backups, and encrypted like Secrets.
    let ca = std::fs::read_to_string(data.join("pki/ca.key")).unwrap();
    let line = ca.lines().nth(1).unwrap().as_bytes();
    assert!(!contains(&running, line) && !contains(&stopped, line) && !contains(&stopped, b"PRIVATE KEY"));
    transcript.run(&["encryption", "status", "--data-dir", text(&data)]);

    // Without the key a backup is worth nothing, and the message says what to do.
    let back = path("back");
    let restore = ["restore", "--from", text(&stopped), "--data-dir", text(&back)];
    transcript.run(&restore);
    assert!(!back.exists());
    succeeded(transcript.run(&[&restore[..], &["--encryption-key-file", text(&key)]].concat()));
    transcript.assert("encryption-of-backups");
    assert_eq!(leaks(&back), Vec::<PathBuf>::new());
    // The new directory has a key of its own.
    assert_ne!(std::fs::read(path("back.key")).unwrap(), std::fs::read(&key).unwrap());
    let server = Server::start(&back, &["--api-only"]);
    assert_eq!([read(&server, "two").await, read(&server, "three").await], [200, 404]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_or_wrong_key_is_a_start_error_that_counts_what_is_affected() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, key, away) = (path("data"), path("data.key"), path("away.key"));
    let mut transcript = Transcript::new(folder.path());
    let server = Server::start(&data, &["--api-only"]);
    create(&server, "one").await;
    create(&server, "two").await;
    drop(server);
    std::fs::rename(&key, &away).unwrap();
    let start = ["server", "--api-only", "--listen", "127.0.0.1:0", "--data-dir", text(&data)];
    transcript.run(&start);

    // Another key of the same name.
    drop(Server::start(&path("other"), &["--api-only"]));
    let other = path("other.key");
    transcript.run(&[&start[..], &["--encryption-key-file", text(&other)]].concat());
    transcript.run(&["store", "salvage", "--data-dir", text(&data), "--dry-run"]);
    transcript.assert("encryption-lost-key");
    let server = Server::start(&data, &["--api-only", "--encryption-key-file", text(&away)]);
    assert_eq!(read(&server, "one").await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_without_encryption_stays_as_it_is_until_it_is_enabled_and_keys_are_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, key, off) = (path("data"), path("data.key"), path("off.yaml"));
    let plain = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
                 - resources: [secrets]\n  providers: [{identity: {}}]\n";
    std::fs::write(&off, plain).unwrap();
    let server = Server::start(&data, &["--api-only", "--encryption-provider-config", text(&off)]);
    create(&server, "one").await;
    drop(server);
    assert!(!leaks(&data).is_empty() && !key.exists());
    let server = Server::start(&data, &["--api-only"]);
    assert_eq!(read(&server, "one").await, 200);
    assert!(!key.exists(), "an existing directory is not changed");
    let mut transcript = Transcript::new(folder.path());
    transcript.run(&["encryption", "enable", "--data-dir", text(&data)]);
    assert!(!key.exists());
    drop(server);
    transcript.run(&["encryption", "status", "--data-dir", text(&data)]);

    succeeded(transcript.run(&["encryption", "enable", "--data-dir", text(&data)]));
    assert_eq!(leaks(&data), Vec::<PathBuf>::new());
    let server = Server::start(&data, &["--api-only"]);
    create(&server, "two").await;
    drop(server);
    succeeded(transcript.run(&["encryption", "rotate", "--data-dir", text(&data), "--remove-old-keys"]));
    transcript.run(&["encryption", "status", "--data-dir", text(&data)]);
    transcript.assert("encryption-enable-and-rotate");
    let server = Server::start(&data, &["--api-only"]);
    assert_eq!([read(&server, "one").await, read(&server, "two").await], [200, 200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_re_encrypts_what_an_earlier_key_has_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, config) = (path("data"), path("config.yaml"));
    let keys = |keys: &[(&str, u8)]| {
        let keys: Vec<_> = keys
            .iter()
            .map(|(name, byte)| {
                let secret = base64::engine::general_purpose::STANDARD.encode([*byte; 32]);
                json!({"name": name, "secret": secret})
            })
            .collect();
        let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets", "configmaps"], "providers": [{"secretbox": {"keys": keys}}]}]});
        std::fs::write(&config, file.to_string()).unwrap();
    };
    let start = || Server::start(&data, &["--api-only", "--encryption-provider-config", text(&config)]);
    keys(&[("old", 1)]);
    let server = start();
    create(&server, "one").await;
    drop(server);
    keys(&[("new", 2), ("old", 1)]);
    let server = start();
    assert_eq!(read(&server, "one").await, 200);
    // The snapshot that it writes on its own has only the new key.
    let snapshot = loop {
        let found = files(&data).into_iter().find(|file| text(file).ends_with(".bin"));
        match found {
            Some(file) => break file,
            None => tokio::task::yield_now().await,
        }
    };
    drop(server);
    assert!(contains(&snapshot, b"\x03new") && !contains(&snapshot, b"\x03old"));
    let rotate =
        ["encryption", "rotate", "--data-dir", text(&data), "--encryption-provider-config", text(&config)];
    let mut transcript = Transcript::new(folder.path());
    transcript.run(&rotate);
    transcript.assert("encryption-rotate-own-configuration");
    let reencrypt =
        ["encryption", "reencrypt", "--data-dir", text(&data), "--encryption-provider-config", text(&config)];
    succeeded(capstan(&reencrypt));
    keys(&[("new", 2)]);
    let server = start();
    assert_eq!(read(&server, "one").await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_systemd_credential_is_the_key_and_no_file_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, credentials) = (path("data"), path("credentials"));
    std::fs::create_dir(&credentials).unwrap();
    std::fs::write(credentials.join("capstan-encryption"), [7; 32]).unwrap();
    let environment = [("CREDENTIALS_DIRECTORY", &*credentials)];
    let server = Server::start_in(&environment, &data, &["--api-only"]);
    create(&server, "one").await;
    drop(server);
    assert!(!path("data.key").exists(), "a key file beside the credential");
    assert_eq!(leaks(&data), Vec::<PathBuf>::new());
    let credential = credentials.join("capstan-encryption");
    let mut transcript = Transcript::new(folder.path());
    for verb in ["status", "reencrypt", "rotate"] {
        transcript.run_in(&environment, &["encryption", verb, "--data-dir", text(&data)]);
    }
    // Another key is noticed, and the right one reads on.
    std::fs::write(&credential, [8; 32]).unwrap();
    transcript.note("with another key");
    let start = ["server", "--api-only", "--listen", "127.0.0.1:0", "--data-dir", text(&data)];
    transcript.run_in(&environment, &start);
    transcript.assert("encryption-credential");
    std::fs::write(&credential, [7; 32]).unwrap();
    let server = Server::start_in(&environment, &data, &["--api-only"]);
    assert_eq!(read(&server, "one").await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_systemd_credential_that_cannot_be_used_is_an_error_that_names_it_and_nothing_else_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, credentials) = (path("data"), path("credentials"));
    let credential = credentials.join("capstan-encryption");
    let start = ["server", "--api-only", "--listen", "127.0.0.1:0", "--data-dir", text(&data)];
    let mut transcript = Transcript::new(folder.path());
    let mut refused = |what: &str| {
        transcript.note(what);
        let said = failed(transcript.run_in(&[("CREDENTIALS_DIRECTORY", &*credentials)], &start));
        assert!(!path("data.key").exists() && !data.join("encryption.key").exists(), "another key was made");
        said
    };

    // Its directory is none: neither of them can be read.
    std::fs::write(&credentials, "").unwrap();
    refused("the credentials directory is a file");
    std::fs::remove_file(&credentials).unwrap();
    std::fs::create_dir_all(&credential).unwrap();
    refused("the credential is a directory");
    std::fs::remove_dir(&credential).unwrap();

    // Too short in base64 and as it is, empty, and text: no part of it is shown.
    let short = base64::engine::general_purpose::STANDARD.encode("0123456789");
    for (what, content) in [
        ("10 bytes in base64", short.as_bytes()),
        ("31 bytes", &[0xf7; 31]),
        ("an empty file", b""),
        ("text", b"swordfish: everybody"),
    ] {
        std::fs::write(&credential, content).unwrap();
        let said = refused(what);
        assert!(
            !said.contains(&short) && !said.contains("swordfish") && !said.contains("0123456789"),
            "{said}"
        );
    }

    // With a good one there is data. It is not started, and not changed, when the credential is gone.
    let environment = [("CREDENTIALS_DIRECTORY", &*credentials)];
    std::fs::write(&credential, base64::engine::general_purpose::STANDARD.encode([7; 32]) + "\n").unwrap();
    let server = Server::start_in(&environment, &data, &["--api-only"]);
    create(&server, "one").await;
    drop(server);
    assert_eq!(leaks(&data), Vec::<PathBuf>::new());
    std::fs::remove_file(&credential).unwrap();
    refused("the credential is gone");
    transcript.assert("encryption-unusable-credential");
    std::fs::write(&credential, [7; 32]).unwrap();
    let server = Server::start_in(&environment, &data, &["--api-only"]);
    assert_eq!(read(&server, "one").await, 200);
}
