//! `capstan why` and `capstan wait` on broken clusters.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Server, succeeded};
use crate::sample::{create, example, of_kind, simulated};
use crate::site::Site;
use crate::verbs::{on, on_dir};

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
    let answer = why(&server, "cloudy", "E-CS-SECRET");
    assert!(answer.contains("there is no Secret default/cloudstack-credentials"), "{answer}");
    for words in ["\nfixed by: user\n", "\nfix: ", "\nnext retry: "] {
        assert!(answer.contains(words), "{words:?} is not in: {answer}");
    }
    let file = format!("{}/../examples/cloudstack-cluster.yaml", env!("CARGO_MANIFEST_DIR"));
    let blocked = on(&server, &["up", "-f", &file, "--no-plan", "--patience", "1s"]);
    let stderr = String::from_utf8_lossy(&blocked.stderr).into_owned();
    assert_eq!(blocked.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("E-CS-SECRET blocks cluster cloudy; run `capstan why cloudy"), "{stderr}");
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
    let waited = on(&server, &["wait", "quick", "--timeout", "1s"]);
    let stderr = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("Cluster/quick is paused; run `capstan resume`"), "{stderr}");
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
    let late = on(&server, &["up", "-f", empty.to_str().unwrap(), "--no-plan", "--timeout", "1s"]);
    let stderr = String::from_utf8_lossy(&late.stderr).into_owned();
    assert_eq!(late.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cluster quick is not ready after 1s; run `capstan why quick"), "{stderr}");
    drop(server);
    let nobody = on_dir(dir.path(), &["up", "-f", empty.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert_eq!(nobody.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot be reached") && !stderr.contains("no kind"), "{stderr}");
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
