//! Checksums.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The list of checksums of a folder, which `sha256sum --check` reads.
pub const SUMS: &str = "SHA256SUMS";

/// Lists the files of a folder with their checksums.
pub fn write_sums(folder: &Path) -> Result<()> {
    let mut text = String::new();
    for name in names(folder)? {
        writeln!(text, "{}  {name}", sha256(&std::fs::read(folder.join(&name))?))?;
    }
    std::fs::write(folder.join(SUMS), text).with_context(|| format!("write {SUMS}"))
}

/// Every file of a folder is listed and is what the list says.
pub fn check_sums(folder: &Path) -> Result<usize> {
    let list = std::fs::read_to_string(folder.join(SUMS)).with_context(|| format!("read {SUMS}"))?;
    let mut listed = Vec::new();
    for line in list.lines() {
        let Some((sum, name)) = line.split_once("  ") else { bail!("{SUMS}: {line:?} is not a checksum") };
        let bytes = std::fs::read(folder.join(name)).with_context(|| format!("{SUMS} names {name}"))?;
        ensure!(sha256(&bytes) == sum, "{name} is not what {SUMS} says");
        listed.push(name.to_owned());
    }
    let there = names(folder)?;
    ensure!(listed == there, "{SUMS} lists {listed:?}, and there are {there:?}");
    Ok(listed.len())
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let name = entry?.file_name().into_string().ok().context("a name is not UTF-8")?;
        if name != SUMS {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_missing_and_unlisted_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("a"), "1").unwrap();
        std::fs::write(file("b"), "2").unwrap();
        write_sums(folder.path()).unwrap();
        assert_eq!(check_sums(folder.path()).unwrap(), 2);
        std::fs::write(file("b"), "3").unwrap();
        assert!(check_sums(folder.path()).is_err());
        std::fs::remove_file(file("b")).unwrap();
        assert!(check_sums(folder.path()).is_err());
        std::fs::write(file("b"), "2").unwrap();
        std::fs::write(file("c"), "4").unwrap();
        assert!(check_sums(folder.path()).is_err());
    }
}
