//! The program with a fourth cloud: what every command knows of it comes from its plug-in.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use capstan_controller::{Access, Env, Remote, TcpDial, Transport as _};
use http::Request;

/// The sample cluster of the simulator, in a harbour.
fn manifest(directory: &str, berths: usize) -> String {
    let sample = include_str!("../../../../examples/sim-cluster.yaml").replace("kind: Sim", "kind: Toy");
    let sample = sample.replace("      cpus: 2\n      memoryMiB: 4096\n", "      {}\n");
    let harbour = format!(
        "kind: ToyCluster\nmetadata:\n  name: quick\nspec:\n  directory: {directory}\n  berths: {berths}\n---"
    );
    sample.replacen("kind: ToyCluster\nmetadata:\n  name: quick\n---", &harbour, 1)
}

struct Server {
    process: Child,
    /// Kept open: the server says more than what is read.
    _stdout: BufReader<ChildStdout>,
    kubeconfig: String,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan-toy"))
            .args(["server", "--toy", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let mut stdout = BufReader::new(process.stdout.take().expect("stdout"));
        stdout.read_line(&mut String::new()).expect("a line");
        let kubeconfig = dir.join("admin.kubeconfig").display().to_string();
        Self { process, _stdout: stdout, kubeconfig }
    }

    /// Exit code and everything said.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_capstan-toy"))
            .args(arguments)
            .args(["--kubeconfig", &self.kubeconfig])
            .output()
            .expect("an end");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code().unwrap_or(-1), said.join(""))
    }

    fn metrics(&self) -> String {
        let access = Access::from_file(Path::new(&self.kubeconfig)).expect("a kubeconfig");
        let asked = async {
            let remote = Remote::new(access, Arc::new(TcpDial), &Env::system()).expect("a way");
            let request = Request::get("/metrics").body(Bytes::new()).expect("a request");
            let mut body = remote.send(request).await.expect("an answer").into_body();
            let mut text = Vec::new();
            while let Some(piece) = body.next().await {
                text.extend_from_slice(&piece.expect("a piece"));
            }
            String::from_utf8(text).expect("text")
        };
        tokio::runtime::Runtime::new().expect("a runtime").block_on(asked)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_cloud_is_a_line_in_the_list_and_every_command_knows_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"));
    let harbour = dir.path().join("harbour");
    let file = dir.path().join("cluster.yaml").display().to_string();
    std::fs::write(&file, manifest(&harbour.display().to_string(), 1)).expect("written");

    let (code, plan) = server.run(&["plan", "-f", &file]);
    assert_eq!(code, 2, "{plan}");
    assert!(
        plan.contains("E-TOY-FULL: quota exceeded for harbour quick: 2 machines needed, 1 left"),
        "{plan}"
    );

    let roomy = dir.path().join("roomy.yaml").display().to_string();
    std::fs::write(&roomy, manifest(&harbour.display().to_string(), 9)).expect("written");
    let (code, plan) = server.run(&["plan", "-f", &roomy]);
    assert_eq!(code, 2, "something changes: {plan}");
    assert!(plan.contains("quota of harbour quick: 2 of 9 free machines"), "{plan}");
    assert!(!plan.contains("E-TOY-FULL"), "{plan}");

    let (code, said) = server.run(&["up", "--no-plan", "--no-wait", "-f", &file]);
    assert_eq!(code, 0, "{said}");
    let (code, said) =
        server.run(&["wait", "quick", "--for", "condition=InfrastructureReady", "--timeout", "60s"]);
    assert_eq!(code, 0, "{said}");

    let (_, said) = server.run(&["doctor"]);
    let listed = said.lines().any(|line| line.contains("providers: CloudStack, ") && line.ends_with(", Toy"));
    assert!(said.contains("harbour quick is ours") && listed, "{said}");

    std::fs::write(harbour.join("stray"), "").expect("written");
    let (code, said) = server.run(&["orphans"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("harbour quick Berth/stray: no ToyMachine stands for it"), "{said}");
    let (code, said) = server.run(&["orphans", "--delete", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 berth deleted") && !harbour.join("stray").exists(), "{said}");

    let metrics = server.metrics();
    assert!(metrics.contains("\ntoy_harbours_total 1\n"), "the provider's");
    assert!(metrics.contains("controller=\"toycluster\""), "its controller's");
    assert!(metrics.contains("apiserver_request_total"), "the server's");
}

#[test]
fn its_error_codes_are_explained_and_its_flags_are_in_the_help() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(&dir.path().join("data"));
    let taken = dir.path().join("taken");
    std::fs::write(&taken, "a file").expect("written");
    let file = dir.path().join("cluster.yaml").display().to_string();
    std::fs::write(&file, manifest(&taken.display().to_string(), 9)).expect("written");
    let (code, said) = server.run(&["up", "--no-plan", "--patience", "1s", "--lines", "-f", &file]);
    assert_eq!(code, 4, "{said}");
    let (_, why) = server.run(&["why", "quick"]);
    assert!(why.contains("E-TOY-HARBOUR: a harbour cannot be made"), "{why}");
    assert!(why.contains("fix: correct spec.directory of the ToyCluster"), "{why}");

    let help = Command::new(env!("CARGO_BIN_EXE_capstan-toy")).args(["manager", "--help"]).output();
    let help = String::from_utf8(help.expect("help").stdout).expect("text");
    for flag in ["--toy", "--cloudstack", "--kvm", "--simulator"] {
        assert!(help.contains(flag), "{flag}");
    }
}
