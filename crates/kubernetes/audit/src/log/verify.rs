//! Whether the files of a log are as they were written.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::chain::Chain;
use super::files::rotated;

/// Summary of a verified log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Files that were read, oldest first.
    pub files: Vec<PathBuf>,
    /// Number of the first line: above 1 where older files were removed.
    pub first: u64,
    /// Number and hash of the last line. Keep them elsewhere to notice a cut at the end.
    pub last: u64,
    pub hash: String,
}

/// Where a log is not as it was written.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{path} cannot be read")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} line {line}: {problem}")]
    Broken { path: PathBuf, line: usize, problem: String },
    #[error("{0} contains no events")]
    Empty(PathBuf),
}

/// Reads the log at `path` and its rotated files and checks every line against the one before.
pub fn verify(path: &Path) -> Result<Report, VerifyError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| VerifyError::Read { path, source }
    };
    let mut files = rotated(path).map_err(unreadable(path))?;
    if path.exists() || files.is_empty() {
        files.push(path.to_owned());
    }
    let mut chain: Option<Chain> = None;
    let mut first = 0;
    for file in &files {
        let mut reader = BufReader::new(File::open(file).map_err(unreadable(file))?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(unreadable(file))? == 0 {
                break;
            }
            let broken = |problem: String| VerifyError::Broken { path: file.clone(), line: number, problem };
            if line.pop_if(|last| *last == b'\n').is_none() {
                return Err(broken("the line is cut short".to_owned()));
            }
            let Some(next) = Chain::after(&line) else {
                return Err(broken("this is not a line of an audit log".to_owned()));
            };
            // Older files may have been removed: the chain then begins with what the first line states.
            match &chain {
                None if next.sequence == 1 && !Chain::default().is_followed_by(&line) => {
                    return Err(broken("event 1 was changed".to_owned()));
                }
                None => first = next.sequence,
                Some(chain) if next.sequence != chain.sequence + 1 => {
                    return Err(broken(format!(
                        "event {} follows event {}: events were removed, added or moved",
                        next.sequence, chain.sequence
                    )));
                }
                Some(chain) if !chain.is_followed_by(&line) => {
                    return Err(broken(format!("event {} was changed", next.sequence)));
                }
                Some(_) => {}
            }
            chain = Some(next);
        }
    }
    match chain {
        Some(Chain { sequence, hash }) => Ok(Report { files, first, last: sequence, hash }),
        None => Err(VerifyError::Empty(path.to_owned())),
    }
}
