//! Processes that outlive this one, identified by pid and start time.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::run::{at, read_if_exists};
use crate::backend::BackendError;

/// Polling interval while a process ends.
const LOOK: Duration = Duration::from_millis(20);

/// A process, identified by pid and start time: pids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pid: i32,
    began: u64,
}

impl Process {
    /// The process recorded in a file.
    pub(super) fn recorded(path: &Path) -> Result<Option<Self>, BackendError> {
        let Some(text) = read_if_exists(path)? else { return Ok(None) };
        let mut words = text.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let began = words.next().and_then(|word| word.parse().ok());
        Ok(pid.zip(began).map(|(pid, began)| Self { pid, began }))
    }

    /// The current process with a pid.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        Some(Self { pid, began: stat(pid)?.1 })
    }

    /// The content of the file.
    pub(super) fn record(self) -> String {
        format!("{} {}\n", self.pid, self.began)
    }

    /// It exists, is the same process, and is not a zombie.
    pub(super) fn runs(self) -> bool {
        stat(self.pid).is_some_and(|(state, began)| began == self.began && state != 'Z' && state != 'X')
    }

    /// Kills it and waits until it is gone.
    pub(super) fn kill(self, timeout: Duration) -> Result<(), BackendError> {
        let until = Instant::now() + timeout;
        while self.runs() {
            if let Some(pid) = Pid::from_raw(self.pid) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
            if Instant::now() > until {
                let what = format!("end process {}", self.pid);
                return Err(BackendError::Failed { what, why: format!("it still exists after {timeout:?}") });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// State and start time of a process. The name before them may contain anything, so parsing starts after its end.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Starts a program in its own session with output to a file; it continues when this process ends.
pub(super) fn detached(command: &mut Command, log: &Path) -> Result<Child, BackendError> {
    let file = || {
        use std::os::unix::fs::OpenOptionsExt;
        File::options().create(true).append(true).mode(0o600).open(log).map_err(at(log))
    };
    let what = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(file()?).stderr(file()?).spawn();
    child.map_err(|error| BackendError::Failed { what, why: error.to_string() })
}

/// Reaps a child in the background, so that it does not stay a zombie.
pub(super) fn forget(mut child: Child) {
    std::thread::spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let process = Process::of(child.id()).expect("it runs");
        assert!(process.runs());
        assert!(!Process { began: process.began + 1, ..process }.runs());
        process.kill(Duration::from_secs(5)).expect("killed");
        assert!(!process.runs(), "a name alone does not run");
        child.wait().expect("gone");

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pid");
        assert_eq!(Process::recorded(&path).expect("read"), None);
        std::fs::write(&path, process.record()).expect("written");
        assert_eq!(Process::recorded(&path).expect("read"), Some(process));
    }
}
