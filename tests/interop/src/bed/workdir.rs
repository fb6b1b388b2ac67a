//! The folder of one run: data, certificates, logs. Removed when the run passed, kept when it failed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

#[derive(Debug)]
pub struct Workdir {
    path: PathBuf,
    passed: bool,
}

impl Workdir {
    /// A fresh folder in the system's temporary folder.
    pub fn new(suite: &str) -> Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(&format!("capstan-{suite}-"))
            .tempdir()
            .context("create a working folder")?
            .keep();
        Ok(Self { path, passed: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A subfolder. Created if missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    /// Marks the run as passed: the folder is removed on drop.
    pub fn passed(&mut self) {
        self.passed = true;
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if self.passed && std::env::var_os("CAPSTAN_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.path);
        } else {
            eprintln!("logs and data are kept in {}", self.path.display());
        }
    }
}
