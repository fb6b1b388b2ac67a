//! Command line programs, run as a user does.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// Timeout of each of them.
const LIMIT: Duration = Duration::from_secs(240);

/// A command line program with a HOME of its own.
#[derive(Clone, Debug)]
pub struct Tool {
    program: PathBuf,
    home: PathBuf,
}

impl Tool {
    pub fn new(program: PathBuf, home: PathBuf) -> Self {
        Self { program, home }
    }

    /// Runs it with a kubeconfig and returns its output. It must succeed.
    pub async fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        self.plain(&with_kubeconfig(kubeconfig, arguments)?).await
    }

    /// Runs it without a kubeconfig and returns its output. It must succeed.
    pub async fn plain(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments).await?;
        if !output.status.success() {
            bail!("{}: {}", self.shown(arguments), everything(&output));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs it with a kubeconfig and returns its output. It must fail.
    pub async fn refused(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        let arguments = with_kubeconfig(kubeconfig, arguments)?;
        let output = self.output(&arguments).await?;
        if output.status.success() {
            bail!("{} should have failed: {}", self.shown(&arguments), everything(&output));
        }
        Ok(everything(&output))
    }

    fn shown(&self, arguments: &[&str]) -> String {
        format!("{} {}", self.program.display(), arguments.join(" "))
    }

    async fn output(&self, arguments: &[&str]) -> Result<Output> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("HOME", &self.home)
            // Disables the request for the latest release.
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LIMIT, output).await;
        Ok(output.with_context(|| format!("{}: timed out", self.shown(arguments)))??)
    }
}

fn with_kubeconfig<'a>(kubeconfig: &'a Path, arguments: &[&'a str]) -> Result<Vec<&'a str>> {
    // Arguments after `--` belong to another program.
    let end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (own, others) = arguments.split_at(end);
    Ok([own, &["--kubeconfig", kubeconfig.to_str().context("path")?], others].concat())
}

fn everything(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part).into_owned()).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_never_passed_to_the_program_in_a_pod() {
        let words =
            |arguments: &[&'static str]| with_kubeconfig(Path::new("k"), arguments).unwrap().join(" ");
        assert_eq!(words(&["get", "pods"]), "get pods --kubeconfig k");
        assert_eq!(words(&["exec", "p", "--", "ls"]), "exec p --kubeconfig k -- ls");
    }
}
