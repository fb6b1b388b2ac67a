//! What is the same for all files of a release.

use std::path::PathBuf;

use anyhow::{Context, Result};
use jiff::Timestamp;

use crate::tree::Tree;

#[derive(Debug)]
pub struct Release {
    /// The repository.
    pub root: PathBuf,
    /// Without a leading `v`.
    pub version: String,
    /// Commit.
    pub revision: String,
    /// Seconds since 1970: the time of everything in archives.
    pub time: u64,
    /// Name of the container image, without a tag.
    pub image: String,
    /// For the package's control file.
    pub maintainer: String,
    /// What the program says of itself: `man/`, `completions/`, `definitions/`.
    pub made: Tree,
    /// Licences of everything that is linked into the program.
    pub notices: String,
}

impl Release {
    /// A file of the repository.
    pub fn source(&self, path: &str) -> Result<Vec<u8>> {
        std::fs::read(self.root.join(path)).with_context(|| format!("read {path}"))
    }

    pub fn source_text(&self, path: &str) -> Result<String> {
        String::from_utf8(self.source(path)?).with_context(|| format!("{path} is not UTF-8"))
    }

    /// The time as RFC 3339.
    pub fn timestamp(&self) -> String {
        let seconds = i64::try_from(self.time).unwrap_or(0);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    }

    /// Our licence and those of what is linked.
    pub fn copyright(&self) -> Result<String> {
        Ok(format!("{}\n\n{}", self.source_text("LICENSE")?.trim_end(), self.notices))
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// This repository with a program's answers that are easy to recognise.
    pub fn release() -> Release {
        let mut made = Tree::default();
        for path in ["completions/capstan.bash", "completions/_capstan", "completions/capstan.fish"] {
            made.file(path, 0o644, format!("# {path}\n"));
        }
        made.file("man/capstan.1", 0o644, ".TH capstan 1\n");
        made.file(
            "definitions/infrastructure-cloudstack.yaml",
            0o644,
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: cloudstackclusters.infrastructure.cluster.x-k8s.io\n",
        );
        Release {
            root: capstan_test_support::cargo::root(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: "0123456789abcdef".to_owned(),
            time: 1_800_000_000,
            image: "registry.example/capstan".to_owned(),
            maintainer: "Nobody <nobody@capstan.invalid>".to_owned(),
            made,
            notices: "no notices\n".to_owned(),
        }
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(release().timestamp(), "2027-01-15T08:00:00Z");
    }
}
