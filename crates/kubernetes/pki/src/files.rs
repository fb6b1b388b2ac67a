//! Key files: whole or not there, and keys readable by their owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::PkiError;

/// Permissions of a file.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Owner,
    Everybody,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PkiError {
    let path = path.to_owned();
    move |source| PkiError::File { path, source }
}

pub(super) fn create_directory(path: &Path) -> Result<(), PkiError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// The text of a file, none if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Writes beside the file and renames, so that a crash leaves the old one or the new one.
pub(super) fn write(path: &Path, text: &str, access: Access) -> Result<(), PkiError> {
    let mode = match access {
        Access::Owner => 0o600,
        Access::Everybody => 0o644,
    };
    let beside = path.with_extension("new");
    let written = || -> io::Result<()> {
        // A leftover of a crash may have other permissions.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        if let Some(directory) = path.parent() {
            fs::File::open(directory)?.sync_all()?;
        }
        Ok(())
    };
    written().map_err(failed(path))
}
