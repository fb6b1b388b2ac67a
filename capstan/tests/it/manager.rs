//! `capstan manager` against an API server that is not its own: `capstan server --api-only`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use capstan_controller::Remote;
use capstan_test_support::ports::free_port;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Server, ask};

/// A running manager; killed when dropped.
struct Manager {
    process: Child,
    /// Kept open: the manager prints more than the test reads.
    _stdout: BufReader<ChildStdout>,
}

impl Manager {
    /// Starts it and waits until it is ready.
    fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::start_as(&server.dir.join("admin.kubeconfig"), arguments, Stdio::inherit())
    }

    fn start_as(kubeconfig: &Path, arguments: &[&str], stderr: Stdio) -> Self {
        let port = free_port().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["manager", "--health-address", "127.0.0.1:0", "--webhook-port", &port.to_string()])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        assert!(first.contains("capstan manages clusters"), "{first:?}");
        Self { process, _stdout: stdout }
    }

    fn stop(mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn until(what: &str, client: &Remote, path: &str, holds: impl Fn(u16, &Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (code, body) = ask(client, Method::GET, path, &Value::Null).await;
        if holds(code, &body) {
            return body;
        }
        assert!(Instant::now() < deadline, "{what}: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn machine_deployment(version: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": {"name": "d"},
        "spec": {
            "clusterName": "c", "replicas": 1, "selector": {},
            "template": {"spec": {
                "clusterName": "c", "version": version, "bootstrap": {"dataSecretName": "s"},
                "infrastructureRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "SimMachineTemplate", "name": "t",
                },
            }},
        },
    })
}

#[tokio::test]
async fn the_webhooks_of_the_manager_default_validate_and_convert() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), &["--api-only"]);
    let _manager = Manager::start(&server, &["--install-crds", "--leader-elect=false"]);
    let client = server.admin();
    let old = "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machinedeployments";
    let (code, refused) = ask(&client, Method::POST, old, &machine_deployment("latest")).await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with("admission webhook \"validate.machinedeployment.cluster.x-k8s.io\" denied"),
        "{message}"
    );
    let (code, created) = ask(&client, Method::POST, old, &machine_deployment("1.34.0")).await;
    assert_eq!(code, 201, "{created}");
    let new = old.replace("v1beta1", "v1beta2");
    let (_, stored) = ask(&client, Method::GET, &format!("{new}/d"), &Value::Null).await;
    assert_eq!(stored["spec"]["template"]["spec"]["version"], "v1.34.0");
    assert_eq!(
        stored["spec"]["template"]["spec"]["infrastructureRef"]["apiGroup"],
        "infrastructure.cluster.x-k8s.io"
    );
}

#[tokio::test]
async fn one_of_two_managers_leads_and_the_other_takes_over() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), &["--api-only"]);
    let client = server.admin();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/capstan-system/leases/capstan";
    let holder = |body: &Value| body["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    // Each has its own port, which shows whose webhooks the server calls.
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/capstan";
    let called = |body: &Value| body["webhooks"][0]["clientConfig"]["url"].clone();
    let first = Manager::start(&server, &["--install-crds"]);
    let led =
        until("the first leads", &client, lease, |code, body| code == 200 && !holder(body).is_empty()).await;
    let (_, registered) = ask(&client, Method::GET, webhooks, &Value::Null).await;
    assert!(called(&registered).is_string(), "{registered}");
    let _second = Manager::start(&server, &["--install-crds"]);
    let (_, meanwhile) = ask(&client, Method::GET, lease, &Value::Null).await;
    assert_eq!(holder(&meanwhile), holder(&led));
    let (_, meanwhile) = ask(&client, Method::GET, webhooks, &Value::Null).await;
    assert_eq!(called(&meanwhile), called(&registered), "a standby is not called");
    first.stop();
    let taken = |_: u16, body: &Value| !holder(body).is_empty() && holder(body) != holder(&led);
    until("the second leads", &client, lease, taken).await;
    let moved = |_: u16, body: &Value| called(body).is_string() && called(body) != called(&registered);
    until("the second is called", &client, webhooks, moved).await;
}

/// The documents of a file in the repository.
fn documents(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(file);
    let text = std::fs::read_to_string(path).unwrap().replace("@VERSION@", "test");
    serde_saphyr::from_multiple(&text).unwrap()
}

fn path_of(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap();
    let root = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let plural = plural.replace("classs", "classes").replace("policys", "policies");
    let cluster_wide = ["namespaces", "clusterroles", "clusterrolebindings"].contains(&plural.as_str());
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    if cluster_wide { format!("{root}/{plural}") } else { format!("{root}/namespaces/{namespace}/{plural}") }
}

/// The server decides by RBAC, as kube-apiserver does: what the role lacks is refused, logged and fails the life.
#[tokio::test]
async fn a_cluster_lives_and_dies_with_the_rights_of_the_packaged_role() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), &["--api-only"]);
    let admin = server.admin();
    let wanted = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"];
    for object in documents("packaging/manifests/manager.yaml") {
        if wanted.contains(&object["kind"].as_str().unwrap_or_default()) {
            let (code, created) = ask(&admin, Method::POST, &path_of(&object), &object).await;
            assert_eq!(code, 201, "{created}");
        }
    }
    let token = "/api/v1/namespaces/capstan-system/serviceaccounts/capstan/token";
    let (code, issued) =
        ask(&admin, Method::POST, token, &json!({"spec": {"expirationSeconds": 3600}})).await;
    assert_eq!(code, 201, "{issued}");
    let kubeconfig = std::fs::read_to_string(server.dir.join("admin.kubeconfig")).unwrap();
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": issued["status"]["token"]});
    let path = dir.path().join("manager.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();

    let log = dir.path().join("manager.log");
    let simulator_port = format!("--simulator-port={}", free_port().unwrap());
    let arguments = ["--install-crds", "--simulator", "--simulator-instant", &simulator_port];
    let stderr = std::fs::File::create(&log).unwrap();
    let manager = Manager::start_as(&path, &arguments, stderr.into());
    for object in ["examples/cni.yaml", "examples/sim-cluster.yaml"].into_iter().flat_map(documents) {
        let (code, created) = ask(&admin, Method::POST, &path_of(&object), &object).await;
        assert_eq!(code, 201, "{created}");
    }
    let cluster = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/quick";
    let available = |_: u16, body: &Value| {
        let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|it| it["type"] == "Available" && it["status"] == "True")
    };
    until("the cluster is available", &admin, cluster, available).await;
    assert_eq!(ask(&admin, Method::DELETE, cluster, &Value::Null).await.0, 200);
    until("the cluster is gone", &admin, cluster, |code, _| code == 404).await;
    manager.stop();
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("forbidden"), "{log}");
}
