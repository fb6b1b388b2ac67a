//! The cache of built peers: outside the work tree, one folder per set of versions.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::catalog::{self, Peer};

/// The folder of the current set of versions.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$CAPSTAN_PEERS`, else `$XDG_CACHE_HOME/capstan/peers`, else `~/.cache/capstan/peers`.
    pub fn locate() -> Result<Self> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = variable("CAPSTAN_PEERS")
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("capstan/peers")))
            .or_else(|| Some(variable("HOME")?.join(".cache/capstan/peers")))
            .context("no folder for the peers: set CAPSTAN_PEERS")?;
        Ok(Self { root: std::path::absolute(base)?.join(catalog::version_set()) })
    }

    /// The folder itself. Created if missing.
    pub fn root(&self) -> Result<&Path> {
        std::fs::create_dir_all(&self.root).with_context(|| format!("create {}", self.root.display()))?;
        Ok(&self.root)
    }

    /// A folder of the cache. Created if missing.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    /// Path of a peer's program, built or not.
    pub fn program(&self, peer: &Peer) -> PathBuf {
        self.root.join("bin").join(peer.name)
    }

    /// Path of a built peer. The error names the command that builds it.
    pub fn built(&self, name: &str) -> Result<PathBuf> {
        let peer = catalog::select(&[name.to_owned()])?[0];
        let program = self.program(&peer);
        if !program.is_file() {
            bail!("{name} is not at {}; build it with `cargo xtask peers --only {name}`", program.display());
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_names_the_command_that_builds_it() {
        let cache = Cache { root: "/nowhere".into() };
        let message = cache.built("kubectl").unwrap_err().to_string();
        assert!(message.ends_with("build it with `cargo xtask peers --only kubectl`"), "{message}");
    }
}
