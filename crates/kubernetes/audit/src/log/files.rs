//! The current file and the rotated ones.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

use super::LogOptions;
use super::chain::last_break;

pub(super) struct Files {
    options: LogOptions,
    file: File,
    bytes: u64,
}

impl Files {
    /// Opens the current file to append to it. A line that a crash cut short is removed: it was never acknowledged whole.
    pub fn open(options: LogOptions) -> io::Result<Self> {
        let mut file = open(&options.path)?;
        let bytes = end_of_last_line(&mut file)?;
        file.set_len(bytes)?;
        Ok(Self { options, file, bytes })
    }

    /// An open file, as if it were empty.
    #[cfg(test)]
    pub fn on(file: File, options: LogOptions) -> Self {
        Self { options, file, bytes: 0 }
    }

    /// Bytes that fit into the current file; all that a new one holds if it is full.
    pub fn room(&self) -> u64 {
        match self.options.max_bytes.saturating_sub(self.bytes) {
            0 => self.options.max_bytes,
            room => room,
        }
    }

    /// Appends whole lines, to a new file if they do not fit into this one. On an error the file is as it was.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = lines.len() as u64;
        if self.bytes > 0 && self.bytes + length > self.options.max_bytes {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(lines) {
            self.file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut name = rotated_name(&self.options.path, Timestamp::now());
        // Two rotations in one millisecond keep their order.
        while name.exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            name = rotated_name(&self.options.path, Timestamp::now());
        }
        std::fs::rename(&self.options.path, name)?;
        self.file = open(&self.options.path)?;
        self.bytes = 0;
        self.remove_old()
    }

    fn remove_old(&self) -> io::Result<()> {
        let mut files = rotated(&self.options.path)?;
        if self.options.max_backups > 0 {
            let surplus = files.len().saturating_sub(self.options.max_backups);
            for file in files.drain(..surplus) {
                std::fs::remove_file(file)?;
            }
        }
        if self.options.max_age.is_zero() {
            return Ok(());
        }
        for file in files {
            let age = SystemTime::now().duration_since(std::fs::metadata(&file)?.modified()?);
            if age.is_ok_and(|age| age > self.options.max_age) {
                std::fs::remove_file(file)?;
            }
        }
        Ok(())
    }
}

/// Readable by its owner only: bodies may contain Secrets.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    Ok(last_break(file, length)?.map_or(0, |at| at + 1))
}

/// `audit-2026-11-17T15-40-00.000.log` for `audit.log`, as upstream names them.
fn rotated_name(path: &Path, now: Timestamp) -> PathBuf {
    let (stem, extension) = parts(path);
    let time = format!("{now:.3}").replace(':', "-").trim_end_matches('Z').to_owned();
    path.with_file_name(format!("{stem}-{time}{extension}"))
}

fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = text(path.extension());
    (text(path.file_stem()), if extension.is_empty() { extension } else { format!(".{extension}") })
}

/// The rotated files of a log, oldest first.
pub(super) fn rotated(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (stem, extension) = parts(path);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let time = name.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(&extension));
        if time.is_some_and(|time| time.len() == "2026-11-17T15-40-00.000".len() && time.contains('T')) {
            files.push(entry.path());
        }
    }
    // Their names sort by time.
    files.sort();
    Ok(files)
}
