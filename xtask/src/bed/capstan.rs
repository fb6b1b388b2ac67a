//! Our own binary: given by path, or built in release mode.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The given path, `$CAPSTAN_BIN`, or the result of `cargo build --release -p capstan`.
pub fn binary(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) =
        given.map(PathBuf::from).or_else(|| std::env::var_os("CAPSTAN_BIN").map(PathBuf::from))
    {
        if !path.is_file() {
            bail!("no capstan at {}; build it with `cargo build --release -p capstan`", path.display());
        }
        return Ok(std::path::absolute(path)?);
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "-p", "capstan", "--message-format=json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo build")?;
    if !output.status.success() {
        bail!("cargo build --release -p capstan failed ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "capstan")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.context("cargo built no program called capstan")
}
