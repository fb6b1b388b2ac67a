//! A `capstan demo` in a folder of its own: its process, its commands, and the resources in its cloud.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::bed::managers::plain;
use crate::bed::ports::free_port;
use crate::bed::process::{Process, Program, at_signal};
use crate::bed::wait;

/// Simulation speed relative to real machines.
const SPEED: &str = "200";

/// Delays in milliseconds after which commands are killed.
const MOMENTS: [u64; 4] = [10, 40, 120, 300];

pub struct Demo {
    binary: PathBuf,
    folder: PathBuf,
    pub data: PathBuf,
    /// Port of its management cluster.
    pub port: u16,
    /// Port of its workload clusters.
    pub endpoint_port: u16,
    runs: usize,
}

/// Exit code and output of a command.
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Demo {
    /// Starts nothing yet.
    pub fn new(folder: &Path, binary: &Path) -> Result<Self> {
        let data = folder.join("data");
        let marker = data.join("cloud.json");
        at_signal(move || drop(std::fs::remove_file(marker)));
        Ok(Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            data,
            port: free_port()?,
            endpoint_port: free_port()?,
            runs: 0,
        })
    }

    fn arguments(&self) -> Result<Vec<String>> {
        let data = self.data.to_str().context("path")?.to_owned();
        let mut all = vec!["demo".to_owned(), "--data-dir".to_owned(), data];
        all.extend(["--speed", SPEED].map(str::to_owned));
        all.extend(["--listen".to_owned(), format!("127.0.0.1:{}", self.port)]);
        all.extend(["--endpoint-port".to_owned(), self.endpoint_port.to_string()]);
        Ok(all)
    }

    fn name(&mut self, what: &str) -> String {
        self.runs += 1;
        format!("{}-{what}", self.runs)
    }

    /// Runs it on a terminal.
    pub fn on_a_terminal(&mut self, columns: usize) -> Result<Terminal> {
        let name = self.name("demo");
        let arguments = self.arguments()?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Terminal::start(&self.folder, &name, columns, &self.binary, &words)
    }

    /// Runs it without a terminal.
    pub fn headless(&mut self) -> Result<Process> {
        let name = self.name("demo");
        let arguments = self.arguments()?;
        Program::new(&name, &self.binary).args(arguments).arg("--headless").start(&self.folder)
    }

    /// Runs a command for its management cluster on a terminal.
    pub fn command_on_a_terminal(&mut self, arguments: &[&str]) -> Result<Terminal> {
        let name = self.name(arguments[0]);
        let data = self.data.to_str().context("path")?;
        let words = [arguments, &["--data-dir", data]].concat();
        Terminal::start(&self.folder, &name, 120, &self.binary, &words)
    }

    /// Like [`Self::command_on_a_terminal`], with colours disabled.
    pub fn command_without_colours(&mut self, arguments: &[&str]) -> Result<Terminal> {
        let name = self.name(arguments[0]);
        let (binary, data) = (self.binary.to_str().context("path")?, self.data.to_str().context("path")?);
        let words = [&["NO_COLOR=1", binary], arguments, &["--data-dir", data]].concat();
        Terminal::start(&self.folder, &name, 120, Path::new("env"), &words)
    }

    /// Starts a command repeatedly, and kills it a little later each time.
    pub async fn killed_on_the_way(&mut self, arguments: &[String], times: usize) -> Result<()> {
        for moment in MOMENTS.into_iter().take(times) {
            let name = self.name(&arguments[0]);
            let mut process = Program::new(&name, &self.binary).args(arguments).start(&self.folder)?;
            tokio::time::sleep(Duration::from_millis(moment)).await;
            process.kill()?;
        }
        Ok(())
    }

    /// The arguments of `demo` itself, without a terminal.
    pub fn headless_arguments(&self) -> Result<Vec<String>> {
        let mut all = self.arguments()?;
        all.push("--headless".to_owned());
        Ok(all)
    }

    /// The arguments of a command for its management cluster.
    pub fn about(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let data = self.data.to_str().context("path")?;
        Ok([arguments, &["--data-dir", data]].concat().into_iter().map(str::to_owned).collect())
    }

    /// Runs a command for its management cluster.
    pub fn run(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let data = self.data.to_str().context("path")?;
        self.capstan(&[arguments, &["--data-dir", data]].concat())
    }

    /// Runs a command without further arguments.
    pub fn capstan(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let output: Output =
            Command::new(&self.binary).args(arguments).stdin(Stdio::null()).output().context("capstan")?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(CommandOutput {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        })
    }

    /// Runs a command that must succeed. Returns its output.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        ensure!(
            output.code == 0,
            "capstan {} ended with {}: {}",
            arguments.join(" "),
            output.code,
            output.err
        );
        Ok(output.out)
    }

    fn cloud(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&std::fs::read(self.data.join("cloud.json"))?)?)
    }

    /// URL of the cloud's API.
    pub fn cloud_url(&self) -> Result<String> {
        Ok(format!("http://{}/client/api", self.cloud()?["address"].as_str().context("an address")?))
    }

    /// The credentials Secret of the cloud, as a manifest.
    pub fn keys(&self) -> Result<String> {
        let data = self.cloud()?["credentials"].take();
        ensure!(data["secret-key"].is_string(), "cloud.json has no credentials");
        let metadata = json!({"name": "cloudstack-credentials"});
        Ok(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
            .to_string())
    }

    /// Resources of the tenant in the cloud, as (kind, id).
    pub async fn resources(&self) -> Result<BTreeSet<(String, String)>> {
        let cloud = self.cloud()?;
        let address = cloud["address"].as_str().context("an address")?;
        let port = address.rsplit_once(':').context("a port")?.1.parse()?;
        let answer = plain(port, "/sim/leaks?account=capstan").await?;
        let body = answer.split_once("\r\n\r\n").context("an answer without a body")?.1;
        let leaks: Vec<Value> = serde_json::from_str(body)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(leaks.iter().map(|leak| (text(&leak["kind"]), text(&leak["id"]))).collect())
    }

    /// Ids of the tenant's virtual machines.
    pub async fn machines(&self) -> Result<BTreeSet<String>> {
        let all = self.resources().await?;
        Ok(all.into_iter().filter(|(kind, _)| kind == "virtualmachine").map(|(_, id)| id).collect())
    }

    /// Names of the Machines of a cluster.
    pub fn recorded(&self, cluster: &str) -> Result<Vec<String>> {
        let names = self.succeed(&["get", "machines", "--cluster", cluster, "-o", "name"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }
}

impl Drop for Demo {
    /// The cloud exits within seconds after its plane.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.data.join("cloud.json"));
    }
}

/// Waits until the log of a process contains `words`. Returns the log.
pub async fn wait_for_output(process: &mut Process, words: &str) -> Result<String> {
    let log = process.log().to_owned();
    let output = wait::until(words, Duration::from_secs(120), || {
        let text = std::fs::read_to_string(&log);
        async move { Ok(text.ok().filter(|text| text.contains(words))) }
    });
    let output = output.await;
    if output.is_err() {
        process.check()?;
    }
    output
}
