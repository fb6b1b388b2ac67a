//! Running programs, and writing files atomically.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::backend::BackendError;

/// Maximum length of a program's output in errors.
const SHOWN: usize = 500;

/// Runs a program and returns its output.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, BackendError> {
    let what = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| BackendError::Failed { what: what(), why: error.to_string() })?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr);
        let why: String = output_text.trim().chars().take(SHOWN).collect();
        return Err(BackendError::Failed { what: what(), why: format!("{} ({})", why, output.status) });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Adds the path to an I/O error.
pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> BackendError + '_ {
    move |source| BackendError::File { path: path.to_owned(), source }
}

/// Writes a file atomically.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), BackendError> {
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&unfinished, content).map_err(at(&unfinished))?;
    std::fs::rename(&unfinished, path).map_err(at(path))
}

/// The content of a file, if it exists.
pub(super) fn read_if_exists(path: &Path) -> Result<Option<String>, BackendError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Creates a directory that only root can read, and its parents.
pub(super) fn make_folder(path: &Path) -> Result<(), BackendError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Removes a directory recursively; a missing one counts as removed.
pub(super) fn remove_folder(path: &Path) -> Result<(), BackendError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// A short stable name of an id, for interfaces and network namespaces.
pub(super) fn short(id: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(id.as_bytes()).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_fits_the_name_of_an_interface() {
        assert_eq!(short("a"), short("a"));
        assert_ne!(short("a"), short("b"));
        assert!(short("a").len() + "cap-".len() < 16);
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let error = run("sh", &["-c", "echo no such thing >&2; exit 3"]).expect_err("it fails");
        assert!(error.to_string().contains("no such thing (exit status: 3)"), "{error}");
    }
}
