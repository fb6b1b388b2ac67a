//! Simulated clouds whose machines boot fast, and clusters on CloudStack.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use capstan_test_support::ports::free_port;
use serde_json::{Value, json};

use crate::program::{Server, capstan, succeeded};
use crate::sample::{create, example, of_kind};

/// A running cloud; killed when dropped.
pub struct FastCloud {
    process: Child,
    address: String,
    /// Fields of the credentials Secret.
    pub keys: Value,
    /// Port of the API servers of clusters.
    pub endpoint_port: u16,
}

impl FastCloud {
    /// Starts a CloudStack with its files in a directory, which must exist.
    pub fn start(dir: &Path) -> Self {
        Self::of("cloudstack", dir)
    }

    /// Starts a cloud by its name in `capstan sim`.
    pub fn of(cloud: &str, dir: &Path) -> Self {
        let endpoint_port = free_port().unwrap();
        let log = dir.join("cloud.log");
        let mut process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .args(["demo-cloud", "--cloud", cloud])
            .args(["--speed", "200", "--kubernetes", "v1.35.0,v1.36.0"])
            .args(["--endpoint-port", &endpoint_port.to_string(), "--data-dir"])
            .arg(dir)
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let file = dir.join("cloud.json");
        let deadline = Instant::now() + Duration::from_secs(60);
        let cloud: Value = loop {
            let read = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let Some(cloud) = read {
                break cloud;
            }
            let waits = process.try_wait().unwrap().is_none() && Instant::now() < deadline;
            assert!(waits, "the cloud does not start: {}", std::fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        };
        let address = cloud["address"].as_str().unwrap().to_owned();
        Self { process, address, keys: cloud["credentials"].clone(), endpoint_port }
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// What the tenant has, as `kind id`.
    pub fn resources(&self) -> Vec<String> {
        let leaks = self.get("/sim/leaks?account=capstan");
        let all = leaks.as_array().unwrap().iter();
        all.map(|leak| format!("{} {}", leak["kind"].as_str().unwrap(), leak["id"])).collect()
    }

    /// Numbers of commands so far that change something.
    pub fn changes(&self) -> BTreeMap<String, u64> {
        let calls: BTreeMap<String, u64> = serde_json::from_value(self.get("/sim/calls")).unwrap();
        let reads = |name: &str| ["list", "get", "query", "find"].iter().any(|verb| name.starts_with(verb));
        calls.into_iter().filter(|(name, _)| !reads(name)).collect()
    }

    /// Runs a command as the cloud's administrator and waits for its job.
    pub fn call(&self, command: &str, parameters: &[(&str, &str)]) -> Value {
        let url = format!("http://{}", self.address);
        let pairs: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut line = vec!["sim", "cloudstack", "ctl", "--url", &url, "call", command];
        line.extend(pairs.iter().map(String::as_str));
        let printed = succeeded(capstan(&line));
        serde_json::from_str(&printed).unwrap_or_default()
    }

    /// The items of a list command, over all accounts.
    pub fn list(&self, command: &str, item: &str) -> Vec<Value> {
        self.call(command, &[("listall", "true")])[item].as_array().cloned().unwrap_or_default()
    }

    /// The credentials Secret of the examples.
    pub fn secret(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloudstack-credentials"},
            "stringData": self.keys})
    }

    /// Creates the cluster `demo` with one control plane machine and one worker.
    pub async fn create_demo(&self, server: &Server) {
        let mut objects = example("demo.yaml");
        of_kind(&mut objects, "KubeadmControlPlane")["spec"]["replicas"] = 1.into();
        of_kind(&mut objects, "MachineDeployment")["spec"]["replicas"] = 1.into();
        of_kind(&mut objects, "CloudStackCluster")["spec"]["controlPlaneEndpoint"]["port"] =
            self.endpoint_port.into();
        create(server, &[self.secret()]).await;
        create(server, &example("cni.yaml")).await;
        create(server, &objects).await;
    }
}

impl Drop for FastCloud {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
