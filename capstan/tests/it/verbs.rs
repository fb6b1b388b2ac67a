//! The commands about clusters: success and failure.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::output::Transcript;
use crate::program::{Server, ask, capstan, succeeded};
use crate::sample::{quick, simulated};
use crate::site::Site;
use crate::terminal::{END_OF_INPUT, Terminal};

/// Runs a command on a server.
pub fn on(server: &Server, arguments: &[&str]) -> Output {
    on_dir(&server.dir, arguments)
}

/// Runs a command on whatever server a data directory belongs to.
pub fn on_dir(dir: &Path, arguments: &[&str]) -> Output {
    let (verb, rest) = arguments.split_first().unwrap();
    capstan(&[&[*verb, "--data-dir", dir.to_str().unwrap()], rest].concat())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn get(server: &Server, path: &str) -> Value {
    ask(&server.admin(), Method::GET, path, &Value::Null).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_scaled_upgraded_and_deleted_from_the_command_line() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    quick(&server).await;
    let ready = on(&server, &["wait", "quick", "--timeout", "5m"]);
    assert_eq!(succeeded(ready), "quick is ready\n");

    let clusters = succeeded(on(&server, &["get", "clusters"]));
    let row: Vec<&str> = clusters.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(&row[..5], ["quick", "Available", "1/1", "1/1", "v1.36.0"], "{clusters}");
    let machines = succeeded(on(&server, &["get", "machine", "-o", "name"]));
    assert_eq!(machines.lines().filter(|line| line.starts_with("machine/quick-")).count(), 2, "{machines}");
    let one = succeeded(on(&server, &["get", "cluster", "quick", "-o", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&one).unwrap()["kind"], "Cluster");
    assert_eq!(succeeded(on(&server, &["why", "quick"])), "Cluster/quick is ready\n");
    assert!(succeeded(on(&server, &["events", "quick"])).contains("Cluster/quick"));
    let mut transcript = Transcript::new(dir.path());
    succeeded(transcript.run_on(dir.path(), &["doctor"]));

    let dry = succeeded(on(&server, &["scale", "quick", "--workers", "workers=2", "--dry-run"]));
    assert_eq!(dry, "machinedeployment/quick-workers: replicas 1 → 2 (dry run)\n");
    let deployment = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments/quick-workers";
    assert_eq!(get(&server, deployment).await["spec"]["replicas"], 1, "a dry run changes nothing");
    succeeded(on(
        &server,
        &["scale", "quick", "--workers", "workers=2", "--no-plan", "--wait", "--timeout", "5m"],
    ));
    let workers = get(&server, deployment).await;
    assert_eq!(workers["status"]["readyReplicas"], 2, "{workers}");

    let upgraded = succeeded(on(
        &server,
        &["upgrade", "quick", "--to", "v1.36.1", "--no-plan", "--wait", "--timeout", "5m"],
    ));
    assert!(upgraded.starts_with("kubeadmcontrolplane/quick: version v1.36.0 → v1.36.1\n"), "{upgraded}");
    let machines = get(&server, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines").await;
    for machine in machines["items"].as_array().unwrap() {
        assert_eq!(machine["spec"]["version"], "v1.36.1", "{machine}");
    }

    for verb in ["pause", "pause", "resume"] {
        succeeded(transcript.run_on(dir.path(), &[verb, "quick"]));
    }

    for (verb, what) in [("pause", "paused"), ("resume", "resumed")] {
        let dry = on(&server, &[verb, "quick", "--dry-run", "-o", "json"]);
        let actions: Value = serde_json::from_slice(&dry.stdout).unwrap();
        let expected = json!([{"object": "cluster/quick", "what": what, "dryRun": true}]);
        assert_eq!(actions, if verb == "pause" { expected } else { json!([]) }, "{verb}: {}", stderr(&dry));
    }
    let named =
        on(&server, &["scale", "quick", "--workers", "workers=3", "--no-plan", "--dry-run", "-o", "name"]);
    assert_eq!(succeeded(named), "machinedeployment/quick-workers\n");
    let yaml = on(&server, &["upgrade", "quick", "--to", "v1.36.2", "--no-plan", "--dry-run", "-o", "yaml"]);
    let actions: Value = serde_saphyr::from_str(&succeeded(yaml)).unwrap();
    assert_eq!(actions[0]["what"], "version v1.36.1 → v1.36.2", "{actions}");

    // Workers are deleted first.
    succeeded(transcript.run_on(dir.path(), &["delete", "quick", "--dry-run"]));
    let names = succeeded(on(&server, &["delete", "quick", "--dry-run", "-o", "name"]));
    assert!(names.lines().any(|name| name == "Cluster/quick") && !names.contains("would"), "{names}");
    let deleted = succeeded(on(&server, &["delete", "quick", "--wait", "--timeout", "5m"]));
    assert_eq!(deleted, "cluster quick is being deleted\nquick is deleted\n");
    transcript.note("after it was deleted");
    transcript.run_on(dir.path(), &["delete", "quick"]);
    transcript.assert("pause-and-delete");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_are_merged_and_bundles_have_no_secrets() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));

    let file = dir.path().join("merged");
    std::fs::copy(dir.path().join("admin.kubeconfig"), &file).unwrap();
    let mut transcript = Transcript::new(dir.path());
    let merge = ["kubeconfig", "quick", "--merge", file.to_str().unwrap()];
    succeeded(transcript.run_on(dir.path(), &[&merge[..], &["--dry-run"]].concat()));
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(config["contexts"].as_array().unwrap().len(), 1, "a dry run changes nothing");
    succeeded(transcript.run_on(dir.path(), &[&merge[..], &["--switch"]].concat()));
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(config["contexts"].as_array().unwrap().len(), 2, "the management cluster's is still there");
    let access = capstan_controller::Access::from_file(&file).unwrap();
    let dial = std::sync::Arc::new(capstan_controller::TcpDial);
    let workload = capstan_controller::Remote::new(access, dial, &capstan_controller::Env::system()).unwrap();
    let (status, nodes) = ask(&workload, Method::GET, "/api/v1/nodes", &Value::Null).await;
    assert_eq!((status, nodes["items"].as_array().map(Vec::len)), (200, Some(2)), "{nodes}");
    transcript.run_on(dir.path(), &["kubeconfig", "slow"]);

    // A secret that was copied into an annotation is redacted as well.
    let noted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "noted"}, "stringData": {"key": "open-sesame-open"}});
    ask(&server.admin(), Method::POST, "/api/v1/namespaces/default/secrets", &noted).await;
    let note = json!({"metadata": {"annotations": {"note": "it is open-sesame-open"}}});
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/quick?fieldManager=test";
    let patched = crate::program::patch(&server.admin(), path, &note).await;
    assert_eq!(patched, 200);
    let bundle = dir.path().join("bundle.tar.gz");
    succeeded(on(&server, &["support-bundle", "--to", bundle.to_str().unwrap()]));
    let text = unpacked(&bundle);
    assert!(text.contains("KubeadmControlPlane") && text.contains("name: noted"), "objects are in it");
    let secrets = get(&server, "/api/v1/namespaces/default/secrets").await;
    let mut values = 0;
    for secret in secrets["items"].as_array().unwrap() {
        for (field, value) in secret["data"].as_object().unwrap() {
            let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
            let lines = String::from_utf8_lossy(&bytes).into_owned();
            for line in
                lines.lines().map(str::trim).filter(|line| line.len() > 24 && !line.starts_with("---"))
            {
                assert!(!text.contains(line), "{field} of {}: {line}", secret["metadata"]["name"]);
                values += 1;
            }
            assert!(!text.contains(value.as_str().unwrap()) || value.as_str().unwrap().len() < 12, "{field}");
        }
    }
    assert!(values > 20 && !text.contains("open-sesame-open"), "{values} values were checked");
    transcript.run_on(dir.path(), &["support-bundle", "--to", bundle.to_str().unwrap()]);

    let machines = succeeded(on(&server, &["get", "machines", "-o", "name"]));
    let mut names = machines.lines().map(|line| line.strip_prefix("machine/").unwrap());
    let worker = names.find(|name| name.starts_with("quick-workers-")).unwrap();
    transcript.run_on(dir.path(), &["console", worker, "--simulator-url", "http://127.0.0.1:1"]);
    transcript.run_on(dir.path(), &["console", worker]);
    transcript.assert("kubeconfig-bundle-and-console");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_an_unanswered_question_is_on_its_own_line() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    quick(&server).await;
    for (keys, screen) in [(END_OF_INPUT, "\nnothing was deleted\n"), ("n\n", "n\nnothing was deleted\n")] {
        let arguments = ["delete", "quick", "--data-dir", server.dir.to_str().unwrap()];
        let mut terminal = Terminal::start(&[], &[], &arguments);
        let question = "delete cluster quick in namespace default? [y/N] ";
        terminal.answer(question, keys);
        assert_eq!(terminal.end(), (1, format!("{question}{screen}")));
    }
}

fn unpacked(bundle: &Path) -> String {
    let file = std::fs::File::open(bundle).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut text = String::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        text.push_str(&format!("\n# {}\n", entry.path().unwrap().display()));
        entry.read_to_string(&mut text).unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_completions_are_printed() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    let version: Value = serde_json::from_str(&succeeded(on(&server, &["version", "-o", "json"]))).unwrap();
    assert!(version["server"].as_str().unwrap().contains("capstan"), "{version}");
    assert!(succeeded(capstan(&["completion", "bash"])).contains("support-bundle"));
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_a_restored_server_are_not_reconciled_until_they_are_resumed() {
    let dir = TempDir::new().unwrap();
    let (data, back) = (dir.path().join("data"), dir.path().join("back"));
    let site = Site::start();
    let server = Server::start(&data, &["--simulator-url", &site.url]);
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    assert_eq!(succeeded(on(&server, &["orphans"])), "", "records and nodes are the same");
    let machines = succeeded(on(&server, &["get", "machines", "-o", "name"]));
    let machine = machines.lines().next().unwrap().strip_prefix("machine/").unwrap();
    // The address of the site is the server's.
    let console = succeeded(on(&server, &["console", machine]));
    assert!(console.lines().count() > 3 && console.contains("cloud-init"), "{console}");
    let file = dir.path().join("backup");
    let (file, back_text) = (file.to_str().unwrap(), back.to_str().unwrap());
    succeeded(on(&server, &["backup", "--to", file]));
    succeeded(on(&server, &["scale", "quick", "--workers", "workers=2", "--wait", "--timeout", "5m"]));
    let before = site.machines().await;
    assert_eq!(before.len(), 3);
    drop(server);
    let key = data.with_extension("key");
    let restore =
        ["restore", "--from", file, "--data-dir", back_text, "--encryption-key-file", key.to_str().unwrap()];
    let mut transcript = Transcript::new(dir.path());
    succeeded(transcript.run(&[&restore[..], &["--dry-run"]].concat()));
    assert!(!back.exists());
    succeeded(transcript.run(&restore));
    let server = Server::start(&back, &["--simulator-url", &site.url]);
    transcript.run_on(&back, &["orphans", "-A"]);
    transcript.assert("restore-and-orphans");
    assert_eq!(site.machines().await, before, "no machine was touched");
    assert_eq!(succeeded(on(&server, &["resume", "--restored"])), "cluster default/quick resumed\n");
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    assert_eq!(site.machines().await, before, "none was deleted and none replaced");
    assert_eq!(succeeded(on(&server, &["resume", "--restored"])), "no cluster was paused by a restore\n");
}

#[test]
fn events_are_followed_while_the_server_is_away() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    let mut follow = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["events", "--follow", "--data-dir", dir.path().to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "no events; servers delete them after an hour");
    drop(server);
    let line = lines.next().unwrap().unwrap();
    assert!(line.starts_with("the server does not answer; trying again: "), "{line}");
    assert!(follow.try_wait().unwrap().is_none(), "it goes on");
    follow.kill().unwrap();
    follow.wait().unwrap();
}
