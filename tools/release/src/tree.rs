//! Files of an archive, with everything that could differ from run to run laid down: order, owners, modes, times.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// Numeric user and group of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);

pub const ROOT: Owner = Owner(0);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Contents; a directory has none.
    pub bytes: Option<Vec<u8>>,
    pub mode: u32,
    pub owner: Owner,
}

/// Files by their path without a leading slash. Parents are added as they are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub entries: BTreeMap<String, Entry>,
}

impl Tree {
    pub fn directory(&mut self, path: &str, mode: u32, owner: Owner) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Entry { bytes: None, mode, owner });
    }

    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Entry { bytes: Some(bytes.into()), mode, owner: ROOT });
    }

    /// Puts everything of another tree below a folder.
    pub fn graft(&mut self, folder: &str, other: &Self) {
        for (path, entry) in &other.entries {
            let path = format!("{folder}/{path}");
            self.parents(&path);
            self.entries.insert(path, entry.clone());
        }
    }

    /// The files below a folder of this machine, as 0644 of root.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_below(folder, "")?;
        Ok(tree)
    }

    fn read_below(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let listed = std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
        for entry in listed {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("a name is not UTF-8")?;
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.read_below(&entry.path(), &format!("{path}/"))?;
            } else {
                let bytes = std::fs::read(entry.path());
                self.file(&path, 0o644, bytes.with_context(|| entry.path().display().to_string())?);
            }
        }
        Ok(())
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            let parent = Entry { bytes: None, mode: 0o755, owner: ROOT };
            self.entries.entry(path[..at].to_owned()).or_insert(parent);
        }
    }

    /// Files alone, without directories.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| Some((path.as_str(), entry.bytes.as_deref()?)))
    }

    pub fn text(&self, path: &str) -> Result<&str> {
        let bytes = self.entries.get(path).and_then(|entry| entry.bytes.as_deref());
        std::str::from_utf8(bytes.with_context(|| format!("no file {path}"))?).context(path.to_owned())
    }

    /// A tar archive of everything, every path after `prefix`, every time the same.
    pub fn tar(&self, prefix: &str, time: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        if prefix == "./" {
            append(&mut builder, "./", &Entry { bytes: None, mode: 0o755, owner: ROOT }, time)?;
        }
        for (path, entry) in &self.entries {
            let slash = if entry.bytes.is_none() { "/" } else { "" };
            append(&mut builder, &format!("{prefix}{path}{slash}"), entry, time)?;
        }
        Ok(builder.into_inner()?)
    }

    /// What a tar archive contains; paths lose a leading `./`.
    pub fn from_tar(bytes: &[u8]) -> Result<Self> {
        let mut tree = Self::default();
        for entry in tar::Archive::new(bytes).entries()? {
            let mut entry = entry?;
            let path = String::from_utf8(entry.path_bytes().into_owned())?;
            let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
            let header = entry.header();
            ensure!(header.uid()? == header.gid()?, "{path}: user and group differ");
            let (mode, owner) = (header.mode()?, Owner(u32::try_from(header.uid()?)?));
            let bytes = match header.entry_type() {
                EntryType::Directory => None,
                EntryType::Regular => {
                    let mut bytes = Vec::new();
                    entry.read_to_end(&mut bytes)?;
                    Some(bytes)
                }
                other => anyhow::bail!("{path}: {other:?} in an archive of files and directories"),
            };
            if !path.is_empty() {
                tree.entries.insert(path, Entry { bytes, mode, owner });
            }
        }
        Ok(tree)
    }
}

fn append(builder: &mut Builder<Vec<u8>>, path: &str, entry: &Entry, time: u64) -> Result<()> {
    let bytes = entry.bytes.as_deref();
    let mut header = Header::new_gnu();
    header.set_entry_type(if bytes.is_some() { EntryType::Regular } else { EntryType::Directory });
    header.set_mode(entry.mode);
    header.set_uid(entry.owner.0.into());
    header.set_gid(entry.owner.0.into());
    if entry.owner == ROOT {
        header.set_username("root")?;
        header.set_groupname("root")?;
    }
    header.set_mtime(time);
    header.set_size(bytes.map_or(0, <[u8]>::len) as u64);
    // The builder drops the `./` that dpkg expects, so short names are set as they are.
    let name = header.as_old_mut();
    if path.len() < name.name.len() {
        name.name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        builder.append(&header, bytes.unwrap_or_default())?;
    } else {
        builder.append_data(&mut header, path, bytes.unwrap_or_default())?;
    }
    Ok(())
}

/// Compressed, without a name or a time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

pub fn gunzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).context("not compressed with gzip")?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_reads_back_with_modes_owners_and_long_names() {
        let mut tree = Tree::default();
        tree.file("usr/bin/capstan", 0o755, *b"program");
        tree.directory("var/lib/capstan", 0o700, Owner(65532));
        tree.file(&format!("usr/share/{}", "long/".repeat(30) + "name"), 0o644, *b"text");
        for prefix in ["./", ""] {
            assert_eq!(Tree::from_tar(&tree.tar(prefix, 7).unwrap()).unwrap(), tree);
        }
        assert_eq!(tree.entries["usr"].mode, 0o755);
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_another_time_gives_others() {
        let mut tree = Tree::default();
        tree.file("b", 0o644, *b"2");
        let mut other = Tree::default();
        other.file("b", 0o644, *b"2");
        tree.file("a", 0o644, *b"1");
        other.file("a", 0o644, *b"1");
        let archive = |tree: &Tree, time| gzip(&tree.tar("", time).unwrap()).unwrap();
        assert_eq!(archive(&tree, 7), archive(&other, 7));
        assert_ne!(archive(&tree, 7), archive(&other, 8));
    }
}
