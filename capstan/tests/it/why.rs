//! `capstan why` and `capstan wait` on broken clusters.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::output::Transcript;
use crate::program::{Server, succeeded};
use crate::sample::{create, example, of_kind, simulated};
use crate::site::Site;
use crate::verbs::on;

/// Runs `why` until the answer contains `expected`, and returns it.
pub fn why(server: &Server, cluster: &str, expected: &str) -> String {
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
async fn a_missing_machine_template() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        let control_plane = of_kind(objects, "KubeadmControlPlane");
        control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] = "nowhere".into();
    })
    .await;
    let answer = why(&server, "quick", "is blocked because: SimMachineTemplate does not exist");
    // In the first moments the MachineDeployment may be listed as well.
    assert!(answer.starts_with("Cluster/quick is not ready: "), "{answer}");
    assert!(
        answer.lines().take(3).any(|line| line.ends_with("KubeadmControlPlane/quick failed")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_fails_to_boot() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "SimMachineTemplate")["spec"]["template"]["spec"]["faults"] =
            json!([{"type": "DiskFull"}]);
    })
    .await;
    let answer = why(&server, "quick", "the console ends with");
    for chain in
        ["\nCluster/quick: ", "\n└─ because KubeadmControlPlane/quick", "\n   └─ because Machine/quick-"]
    {
        assert!(answer.contains(chain), "{chain:?} is not in: {answer}");
    }
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    assert_eq!(
        waited.status.code(),
        Some(4),
        "a failure blocks: {}",
        String::from_utf8_lossy(&waited.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "cloudstack-cluster.yaml", |_| {}).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cloudstack-cluster.yaml");
    let mut transcript = Transcript::new(dir.path()).with_dir(Path::new(file), "cloudstack-cluster.yaml");
    why(&server, "cloudy", "E-CS-SECRET");
    let mut answer = on(&server, &["why", "cloudy"]);
    // Which conditions lead to it changes while other objects of the cluster are created.
    let conditions = String::from_utf8_lossy(&answer.stdout).find("\nCluster/cloudy: ").unwrap();
    answer.stdout.truncate(conditions);
    transcript.add(&["why", "cloudy"], answer);
    transcript.run_up(dir.path(), &["-f", file, "--no-plan", "--patience", "1s"]);
    transcript.assert("missing-credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_is_blocked() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "Cluster")["spec"]["paused"] = true.into()
    })
    .await;
    why(&server, "quick", "Paused");
    let mut transcript = Transcript::new(dir.path());
    transcript.run_on(dir.path(), &["wait", "quick", "--timeout", "1s"]);
    transcript.assert("wait-for-paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_cluster_times_out_and_is_not_blocked() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "SimMachineTemplate")["spec"]["template"]["spec"]["faults"] =
            json!([{"type": "NeverBoots"}]);
    })
    .await;
    why(&server, "quick", "SimMachine/quick-");
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    let stderr = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("quick is not ready after 1s"), "{stderr}");
    let empty = dir.path().join("nothing.yaml");
    let cluster = of_kind(&mut example("sim-cluster.yaml"), "Cluster").to_string();
    std::fs::write(&empty, cluster).unwrap();
    let mut transcript = Transcript::new(dir.path());
    transcript.run_up(dir.path(), &["-f", empty.to_str().unwrap(), "--no-plan", "--timeout", "1s"]);
    drop(server);
    transcript.note("after the server was stopped");
    transcript.run_on(dir.path(), &["up", "-f", empty.to_str().unwrap()]);
    transcript.assert("up-not-ready");
}

/// What is printed last is shown where the cause is not known otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_boots_for_long() {
    let dir = TempDir::new().unwrap();
    let site = Site::start();
    let server = Server::start(&dir.path().join("data"), &["--simulator-url", &site.url]);
    broken(&server, "sim-cluster.yaml", |objects| {
        of_kind(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]["preKubeadmCommands"] =
            json!(["sleep 600"]);
    })
    .await;
    let answer = why(&server, "quick", "running 'modules:final'");
    let line = answer.lines().find_map(|line| line.strip_prefix("its console ends with: ")).unwrap();
    let machines = succeeded(on(&server, &["get", "machines", "-o", "name"]));
    let machine = machines.lines().next().unwrap().strip_prefix("machine/").unwrap();
    let console = succeeded(on(&server, &["console", machine]));
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(line), words(console.lines().last().unwrap()));
}
