//! `capstan manager` as a process of a suite.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::managers::answers_ready;
use super::ports::free_port;
use super::process::{Process, Program, Usage};
use super::{Server, kubeconfig};
use crate::api::Api;

/// How long it may take to be ready: it may install forty CRDs first, on a machine that builds peers.
const READY: Duration = Duration::from_secs(180);

/// A running manager of ours. Killed when dropped.
#[derive(Debug)]
pub struct Manager {
    /// Port of its health and metrics endpoints.
    pub health_port: u16,
    process: Process,
}

impl Manager {
    /// Starts it under a name, which its log carries too, and waits until it is ready.
    pub async fn start(
        name: &str,
        folder: &Path,
        binary: &Path,
        kubeconfig: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        let health_port = free_port()?;
        let process = Program::new(name, binary)
            .arg("manager")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--health-address=127.0.0.1:{health_port}"))
            .arg(format!("--webhook-port={}", free_port()?))
            .args(arguments.iter().map(|argument| (*argument).to_owned()))
            .start(folder)?;
        let mut manager = Self { health_port, process };
        let deadline = Instant::now() + READY;
        while !answers_ready(health_port).await {
            manager.check()?;
            if Instant::now() > deadline {
                bail!("{name} is not ready; see {}", manager.process.log().display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(manager)
    }

    /// Runs the program of an installed Deployment with its arguments, as its ServiceAccount. Both have one name.
    pub async fn installed(
        server: &Server,
        api: &Api,
        folder: &Path,
        binary: &Path,
        namespace: &str,
        name: &str,
    ) -> Result<Self> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let deployment = api.get(&path).await?.success()?;
        let pod = &deployment["spec"]["template"]["spec"];
        ensure!(pod["serviceAccountName"] == name, "{pod}");
        let arguments = pod["containers"][0]["args"].as_array().context("no arguments")?;
        let arguments: Vec<String> = arguments
            .iter()
            .filter_map(Value::as_str)
            // The suite chooses its ports.
            .filter(|flag| !flag.starts_with("--health-address") && !flag.starts_with("--webhook-port"))
            .skip_while(|word| *word == "manager")
            .map(|flag| flag.replace("$(POD_NAMESPACE)", namespace))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = api.post(&path, &request).await?.success()?;
        let token = token["status"]["token"].as_str().context("no token")?;
        let access = folder.join("account.kubeconfig");
        kubeconfig::write_token(&access, &kubeconfig::read(&server.kubeconfig)?, token)?;
        Self::start("installed", folder, binary, &access, &arguments).await
    }

    /// Fails if the process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Warnings and errors in its log.
    pub fn logged_warnings(&self) -> Result<Vec<String>> {
        self.process.logged_warnings()
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Its name, memory and CPU time.
    pub fn usage(&self) -> Result<(String, Usage)> {
        Ok((self.process.name().to_owned(), self.process.usage()?))
    }

    /// Stops it with SIGTERM. Fails unless it exits with success.
    pub fn stop(&mut self) -> Result<()> {
        let status = self.process.stop(Duration::from_secs(10))?;
        if !status.success() {
            bail!("{} did not shut down cleanly: {status}", self.process.name());
        }
        Ok(())
    }
}
