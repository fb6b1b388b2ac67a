//! The Python client of PyPI, in a virtual environment in the cache.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::peers::Cache;

/// Release of the `kubernetes` package.
pub const PACKAGE: &str = "kubernetes==37.0.2";

pub async fn suite() -> Result<Command> {
    let script = crate::cargo::root().join("tests/clients/python/suite.py");
    let mut program = Command::new(environment(&[PACKAGE]).await?);
    program.arg(script);
    Ok(program)
}

/// The interpreter of a virtual environment with these packages. Created once.
pub async fn environment(packages: &[&str]) -> Result<PathBuf> {
    let folder = Cache::locate()?.folder("python")?.join(packages.join("+"));
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if ready.is_file() {
        return Ok(python);
    }
    println!("installing {} into {}", packages.join(" and "), folder.display());
    let folder_text = folder.to_str().context("the cache's path is not UTF-8")?;
    let interpreter = Path::new("python3");
    checked(interpreter, &["-m", "venv", "--clear", folder_text])
        .await
        .context("a Python 3 with its venv module is needed: install python3 and python3-venv")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    checked(&python, &[&install, packages].concat()).await?;
    std::fs::write(ready, "")?;
    Ok(python)
}

async fn checked(program: &Path, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output().await;
    let output = output.with_context(|| format!("run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} {}: {}", program.display(), arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
