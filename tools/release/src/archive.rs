//! The archive of a processor: the program and what belongs beside it.

use anyhow::Result;

use crate::context::Release;
use crate::target::Target;
use crate::tree::{Tree, gzip};

fn name(release: &Release, target: Target) -> String {
    format!("capstan-{}-linux-{}", release.version, target.architecture)
}

pub fn file_name(release: &Release, target: Target) -> String {
    format!("{}.tar.gz", name(release, target))
}

/// The archive's bytes; everything is in one folder.
pub fn pack(release: &Release, target: Target, program: &[u8]) -> Result<Vec<u8>> {
    let mut tree = Tree::default();
    tree.file("capstan", 0o755, program);
    for path in ["README.md", "CHANGELOG.md", "LICENSE"] {
        tree.file(path, 0o644, release.source(path)?);
    }
    tree.file("THIRD-PARTY-NOTICES", 0o644, release.notices.as_str());
    for (path, bytes) in release.made.files() {
        if path.starts_with("man/") || path.starts_with("completions/") {
            tree.file(path, 0o644, bytes);
        }
    }
    for (from, to) in [("examples", "examples"), ("templates", "templates"), ("packaging/systemd", "systemd")]
    {
        tree.graft(to, &Tree::read(&release.root.join(from))?);
    }
    let mut all = Tree::default();
    all.graft(&name(release, target), &tree);
    gzip(&all.tar("", release.time)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::release;
    use crate::target::TARGETS;
    use crate::tree::gunzip;

    #[test]
    fn an_archive_has_one_folder_with_the_program_in_it() {
        let release = release();
        let archive = pack(&release, TARGETS[0], b"program").unwrap();
        assert_eq!(archive, pack(&release, TARGETS[0], b"program").unwrap());
        let tree = Tree::from_tar(&gunzip(&archive).unwrap()).unwrap();
        let folder = format!("capstan-{}-linux-amd64", release.version);
        assert!(tree.entries.keys().all(|path| path.starts_with(&folder)));
        assert_eq!(tree.entries[&format!("{folder}/capstan")].mode, 0o755);
        for path in ["LICENSE", "man/capstan.1", "systemd/capstan.service", "completions/_capstan"] {
            assert!(tree.entries.contains_key(&format!("{folder}/{path}")), "{path}");
        }
    }
}
