//! The audit log of a server, and `capstan audit verify`.

use http::Method;
use serde_json::{Value, json};

use crate::output::Transcript;
use crate::program::{Server, ask, succeeded};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_records_requests_and_a_changed_log_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, log) = (folder.path().join("data"), folder.path().join("audit.log"));
    let path = log.to_str().unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["one", "two"] {
        let server = Server::start(&dir, &["--api-only", "--audit-log-path", path]);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        assert_eq!(ask(&server.admin(), Method::POST, maps, &object).await.0, 201);
        // The server is killed: what it has answered must have reached the file.
        let recorded = || std::fs::read_to_string(&log).unwrap().matches("\"code\":201").count();
        let wanted = if name == "one" { 1 } else { 2 };
        for _ in 0..500 {
            if recorded() >= wanted {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let created: Vec<Value> = events.filter(|e| e["requestURI"] == maps && e["verb"] == "create").collect();
    assert_eq!(created.len(), 2, "{text}");
    assert_eq!(created[0]["user"]["groups"][0], "system:masters");
    assert_eq!(created[0]["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(created[0]["responseStatus"]["code"], 201);

    let mut transcript = Transcript::new(folder.path());
    let report = succeeded(transcript.run(&["audit", "verify", path]));
    let hash = report.lines().find_map(|line| line.strip_prefix("last hash: ")).unwrap().to_owned();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&log, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    transcript.note("without its last event");
    succeeded(transcript.run(&["audit", "verify", path]));
    transcript.run(&["audit", "verify", path, "--contains", &hash]);
    std::fs::write(&log, text.replacen("\"create\"", "\"get\"", 1)).unwrap();
    transcript.note("with another verb");
    transcript.run(&["audit", "verify", path]);
    transcript.assert("audit-verify");
}

#[test]
fn a_bad_policy_keeps_the_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n").unwrap();
    let log = folder.path().join("audit.log");
    let (policy, log) = (policy.to_str().unwrap(), log.to_str().unwrap());
    let start = ["server", "--in-memory", "--api-only", "--listen", "127.0.0.1:0"];
    let mut transcript = Transcript::new(folder.path());
    transcript.run(&[&start[..], &["--audit-log-path", log, "--audit-policy-file", policy]].concat());
    transcript.run(&[&start[..], &["--audit-policy-file", policy]].concat());
    transcript.assert("audit-policy-errors");
}
