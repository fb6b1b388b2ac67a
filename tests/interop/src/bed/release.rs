//! Files of a release, packed for a suite.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::cargo;

/// The program that packs releases.
#[derive(Clone, Debug)]
pub struct Packer(PathBuf);

impl Packer {
    /// The named program, or one built with the profile `ci`.
    pub fn locate(named: Option<&Path>) -> Result<Self> {
        Ok(Self(match named {
            Some(path) => std::path::absolute(path)?,
            None => cargo::suite_program("capstan-release")?,
        }))
    }

    /// Packs what is installed on a Kubernetes.
    pub async fn pack(&self, binary: &Path, out: &Path) -> Result<()> {
        self.run(&["--kubernetes-only"], binary, out).await
    }

    /// Packs the Debian package for this processor.
    pub async fn debian_package(&self, binary: &Path, out: &Path) -> Result<PathBuf> {
        self.run(&["--debian-only"], binary, out).await?;
        let files = std::fs::read_dir(out)?.flatten().map(|entry| entry.path());
        let mut packages = files.filter(|path| path.extension().is_some_and(|end| end == "deb"));
        packages.next().context("the release has no Debian package")
    }

    async fn run(&self, arguments: &[&str], binary: &Path, out: &Path) -> Result<()> {
        let mut command = Command::new(&self.0);
        command.args(arguments).args(["--allow-dynamic", "--binary"]).arg(binary).arg("--out").arg(out);
        let packed = command.output().await.with_context(|| format!("run {}", self.0.display()))?;
        ensure!(packed.status.success(), "release: {}", String::from_utf8_lossy(&packed.stderr));
        Ok(())
    }
}
