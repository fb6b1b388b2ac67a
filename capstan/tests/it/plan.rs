//! `capstan plan` on a running server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::output::Transcript;
use crate::program::{Server, ask, succeeded};
use crate::sample::{example, of_kind, quick, simulated};
use crate::verbs::on;

pub fn written(dir: &Path, name: &str, objects: &[Value]) -> PathBuf {
    let path = dir.join(name);
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

/// A running `capstan sim cloudstack`; killed when dropped.
struct Cloud {
    process: Child,
    _stdout: BufReader<ChildStdout>,
    /// Fields of the credentials Secret.
    keys: Value,
}

impl Cloud {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["sim", "cloudstack", "--listen", "127.0.0.1:0", "--endpoint-port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut after = |word: &str| loop {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "no {word}");
            if let Some((_, rest)) = line.split_once(word) {
                break rest.split([';', '\n']).next().unwrap().trim().to_owned();
            }
        };
        let (url, key, secret) = (after("answers on "), after("api-key: "), after("secret-key: "));
        Self { process, keys: json!({"api-url": url, "api-key": key, "secret-key": secret}), _stdout: stdout }
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_checks_credentials_images_and_quota() {
    let dir = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let server = Server::start(data.path(), &["--in-memory"]);
    let cloud = Cloud::start();
    let keys = |fields: &Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloudstack-credentials"},
            "stringData": fields})
    };
    let mut objects = example("demo.yaml");
    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["replicas"] = 1.into();
    of_kind(&mut objects, "MachineDeployment")["spec"]["replicas"] = 1.into();
    let plan = |objects: &[Value]| -> Value {
        let output = on(
            &server,
            &["plan", "-f", written(dir.path(), "p.json", objects).to_str().unwrap(), "-o", "json"],
        );
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let warns = |plan: &Value, words: &[&str]| {
        let warnings: Vec<&str> =
            plan["warnings"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        for word in words {
            assert!(warnings.iter().any(|it| it.contains(word)), "{word:?} is not in {warnings:#?}");
        }
    };

    let without = plan(&objects);
    warns(&without, &["E-CS-SECRET", "no resource set installs a CNI"]);
    assert!(without["room"][0]["unknown"].as_str().unwrap().contains("E-CS-SECRET"), "{without:#}");
    let mut wrong = cloud.keys.clone();
    wrong["secret-key"] = "nothing".into();
    warns(&plan(&[&[keys(&wrong)], &objects[..]].concat()), &["E-CS-CREDENTIALS"]);

    // The credentials are in the manifest, not on the server.
    objects.insert(0, keys(&cloud.keys));
    let good = plan(&objects);
    assert_eq!(good["warnings"].as_array().unwrap().len(), 1, "only the CNI: {good:#}");
    assert_eq!((&good["peak"]["cpus"], &good["peak"]["memoryMiB"]), (&4.into(), &4096.into()), "{good:#}");
    assert_eq!(good["room"][0]["needs"]["machines"], 2, "{good:#}");
    assert_eq!(
        (&good["room"][0]["left"]["machines"], &good["room"][0]["left"]["cpus"]),
        (&"20".into(), &"40".into())
    );

    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] =
        "demo-control-plane-v1.36.0".into();
    let workers = objects.iter_mut().find(|it| it["metadata"]["name"] == "demo-workers-v1.35.0").unwrap();
    workers["spec"]["template"]["spec"]["template"]["name"] = "no-such-image".into();
    workers["spec"]["template"]["spec"]["offering"]["name"] = "Custom Instance".into();
    workers["spec"]["template"]["spec"]["details"] =
        json!({"cpuNumber": "39", "cpuSpeed": "1000", "memory": "1024"});
    warns(
        &plan(&objects),
        &[
            "KubeadmControlPlane/demo: E-CS-TEMPLATE: ",
            "MachineDeployment/demo-workers: E-CS-NOTFOUND: there is no template \"no-such-image\"",
            "E-CS-QUOTA: quota exceeded for the CloudStack account of Secret default/cloudstack-credentials: 41 CPUs needed, \
             40 left",
        ],
    );
}

pub async fn machines(server: &Server) -> Vec<String> {
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
    let list = ask(&server.admin(), Method::GET, path, &Value::Null).await.1;
    let names = list["items"].as_array().unwrap().iter();
    names.map(|machine| machine["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_previews_a_manifest_and_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let server = simulated(data.path());
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    let before = machines(&server).await;
    let mut objects = example("sim-cluster.yaml");

    let mut transcript = Transcript::new(dir.path());
    let same = written(dir.path(), "same.json", &objects);
    transcript.run_on(data.path(), &["plan", "-f", same.to_str().unwrap()]);

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
    transcript.run_on(data.path(), &["plan", "-f", scaled.to_str().unwrap()]);

    let workers = on(&server, &["plan", "--delete", "md/quick-workers", "-o", "json"]);
    assert_eq!(workers.status.code(), Some(2), "{workers:?}");
    let plan: Value = serde_json::from_slice(&workers.stdout).unwrap();
    assert_eq!(plan["changes"][0]["object"], "MachineDeployment/quick-workers", "{plan:#}");
    assert_eq!(plan["changes"][0]["becomes"], "deleted");
    assert_eq!((&plan["summary"][0]["deleted"], plan["summary"].as_array().unwrap().len()), (&1.into(), 1));
    transcript.run_on(data.path(), &["plan", "--delete", "md/nobody"]);

    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["replicas"] = 2.into();
    let wrong = written(dir.path(), "wrong.json", &objects);
    transcript.run_on(data.path(), &["plan", "-f", wrong.to_str().unwrap()]);

    assert_eq!(machines(&server).await, before, "a plan changes nothing");
    // `up` prints the same plan and then carries it out.
    transcript.run_up(data.path(), &["-f", scaled.to_str().unwrap(), "--timeout", "5m"]);
    transcript.assert("plan");
    assert_eq!(machines(&server).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_for_a_cluster_that_boots_does_not_claim_that_it_fails() {
    let data = TempDir::new().unwrap();
    let dir = TempDir::new().unwrap();
    // Machines take their time here.
    let server = Server::start(data.path(), &["--simulator", "--simulator-port", "0"]);
    quick(&server).await;
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/simmachines";
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let list = ask(&server.admin(), Method::GET, path, &Value::Null).await.1;
        let mut machines = list["items"].as_array().into_iter().flatten();
        if machines.any(|it| it["status"]["initialization"]["provisioned"] == true) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{list}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let same = written(dir.path(), "same.json", &example("sim-cluster.yaml"));
    let plan = on(&server, &["plan", "-f", same.to_str().unwrap(), "-o", "json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["warnings"], json!([]), "{plan:#}");
    assert_eq!(plan["changes"], json!([]), "{plan:#}");
}
