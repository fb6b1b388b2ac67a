//! `capstan plan` on a running server: it says what then happens, and changes nothing itself.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Server, ask, failed, succeeded};
use crate::sample::{example, of_kind, quick, simulated};
use crate::verbs::on;

fn written(dir: &Path, name: &str, objects: &[Value]) -> PathBuf {
    let path = dir.join(name);
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

async fn machines(server: &Server) -> Vec<String> {
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
    let list = ask(&server.admin(), Method::GET, path, &Value::Null).await.1;
    let names = list["items"].as_array().unwrap().iter();
    names.map(|machine| machine["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_a_manifest_does_and_does_nothing() {
    let dir = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let server = simulated(data.path());
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    let before = machines(&server).await;
    let mut objects = example("sim-cluster.yaml");

    let same = written(dir.path(), "same.json", &objects);
    let nothing = on(&server, &["plan", "-f", same.to_str().unwrap()]);
    assert_eq!(nothing.status.code(), Some(0), "{nothing:?}");
    assert_eq!(succeeded(nothing), "nothing changes\n");

    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["version"] = "v1.36.1".into();
    let upgraded = written(dir.path(), "upgraded.json", &objects);
    let upgrade = on(&server, &["plan", "-f", upgraded.to_str().unwrap(), "-o", "json"]);
    assert_eq!(upgrade.status.code(), Some(2), "{upgrade:?}");
    let plan: Value = serde_json::from_slice(&upgrade.stdout).unwrap();
    assert_eq!(plan["changes"][0]["object"], "KubeadmControlPlane/quick", "{plan:#}");
    assert_eq!(plan["changes"][0]["fields"][0], "spec.version: v1.36.0 → v1.36.1");
    assert_eq!(plan["summary"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!(plan["summary"][0]["of"], "KubeadmControlPlane/quick");
    assert_eq!(plan["summary"][0]["replaced"], 1);
    assert_eq!(plan["warnings"], serde_json::json!([]));

    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["version"] = "v1.36.0".into();
    of_kind(&mut objects, "MachineDeployment")["spec"]["replicas"] = 3.into();
    let scaled = written(dir.path(), "scaled.json", &objects);
    let scale = on(&server, &["plan", "-f", scaled.to_str().unwrap()]);
    assert_eq!(scale.status.code(), Some(2), "{scale:?}");
    let text = String::from_utf8(scale.stdout).unwrap();
    assert!(text.contains("MachineDeployment/quick-workers: spec.replicas: 1 → 3"), "{text}");
    assert!(text.contains("create  new machine 2 of MachineDeployment/quick-workers, v1.36.0"), "{text}");
    assert!(text.contains("at most 4 machines at a time, 2 more than now (8 CPUs, 16384 MiB)"), "{text}");

    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["replicas"] = 2.into();
    let wrong = written(dir.path(), "wrong.json", &objects);
    let refused = on(&server, &["plan", "-f", wrong.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(failed(refused).contains("spec.replicas"));

    assert_eq!(machines(&server).await, before, "a plan changes nothing");
    // What was planned is said by `up` too, and then it happens.
    let up = on(&server, &["up", "-f", scaled.to_str().unwrap(), "--plan", "--timeout", "5m"]);
    assert!(String::from_utf8_lossy(&up.stderr).contains("MachineDeployment/quick-workers: 2 created"));
    succeeded(up);
    assert_eq!(machines(&server).await.len(), 4);
}
