//! `capstan why` and `capstan wait` on clusters that were broken on purpose.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Server, succeeded};
use crate::sample::{create, example, of_kind, simulated};
use crate::verbs::{on, on_dir};

/// Asks why until the answer holds what it should, and says it.
fn why(server: &Server, cluster: &str, expected: &str) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    loop {
        let answer = succeeded(on(server, &["why", cluster]));
        if answer.contains(expected) {
            return answer;
        }
        assert!(std::time::Instant::now() < deadline, "{expected:?} is not in: {answer}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

async fn broken(server: &Server, file: &str, breaking: impl FnOnce(&mut [Value])) {
    let mut objects = example(file);
    breaking(&mut objects);
    create(server, &objects).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_template_is_not_there() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        let control_plane = of_kind(objects, "KubeadmControlPlane");
        control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] = "nowhere".into();
    })
    .await;
    let answer = why(&server, "quick", "is blocked because: * SimMachineTemplate does not exist");
    assert!(answer.contains("\nKubeadmControlPlane/quick failed\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_never_gets_past_its_boot() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "SimMachineTemplate")["spec"]["template"]["spec"]["faults"] =
            json!([{"type": "DiskFull"}]);
    })
    .await;
    let answer = why(&server, "quick", "the console ends with");
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("Cluster/quick"), "{answer}");
    assert!(lines[1].starts_with("└─ because KubeadmControlPlane/quick"), "{answer}");
    assert!(lines[2].starts_with("   └─ because Machine/quick-"), "{answer}");
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    assert_eq!(
        waited.status.code(),
        Some(4),
        "what failed blocks: {}",
        String::from_utf8_lossy(&waited.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_to_the_cloud_are_not_there() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "cloudstack-cluster.yaml", |_| {}).await;
    let answer = why(&server, "cloudy", "E-CS-SECRET");
    assert!(answer.contains("there is no Secret default/cloudstack-credentials"), "{answer}");
    for words in ["\nwhose turn: user\n", "\nmend: ", "\nnext try: "] {
        assert!(answer.contains(words), "{words:?} is not in: {answer}");
    }
    let file = format!("{}/../examples/cloudstack-cluster.yaml", env!("CARGO_MANIFEST_DIR"));
    let blocked = on(&server, &["up", "-f", &file, "--no-plan", "--patience", "1s"]);
    let said = String::from_utf8_lossy(&blocked.stderr).into_owned();
    assert_eq!(blocked.status.code(), Some(4), "{said}");
    assert!(said.contains("E-CS-SECRET stands in the way of cluster cloudy; `capstan why cloudy"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_waits_for_somebody() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "Cluster")["spec"]["paused"] = true.into()
    })
    .await;
    why(&server, "quick", "Paused");
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(4), "{said}");
    assert!(said.contains("Cluster/quick is paused: `capstan resume` has controllers go on"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_slow_is_timed_out_and_not_blocked() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "SimMachineTemplate")["spec"]["template"]["spec"]["faults"] =
            json!([{"type": "NeverBoots"}]);
    })
    .await;
    why(&server, "quick", "SimMachine/quick-");
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(3), "{said}");
    assert!(said.contains("quick is not ready after 1s"), "{said}");
    let empty = dir.path().join("nothing.yaml");
    let cluster = of_kind(&mut example("sim-cluster.yaml"), "Cluster").to_string();
    std::fs::write(&empty, cluster).unwrap();
    let late = on(&server, &["up", "-f", empty.to_str().unwrap(), "--no-plan", "--timeout", "1s"]);
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert_eq!(late.status.code(), Some(3), "{said}");
    assert!(said.contains("cluster quick is not ready after 1s; `capstan why quick"), "{said}");
    drop(server);
    let nobody = on_dir(dir.path(), &["up", "-f", empty.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert_eq!(nobody.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot be reached") && !said.contains("no kind"), "{said}");
}
