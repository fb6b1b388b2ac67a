//! `capstan manager` as a process of a suite.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::managers::answers_ready;
use super::ports::free_port;
use super::process::{Process, Program, Usage};

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
        let deadline = Instant::now() + Duration::from_secs(60);
        while !answers_ready(health_port).await {
            manager.check()?;
            if Instant::now() > deadline {
                bail!("{name} is not ready; see {}", manager.process.log().display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(manager)
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
