//! Data directories from which files have vanished, and what `capstan store` makes of them.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};

use crate::output::Transcript;
use crate::program::{Server, ask, failed, succeeded};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a server that is expected to fail.
fn start(transcript: &mut Transcript, dir: &Path) {
    failed(transcript.run(&["server", "--api-only", "--listen", "127.0.0.1:0", "--data-dir", text(dir)]));
}

async fn create(server: &Server, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let (code, answer) = ask(&server.admin(), Method::POST, MAPS, &object).await;
    assert_eq!(code, 201, "{answer}");
}

fn file(dir: &Path, prefix: &str) -> PathBuf {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| text(path).contains(&format!("/{prefix}"))).collect();
    found.sort();
    found.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_with_keys_and_without_a_store_is_no_empty_server() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let server = Server::start(&dir, &["--api-only"]);
    create(&server, "kept").await;
    drop(server);
    for name in ["MANIFEST", "RESERVE"] {
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    std::fs::remove_file(file(&dir, "wal-")).unwrap();
    let mut transcript = Transcript::new(folder.path());
    start(&mut transcript, &dir);
    succeeded(transcript.run(&["store", "init", "--data-dir", text(&dir)]));
    transcript.assert("store-lost");
    Server::start(&dir, &["--api-only"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_objects_gets_no_new_keys_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let [dir, to] = ["data", "saved"].map(|name| folder.path().join(name));
    let server = Server::start(&dir, &["--api-only"]);
    create(&server, "kept").await;
    drop(server);
    let (pki, aside) = (dir.join("pki"), folder.path().join("aside"));
    let mut transcript = Transcript::new(folder.path());
    for lost in [&["ca.key", "ca.crt", "sa.key"][..], &["ca.crt", "sa.key"], &["ca.crt", "ca.key"]] {
        std::fs::create_dir(&aside).unwrap();
        for name in lost {
            std::fs::rename(pki.join(name), aside.join(name)).unwrap();
        }
        transcript.note(&format!("without {}", lost.join(", ")));
        start(&mut transcript, &dir);
        for name in lost {
            assert!(!pki.join(name).exists(), "{name} was made");
            std::fs::rename(aside.join(name), pki.join(name)).unwrap();
        }
        std::fs::remove_dir(&aside).unwrap();
    }
    std::fs::rename(&pki, &aside).unwrap();
    transcript.note("without any of them");
    start(&mut transcript, &dir);
    succeeded(transcript.run(&["store", "salvage", "--data-dir", text(&dir), "--to", text(&to)]));
    transcript.assert("store-lost-keys");
    let server = Server::start(&to, &["--api-only"]);
    let (code, _) = ask(&server.admin(), Method::GET, &format!("{MAPS}/kept"), &Value::Null).await;
    assert_eq!(code, 200, "salvaged with new keys");
}

#[test]
fn a_first_start_that_fails_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = folder.path().join("data");
    let arguments = ["server", "--api-only", "--data-dir", text(&dir), "--listen", &address];
    let mut transcript = Transcript::new(folder.path());
    transcript.run(&arguments);
    transcript.assert("server-address-in-use");
    Server::start(&dir, &["--api-only"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_cut_off_is_refused_and_salvaged_into_another_directory() {
    let folder = tempfile::tempdir().unwrap();
    let [dir, to] = ["data", "saved"].map(|name| folder.path().join(name));
    let server = Server::start(&dir, &["--api-only"]);
    for name in ["one", "two", "three"] {
        create(&server, name).await;
    }
    drop(server);
    let log = file(&dir, "wal-");
    let bytes = std::fs::read(&log).unwrap();
    let third = bytes.windows(7).rposition(|window| window == b"\"three\"").unwrap();
    std::fs::write(&log, &bytes[..third]).unwrap();

    let mut transcript = Transcript::new(folder.path());
    start(&mut transcript, &dir);
    // Something is lost.
    transcript.run(&["store", "salvage", "--data-dir", text(&dir), "--to", text(&to)]);
    transcript.assert("store-salvage");
    assert_eq!(std::fs::read(&log).unwrap(), bytes[..third], "the old directory is as it was");

    let server = Server::start(&to, &["--api-only"]);
    // The keys are those of the old server.
    let client = server.client(&dir.join("admin.kubeconfig"));
    for (name, code) in [("one", 200), ("two", 200), ("three", 404)] {
        assert_eq!(
            ask(&client, Method::GET, &format!("{MAPS}/{name}"), &Value::Null).await.0,
            code,
            "{name}"
        );
    }
}
