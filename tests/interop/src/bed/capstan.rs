//! Our own binary: given by path, or built with the profile of the tests.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cargo;

/// For benchmarks: the given path, `$CAPSTAN_BIN`, or a release build.
pub fn optimised(given: Option<&Path>) -> Result<PathBuf> {
    if given.is_some() || std::env::var_os("CAPSTAN_BIN").is_some() {
        return binary(given);
    }
    cargo::build(".", "capstan", &["--release"])
}

/// The given path, `$CAPSTAN_BIN`, or the result of `cargo build --profile ci -p capstan`.
pub fn binary(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) =
        given.map(PathBuf::from).or_else(|| std::env::var_os("CAPSTAN_BIN").map(PathBuf::from))
    {
        if !path.is_file() {
            bail!("no capstan at {}; build it with `cargo build --profile ci -p capstan`", path.display());
        }
        return Ok(std::path::absolute(path)?);
    }
    cargo::suite_program("capstan")
}
