//! Command line programs that a suite uses as a user does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// How long any of them may take.
const LIMIT: Duration = Duration::from_secs(240);

/// A command line program with a home of its own.
#[derive(Clone, Debug)]
pub struct Tool {
    program: PathBuf,
    home: PathBuf,
}

impl Tool {
    pub fn new(program: PathBuf, home: PathBuf) -> Self {
        Self { program, home }
    }

    /// What it prints when it is run with a kubeconfig; it must succeed.
    pub async fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        let shown = format!("{} {}", self.program.display(), arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("HOME", &self.home)
            // No question to the internet about a newer release.
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output =
            tokio::time::timeout(LIMIT, output).await.with_context(|| format!("{shown}: no end"))??;
        if !output.status.success() {
            bail!(
                "{shown}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}
