//! An upgrade that cannot work is refused; one that fails is taken back.

use capstan_test_support::ports::free_port;
use serde_json::{Value, json};

use crate::demo::Demo;
use crate::output::Transcript;
use crate::program::succeeded;
use crate::verbs::on_dir;

fn paused_cluster(name: &str) -> Value {
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "paused": true,
            "controlPlaneRef": reference("controlplane", "KubeadmControlPlane"),
            "infrastructureRef": reference("infrastructure", "CloudStackCluster"),
        },
    })
}

#[test]
fn a_failed_upgrade_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = free_port().unwrap();
    let mut demo = Demo::start(&data, port);
    demo.until("cluster demo is ready");
    let machines = || -> Vec<(String, String)> {
        let list: Value =
            serde_json::from_str(&succeeded(on_dir(&data, &["get", "machines", "-o", "json"]))).unwrap();
        let items = list["items"].as_array().or(list.as_array()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut all: Vec<_> =
            items.iter().map(|it| (text(&it["metadata"]["name"]), text(&it["spec"]["version"]))).collect();
        all.sort();
        all
    };
    let before = machines();
    assert_eq!(before.len(), 6, "{before:?}");

    // However many other clusters there are: only this one is copied.
    let others: Vec<String> = (0..11).map(|n| paused_cluster(&format!("other-{n}")).to_string()).collect();
    let manifest = dir.path().join("others.json");
    std::fs::write(&manifest, others.join("\n---\n")).unwrap();
    succeeded(on_dir(&data, &["up", "-f", manifest.to_str().unwrap(), "--no-plan", "--no-wait"]));

    // The templates of the cluster hold images of v1.35.0.
    let upgrade = ["upgrade", "demo", "--to", "v1.36.0"];
    let mut transcript = Transcript::new(dir.path());
    transcript.run_on(&data, &upgrade);
    transcript.run_on(&data, &[&upgrade[..], &["--dry-run"]].concat());
    assert_eq!(machines(), before, "nothing was changed");

    succeeded(on_dir(&data, &[&upgrade[..], &["--no-plan"]].concat()));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    loop {
        let why = succeeded(on_dir(&data, &["why", "demo"]));
        if why.contains("E-CS-TEMPLATE") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{why}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    transcript.note("while the upgrade to v1.36.0 does not progress");
    transcript.run_on(&data, &["upgrade", "demo", "--to", "v1.34.0"]);

    let back = on_dir(&data, &["upgrade", "demo", "--to", "v1.35.0", "--wait", "--timeout", "5m"]);
    assert!(
        succeeded(back).starts_with("kubeadmcontrolplane/demo: version v1.36.0 → v1.35.0\n"),
        "the command line takes it back"
    );
    assert_eq!(machines(), before, "machines that never joined are gone, the others are the same");
    assert_eq!(succeeded(on_dir(&data, &["why", "demo"])), "Cluster/demo is ready\n");
    let doctor = succeeded(on_dir(&data, &["doctor"]));
    assert!(!doctor.contains("E-NOT-SETTLED"), "{doctor}");

    let templates = [
        "--control-plane-template",
        "demo-control-plane-v1.36.0",
        "--worker-template",
        "demo-workers-v1.36.0",
        "--wait",
        "--timeout",
        "5m",
    ];
    succeeded(on_dir(&data, &[&upgrade[..], &["--no-plan"], &templates].concat()));
    assert!(machines().iter().all(|(_, version)| version == "v1.36.0"), "{:?}", machines());
    transcript.note("after the upgrade to v1.36.0");
    transcript.run_on(&data, &["upgrade", "demo", "--to", "v1.35.0"]);
    transcript.assert("upgrade-refused");
    drop(demo);
    // The cloud exits with its directory.
    std::fs::remove_dir_all(&data).unwrap();
}
