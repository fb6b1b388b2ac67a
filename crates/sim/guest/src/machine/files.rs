//! The file system of a machine, in memory: directories, files and symbolic links with modes and owners.

use std::collections::BTreeMap;

/// Bytes of a disk.
const DISK: usize = 64 * 1024 * 1024;
/// Files, directories and links on a disk.
const NODES: usize = 20_000;
/// Bytes and parts of a path.
const PATH: usize = 4096;
const DEPTH: usize = 64;
/// Maximum symbolic links in a path.
const LINKS: usize = 40;
/// Directories in memory, which are never full.
const MEMORY: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// Errors of the file system, with the texts of libc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("No such file or directory")]
    NotFound,
    #[error("Is a directory")]
    IsDirectory,
    #[error("Not a directory")]
    NotDirectory,
    #[error("File exists")]
    Exists,
    #[error("Directory not empty")]
    NotEmpty,
    #[error("No space left on device")]
    NoSpace,
    #[error("File name too long")]
    TooLong,
    #[error("Too many levels of symbolic links")]
    Loop,
}

impl FileError {
    /// The errno.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::NotFound => 2,
            Self::Exists => 17,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::NoSpace => 28,
            Self::TooLong => 36,
            Self::NotEmpty => 39,
            Self::Loop => 40,
        }
    }

    /// The error as Go programs print it.
    pub(super) fn lower(self) -> String {
        self.to_string().to_lowercase()
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File(Vec<u8>),
    Link(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    /// `user:group`.
    pub(super) owner: String,
}

impl Node {
    fn new(kind: Kind, mode: u32) -> Self {
        Self { kind, mode, owner: "root:root".to_owned() }
    }

    fn size(&self) -> usize {
        match &self.kind {
            Kind::File(content) => content.len(),
            Kind::Directory | Kind::Link(_) => 0,
        }
    }
}

/// A machine's files, by absolute path.
#[derive(Debug, Clone)]
pub(super) struct Files {
    nodes: BTreeMap<String, Node>,
    used: usize,
    /// The disk is full.
    full: bool,
}

impl Files {
    pub(super) fn new() -> Self {
        let root = Node::new(Kind::Directory, 0o755);
        Self { nodes: BTreeMap::from([("/".to_owned(), root)]), used: 0, full: false }
    }

    /// From now on nothing more fits on the disk.
    pub(super) fn fill_up(&mut self) {
        self.full = true;
    }

    /// The path with links resolved, without `.` and `..`. Parts that do not exist yet are kept.
    pub(super) fn resolve(&self, path: &str, follow_last: bool) -> Result<String, FileError> {
        if path.len() > PATH {
            return Err(FileError::TooLong);
        }
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut parts: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    parts.pop();
                    continue;
                }
                _ => parts.push(part),
            }
            if parts.len() > DEPTH {
                return Err(FileError::TooLong);
            }
            let last = rest.iter().all(String::is_empty);
            let Some(Node { kind: Kind::Link(target), .. }) = self.nodes.get(&joined(&parts)) else {
                continue;
            };
            if last && !follow_last {
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(FileError::Loop);
            }
            parts.pop();
            if target.starts_with('/') {
                parts.clear();
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
        }
        Ok(joined(&parts))
    }

    /// The node at a path, following links.
    pub(super) fn get(&self, path: &str) -> Option<&Node> {
        self.resolve(path, true).ok().and_then(|path| self.nodes.get(&path))
    }

    /// The node at a path, not following a link.
    pub(super) fn get_link(&self, path: &str) -> Option<&Node> {
        self.resolve(path, false).ok().and_then(|path| self.nodes.get(&path))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.get(path).is_some_and(|node| node.kind == Kind::Directory)
    }

    pub(super) fn read(&self, path: &str) -> Result<&[u8], FileError> {
        match &self.get(path).ok_or(FileError::NotFound)?.kind {
            Kind::File(content) => Ok(content),
            Kind::Directory => Err(FileError::IsDirectory),
            Kind::Link(_) => Err(FileError::NotFound),
        }
    }

    /// A file as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|content| String::from_utf8_lossy(content).into_owned())
    }

    /// Names in a directory.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let path = self.resolve(path, true)?;
        match self.nodes.get(&path).map(|node| &node.kind) {
            Some(Kind::Directory) => {}
            Some(_) => return Err(FileError::NotDirectory),
            None => return Err(FileError::NotFound),
        }
        let prefix = if path == "/" { path } else { format!("{path}/") };
        let below = self.nodes.range(prefix.clone()..).take_while(|(held, _)| held.starts_with(&prefix));
        let names = below.map(|(held, _)| &held[prefix.len()..]);
        Ok(names.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect())
    }

    /// Paths of everything below a directory, and of the directory.
    fn tree(&self, path: &str) -> Vec<String> {
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let below = self.nodes.range(prefix.clone()..).take_while(|(held, _)| held.starts_with(&prefix));
        std::iter::once(path.to_owned()).chain(below.map(|(held, _)| held.clone())).collect()
    }

    /// Writes a file, whose directory must exist. A new one has mode 0644.
    pub(super) fn write(&mut self, path: &str, content: &[u8]) -> Result<(), FileError> {
        self.put(path, content, false)
    }

    /// Appends to a file, which is created if needed.
    pub(super) fn append(&mut self, path: &str, content: &[u8]) -> Result<(), FileError> {
        self.put(path, content, true)
    }

    fn put(&mut self, path: &str, content: &[u8], append: bool) -> Result<(), FileError> {
        let path = self.resolve(path, true)?;
        self.check_parent(&path)?;
        let held = match self.nodes.get(&path) {
            Some(Node { kind: Kind::Directory, .. }) => return Err(FileError::IsDirectory),
            Some(node) => node.size(),
            None => 0,
        };
        let size = if append { held + content.len() } else { content.len() };
        self.check_space(&path, size.saturating_sub(held))?;
        self.used = self.used - held + size;
        let node = self.nodes.entry(path).or_insert_with(|| Node::new(Kind::File(Vec::new()), 0o644));
        if let Kind::File(held) = &mut node.kind {
            if !append {
                held.clear();
            }
            held.extend_from_slice(content);
        }
        Ok(())
    }

    fn check_parent(&self, path: &str) -> Result<(), FileError> {
        match self.nodes.get(parent(path)).map(|node| &node.kind) {
            Some(Kind::Directory) => Ok(()),
            Some(_) => Err(FileError::NotDirectory),
            None => Err(FileError::NotFound),
        }
    }

    fn check_space(&self, path: &str, more: usize) -> Result<(), FileError> {
        let on_disk = !MEMORY.iter().any(|memory| path == *memory || path.starts_with(&format!("{memory}/")));
        let new = !self.nodes.contains_key(path);
        if (on_disk && self.full && (new || more > 0))
            || self.used + more > DISK
            || (new && self.nodes.len() >= NODES)
        {
            return Err(FileError::NoSpace);
        }
        Ok(())
    }

    /// Makes one directory.
    pub(super) fn make_directory(&mut self, path: &str) -> Result<(), FileError> {
        let path = self.resolve(path, false)?;
        if self.nodes.contains_key(&path) {
            return Err(FileError::Exists);
        }
        self.check_parent(&path)?;
        self.check_space(&path, 0)?;
        self.nodes.insert(path, Node::new(Kind::Directory, 0o755));
        Ok(())
    }

    /// Makes a directory and those above it.
    pub(super) fn make_directories(&mut self, path: &str) -> Result<(), FileError> {
        let path = self.resolve(path, true)?;
        let mut at = 0;
        while at < path.len() {
            at = path[at + 1..].find('/').map_or(path.len(), |next| at + 1 + next);
            match self.get(&path[..at]).map(|node| &node.kind) {
                Some(Kind::Directory) => {}
                Some(_) => return Err(FileError::NotDirectory),
                None => self.make_directory(&path[..at])?,
            }
        }
        Ok(())
    }

    /// Writes a file and the directories above it.
    pub(super) fn write_deep(&mut self, path: &str, content: &[u8], mode: u32) -> Result<(), FileError> {
        self.make_directories(parent(path))?;
        self.write(path, content)?;
        self.set_mode(path, mode)
    }

    /// Makes a symbolic link.
    pub(super) fn link(&mut self, target: &str, path: &str) -> Result<(), FileError> {
        let path = self.resolve(path, false)?;
        if self.nodes.contains_key(&path) {
            return Err(FileError::Exists);
        }
        self.check_parent(&path)?;
        self.check_space(&path, 0)?;
        self.nodes.insert(path, Node::new(Kind::Link(target.to_owned()), 0o777));
        Ok(())
    }

    /// Removes a file or link, or a directory with everything in it if `recursive`.
    pub(super) fn remove(&mut self, path: &str, recursive: bool) -> Result<(), FileError> {
        let path = self.resolve(path, false)?;
        let node = self.nodes.get(&path).ok_or(FileError::NotFound)?;
        if node.kind != Kind::Directory {
            self.forget(&path);
            return Ok(());
        }
        if !recursive || path == "/" {
            return Err(FileError::IsDirectory);
        }
        for path in self.tree(&path) {
            self.forget(&path);
        }
        Ok(())
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&mut self, path: &str) -> Result<(), FileError> {
        if !self.list(path)?.is_empty() {
            return Err(FileError::NotEmpty);
        }
        let path = self.resolve(path, false)?;
        self.forget(&path);
        Ok(())
    }

    fn forget(&mut self, path: &str) {
        if let Some(node) = self.nodes.remove(path) {
            self.used -= node.size();
        }
    }

    /// Copies a file, or a directory with everything in it.
    pub(super) fn copy(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let (from, to) = (self.resolve(from, true)?, self.resolve(to, true)?);
        if to == from || to.starts_with(&format!("{from}/")) {
            return Err(FileError::Exists);
        }
        for path in self.tree(&from) {
            let target = format!("{to}{}", &path[from.len()..]);
            let node = self.nodes.get(&path).ok_or(FileError::NotFound)?.clone();
            match &node.kind {
                Kind::Directory => self.make_directories(&target)?,
                Kind::File(content) => self.write(&target, content)?,
                Kind::Link(to) => self.link(to, &target)?,
            }
            if let Some(copied) = self.nodes.get_mut(&target) {
                copied.mode = node.mode;
            }
        }
        Ok(())
    }

    /// Moves a file or directory.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        let (from, to) = (self.resolve(from, false)?, self.resolve(to, false)?);
        if !self.nodes.contains_key(&from) {
            return Err(FileError::NotFound);
        }
        if from == to {
            return Ok(());
        }
        if to.starts_with(&format!("{from}/")) {
            return Err(FileError::NotDirectory);
        }
        self.check_parent(&to)?;
        if self.is_directory(&to) {
            return Err(FileError::Exists);
        }
        self.forget(&to);
        for path in self.tree(&from) {
            if let Some(node) = self.nodes.remove(&path) {
                self.nodes.insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        Ok(())
    }

    pub(super) fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), FileError> {
        self.change(path, |node| node.mode = mode & 0o7777)
    }

    pub(super) fn set_owner(&mut self, path: &str, owner: &str) -> Result<(), FileError> {
        self.change(path, |node| node.owner = owner.to_owned())
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Node)) -> Result<(), FileError> {
        let path = self.resolve(path, true)?;
        self.nodes.get_mut(&path).map(change).ok_or(FileError::NotFound)
    }
}

fn joined(parts: &[String]) -> String {
    format!("/{}", parts.join("/"))
}

pub(super) fn parent(path: &str) -> &str {
    match path.trim_end_matches('/').rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let mut files = Files::new();
        files.make_directories("/etc/kubernetes").expect("directories");
        files.make_directories("/run").expect("a directory");
        files
    }

    #[test]
    fn what_is_written_can_be_read_appended_to_and_removed() {
        let mut files = files();
        files.write("/etc/motd", b"hello\n").expect("a file");
        files.append("/etc/motd", b"you\n").expect("more");
        assert_eq!(files.text("/etc/../etc/./motd"), Ok("hello\nyou\n".to_owned()));
        assert_eq!(files.write("/nowhere/file", b""), Err(FileError::NotFound));
        assert_eq!(files.write("/etc/motd/file", b""), Err(FileError::NotDirectory));
        assert_eq!(files.write("/etc", b""), Err(FileError::IsDirectory));
        assert_eq!(files.list("/etc"), Ok(vec!["kubernetes".to_owned(), "motd".to_owned()]));
        files.remove("/etc/motd", false).expect("removed");
        assert_eq!(files.read("/etc/motd"), Err(FileError::NotFound));
        assert_eq!(files.used, 0);
    }

    #[test]
    fn links_are_followed_and_loops_end() {
        let mut files = files();
        files.write("/etc/real", b"x").expect("a file");
        files.link("real", "/etc/near").expect("a link");
        files.link("/etc", "/far").expect("a link");
        files.link("/loop", "/loop").expect("a link");
        assert_eq!(files.read("/far/near"), Ok(b"x".as_slice()));
        assert_eq!(files.resolve("/far/near", false), Ok("/etc/near".to_owned()));
        assert_eq!(files.resolve("/loop/x", true), Err(FileError::Loop));
    }

    #[test]
    fn trees_are_copied_moved_and_removed_whole() {
        let mut files = files();
        files.write_deep("/a/b/c", b"x", 0o600).expect("a file");
        files.copy("/a", "/copy").expect("a copy");
        files.rename("/a", "/etc/moved").expect("moved");
        assert!(!files.exists("/a/b/c"));
        assert_eq!(files.get("/copy/b/c").map(|node| node.mode), Some(0o600));
        assert_eq!(files.read("/etc/moved/b/c"), Ok(b"x".as_slice()));
        assert_eq!(files.remove("/copy", false), Err(FileError::IsDirectory));
        files.remove("/copy", true).expect("removed");
        assert_eq!(files.used, 1);
        assert_eq!(files.copy("/etc", "/etc/moved/again"), Err(FileError::Exists));
    }

    #[test]
    fn a_full_disk_takes_nothing_new_but_memory_does() {
        let mut files = files();
        files.write("/etc/held", b"before").expect("a file");
        files.fill_up();
        assert_eq!(files.write("/etc/new", b"x"), Err(FileError::NoSpace));
        assert_eq!(files.append("/etc/held", b"x"), Err(FileError::NoSpace));
        assert_eq!(files.make_directory("/etc/dir"), Err(FileError::NoSpace));
        assert_eq!(files.write("/run/new", b"x"), Ok(()));
        assert_eq!(files.write("/etc/held", b"less"), Ok(()));
    }

    #[test]
    fn disks_and_paths_are_limited() {
        let mut files = files();
        assert_eq!(files.make_directories(&"/d".repeat(DEPTH + 1)), Err(FileError::TooLong));
        assert_eq!(files.write(&format!("/{}", "x".repeat(PATH)), b""), Err(FileError::TooLong));
        assert_eq!(files.write("/big", &vec![0; DISK + 1]), Err(FileError::NoSpace));
        let many = (0..=NODES).map(|n| files.write(&format!("/run/{n}"), b""));
        assert_eq!(many.last(), Some(Err(FileError::NoSpace)));
    }
}
