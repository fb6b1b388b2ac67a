//! Our own binary: given by path, or built in release mode.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::cargo;

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
    cargo::build(".", "capstan", &["--release"])
}
