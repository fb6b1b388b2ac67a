//! Backups of running and stopped servers, and servers restored from them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use crate::output::Transcript;
use crate::program::{Server, ask, capstan, succeeded};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"test": "yes"}},
           "data": {"filler": "x".repeat(500)}})
}

/// Restores a backup of a server whose key file is where it is by default.
fn restored(file: &Path, lost: &Path, back: &Path) -> String {
    let key = lost.with_extension("key");
    let arguments = ["restore", "--from", text(file), "--data-dir", text(back), "--encryption-key-file"];
    succeeded(capstan(&[&arguments[..], &[text(&key)]].concat()))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Names and resource versions of the test's objects.
async fn stored(server: &Server, kubeconfig: &Path) -> BTreeMap<String, u64> {
    let path = format!("{MAPS}?labelSelector=test%3Dyes");
    let (code, list) = ask(&server.client(kubeconfig), Method::GET, &path, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    list["items"].as_array().unwrap().iter().map(versioned).collect()
}

fn versioned(object: &Value) -> (String, u64) {
    let metadata = &object["metadata"];
    let version = metadata["resourceVersion"].as_str().unwrap().parse().unwrap();
    (metadata["name"].as_str().unwrap().to_owned(), version)
}

/// A kubeconfig with a ServiceAccount's token, for a server whose administrator's kubeconfig is given.
async fn token_kubeconfig(server: &Server, path: &Path) {
    let (code, _) = ask(
        &server.admin(),
        Method::POST,
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &json!({"metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]}),
    )
    .await;
    assert_eq!(code, 201);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let (code, _) =
        ask(&server.admin(), Method::POST, accounts, &json!({"metadata": {"name": "reader"}})).await;
    assert_eq!(code, 201);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let (code, token) =
        ask(&server.admin(), Method::POST, &format!("{accounts}/reader/token"), &request).await;
    assert_eq!(code, 201, "{token}");
    let admin = std::fs::read_to_string(server.dir.join("admin.kubeconfig")).unwrap();
    let mut config: Value = serde_json::from_str(&admin).unwrap();
    config["users"][0]["user"] = json!({"token": token["status"]["token"]});
    std::fs::write(path, config.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_writes_holds_exactly_what_was_acknowledged_up_to_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let [lost, back] = ["lost", "back"].map(|name| folder.path().join(name));
    let file = folder.path().join("backup");
    let server = Server::start(&lost, &["--api-only"]);

    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (admin, stop, written) = (server.admin(), stop.clone(), written.clone());
        writers.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let name = format!("w{writer}-{number}");
                let (code, made) = ask(&admin, Method::POST, MAPS, &map(&name)).await;
                assert_eq!(code, 201, "{made}");
                acknowledged.push(versioned(&made));
                written.fetch_add(1, Ordering::Relaxed);
            }
            acknowledged
        }));
    }
    let reached = async |count: usize| {
        while written.load(Ordering::Relaxed) < count {
            tokio::task::yield_now().await;
        }
    };
    reached(50).await;
    let before = written.load(Ordering::Relaxed);
    let arguments = ["backup", "--data-dir", text(&lost), "--to", text(&file)].map(str::to_owned);
    let mut transcript = Transcript::new(folder.path());
    tokio::task::spawn_blocking(move || {
        succeeded(transcript.run(&arguments.each_ref().map(String::as_str)));
        transcript.assert("backup");
    })
    .await
    .unwrap();
    reached(written.load(Ordering::Relaxed) + 50).await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    drop(server);

    let printed = restored(&file, &lost, &back);
    let version = printed.split("from resource version ").nth(1).unwrap().split(';').next().unwrap();
    let version: u64 = version.parse().unwrap();
    acknowledged.retain(|_, at| *at <= version);
    assert!(acknowledged.len() >= before, "what was acknowledged before the backup began is in it");
    let server = Server::start(&back, &["--api-only"]);
    assert_eq!(stored(&server, &lost.join("admin.kubeconfig")).await, acknowledged);
}

#[tokio::test]
async fn a_restored_server_accepts_the_kubeconfigs_and_tokens_of_the_lost_one() {
    let folder = tempfile::tempdir().unwrap();
    let [lost, back, file, token] =
        ["lost", "back", "backup", "token.kubeconfig"].map(|name| folder.path().join(name));
    let server = Server::start(&lost, &["--api-only"]);
    token_kubeconfig(&server, &token).await;
    assert_eq!(ask(&server.admin(), Method::POST, MAPS, &map("kept")).await.0, 201);
    let admin = lost.join("admin.kubeconfig");
    succeeded(capstan(&["backup", "--kubeconfig", text(&admin), "--to", text(&file)]));
    drop(server);

    assert_eq!(mode(&file), 0o600);
    restored(&file, &lost, &back);
    for key in ["ca.key", "sa.key"] {
        assert_eq!(mode(&back.join("pki").join(key)), 0o600, "{key}");
    }
    let server = Server::start(&back, &["--api-only"]);
    for kubeconfig in [&admin, &token] {
        let names: Vec<_> = stored(&server, kubeconfig).await.into_keys().collect();
        assert_eq!(names, ["kept"], "{}", kubeconfig.display());
    }
}

#[tokio::test]
async fn a_stopped_server_is_backed_up_from_its_directory() {
    let folder = tempfile::tempdir().unwrap();
    let [lost, back, file] = ["lost", "back", "backup"].map(|name| folder.path().join(name));
    let server = Server::start(&lost, &["--api-only"]);
    assert_eq!(ask(&server.admin(), Method::POST, MAPS, &map("kept")).await.0, 201);
    drop(server);
    succeeded(capstan(&["backup", "--data-dir", text(&lost), "--to", text(&file)]));
    restored(&file, &lost, &back);
    let server = Server::start(&back, &["--api-only"]);
    assert_eq!(
        stored(&server, &lost.join("admin.kubeconfig")).await.into_keys().collect::<Vec<_>>(),
        ["kept"]
    );
}

#[tokio::test]
async fn nothing_is_overwritten_and_nothing_damaged_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, file, back) = (path("data"), path("backup"), path("back"));
    drop(Server::start(&data, &["--api-only"]));
    succeeded(capstan(&["backup", "--data-dir", text(&data), "--to", text(&file)]));
    let whole = std::fs::read(&file).unwrap();

    let mut transcript = Transcript::new(folder.path());
    transcript.run(&["backup", "--data-dir", text(&data), "--to", text(&file)]);
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    transcript.run(&["backup", "--data-dir", text(&path("typo")), "--to", text(&path("other"))]);
    assert!(!path("typo").exists() && !path("other").exists());
    transcript.run(&["restore", "--from", text(&file), "--data-dir", text(&data)]);

    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let keys_end = 200;
    let cases = [
        ("not a backup", flipped(0)),
        ("newer", flipped(9)),
        ("keys", flipped(keys_end)),
        ("objects", flipped(whole.len() / 2)),
        ("last byte", flipped(whole.len() - 1)),
        ("cut off", whole[..whole.len() - 1].to_vec()),
        ("cut off in the keys", whole[..keys_end].to_vec()),
        ("empty", Vec::new()),
        ("longer", [whole.as_slice(), b"x"].concat()),
    ];
    for (what, bytes) in cases {
        let bad = path("bad");
        std::fs::write(&bad, bytes).unwrap();
        transcript.note(what);
        transcript.run(&["restore", "--from", text(&bad), "--data-dir", text(&back)]);
        assert!(!back.exists(), "{what}: nothing is made");
    }
    transcript.assert("backup-errors");
}
