//! `capstan demo` from nothing to a cluster, killed on the way and continued.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use capstan_test_support::ports::free_port;
use serde_json::Value;

use crate::output::Transcript;
use crate::program::{capstan, succeeded};

/// A running demo; killed when dropped.
pub struct Demo {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Demo {
    pub fn start(dir: &Path, port: u16) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["demo", "--headless", "--speed", "200", "--listen", "127.0.0.1:0"])
            .args(["--endpoint-port", &port.to_string(), "--data-dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Reads until a line contains `words`; returns the lines until then.
    pub fn until(&mut self, words: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in self.lines.by_ref() {
            lines.push(line.unwrap());
            if lines.last().is_some_and(|line| line.contains(words)) {
                return lines;
            }
        }
        unreachable!("the demo ended without printing {words:?}: {lines:#?}")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ids of the tenant's virtual machines in the simulated cloud.
fn machines_in_the_cloud(dir: &Path) -> BTreeSet<String> {
    let cloud: Value = serde_json::from_slice(&std::fs::read(dir.join("cloud.json")).unwrap()).unwrap();
    let mut stream = TcpStream::connect(cloud["address"].as_str().unwrap()).unwrap();
    write!(stream, "GET /sim/leaks?account=capstan HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let leaks: Vec<Value> = serde_json::from_str(body).unwrap();
    let machines = leaks.iter().filter(|leak| leak["kind"] == "virtualmachine");
    machines.map(|leak| leak["id"].to_string()).collect()
}

#[test]
fn a_killed_demo_continues_without_duplicate_or_lost_machines() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = free_port().unwrap();
    let mut first = Demo::start(&data, port);
    let lines = first.until("Create ControlPlane: started 1/3");
    assert!(lines.iter().any(|line| line.ends_with("Create Network: done")), "{lines:#?}");
    drop(first);

    let mut second = Demo::start(&data, port);
    let lines = second.until("cluster demo is ready");
    assert!(lines.iter().any(|line| line.ends_with("Create: done")), "{lines:#?}");
    let at = data.to_str().unwrap();
    let names = succeeded(capstan(&["get", "machines", "-o", "name", "--data-dir", at]));
    assert_eq!(names.lines().count(), 6, "{names}");
    let before = machines_in_the_cloud(&data);
    assert_eq!(before.len(), 6);
    let mut transcript = Transcript::new(dir.path());
    transcript.run(&["demo", "--headless", "--listen", "127.0.0.1:0", "--data-dir", at]);
    transcript.assert("demo-in-use");
    drop(second);

    let mut third = Demo::start(&data, port);
    third.until("cluster demo is ready");
    assert_eq!(machines_in_the_cloud(&data), before);
    drop(third);
    // The cloud exits with its directory.
    std::fs::remove_dir_all(&data).unwrap();
}

#[test]
fn a_refused_manifest_is_not_applied_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let server = crate::program::Server::start(&dir.path().join("data"), &[]);
    let file = dir.path().join("cluster.yaml");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\n\
                apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c}\nspec: {paused: often}\n";
    std::fs::write(&file, text).unwrap();
    let (at, file) = (server.dir.to_str().unwrap(), file.to_str().unwrap());
    let mut transcript = Transcript::new(dir.path());
    transcript.run(&["up", "-f", file, "--data-dir", at]);
    transcript.assert("up-refused");
    std::fs::write(file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n").unwrap();
    let validated = succeeded(capstan(&["up", "-f", file, "--data-dir", at, "--dry-run"]));
    assert_eq!(validated, "1 objects would be applied\n");
}
