//! A program started by a suite: own process group, own log, killed when dropped.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Process groups that must not outlive this process.
static LIVE: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub struct Program {
    name: String,
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    typed_to: bool,
}

impl Program {
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            typed_to: false,
        }
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn args<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Connects standard input, for [`Process::write`].
    pub fn typed_to(mut self) -> Self {
        self.typed_to = true;
        self
    }

    /// Starts it. Appends output to `<logs>/<name>.log`.
    pub fn start(self, logs: &Path) -> Result<Process> {
        let log = logs.join(format!("{}.log", self.name));
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("open {}", log.display()))?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(if self.typed_to { Stdio::piped() } else { Stdio::null() })
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {}", self.path.display()))?;
        let group = Pid::from_child(&child);
        if let Ok(mut live) = LIVE.lock() {
            live.push(group);
        }
        Ok(Process { name: self.name, child, group, log, status: None })
    }
}

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    log: PathBuf,
    status: Option<ExitStatus>,
}

/// How a program ended that was waited for.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    Exited,
    TimedOut,
}

/// Resident memory and CPU time of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub resident: u64,
    pub peak: u64,
    pub cpu: Duration,
}

impl Process {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to standard input.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        use std::io::Write as _;
        let input = self.child.stdin.as_mut().context("standard input is not connected")?;
        input.write_all(bytes).and_then(|()| input.flush()).with_context(|| format!("write to {}", self.name))
    }

    /// Sends a signal to its process group.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process_group(self.group, signal).with_context(|| format!("signal {}", self.name))
    }

    /// The exit status, once it has been waited for.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Warnings and errors in the log of a program of ours.
    pub fn logged_warnings(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(&self.log)?;
        let complains = |line: &&str| [" WARN ", "ERROR "].iter().any(|level| line.contains(level));
        Ok(log.lines().filter(complains).map(|line| format!("{}: {line}", self.name)).collect())
    }

    /// Fails with the end of the log if the program has exited.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.exited()? {
            bail!(
                "{} exited early ({status}); {} ends with\n{}",
                self.name,
                self.log.display(),
                tail(&self.log, 15)
            );
        }
        Ok(())
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Waits until it exits. Kills it after `limit`.
    pub async fn wait(&mut self, limit: Duration) -> Result<Ending> {
        let deadline = Instant::now() + limit;
        loop {
            if self.exited()?.is_some() {
                self.forget();
                return Ok(Ending::Exited);
            }
            if Instant::now() > deadline {
                self.kill()?;
                return Ok(Ending::TimedOut);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends SIGTERM, and SIGKILL if it has not exited within `timeout`.
    pub fn stop(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let _ = kill_process_group(self.group, Signal::TERM);
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if let Some(status) = self.exited()? {
                self.forget();
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill()
    }

    /// Sends SIGKILL and waits until it has exited.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.exited()? {
            self.forget();
            return Ok(status);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().with_context(|| format!("wait for {}", self.name))?;
        self.status = Some(status);
        self.forget();
        Ok(status)
    }

    fn forget(&self) {
        if let Ok(mut live) = LIVE.lock() {
            live.retain(|group| *group != self.group);
        }
    }

    /// Memory and CPU time so far.
    pub fn usage(&self) -> Result<Usage> {
        usage_of(self.id()).with_context(|| format!("read the memory of {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Memory and CPU time of any process, from /proc.
pub fn usage_of(id: u32) -> Result<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let kib = |field: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(field)).context("no such field")?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse::<u64>()? * 1024)
    };
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = stat.rsplit_once(')').context("malformed stat")?.1;
    let ticks = |position: usize| -> Result<u64> {
        Ok(after_name.split_whitespace().nth(position).context("malformed stat")?.parse()?)
    };
    // Linux counts these in units of 1/100 s on every architecture we build for.
    let cpu = Duration::from_millis((ticks(11)? + ticks(12)?) * 10);
    Ok(Usage { resident: kib("VmRSS:")?, peak: kib("VmHWM:")?, cpu })
}

/// The last lines of a file.
pub fn tail(path: &Path, lines: usize) -> String {
    let text =
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Actions to run when a signal ends this process.
static AT_SIGNAL: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Registers an action that runs when a signal ends this process, after every program started here was killed.
pub fn at_signal(action: impl FnOnce() + Send + 'static) {
    if let Ok(mut actions) = AT_SIGNAL.lock() {
        actions.push(Box::new(action));
    }
}

/// On Ctrl-C and SIGTERM, kills every program started here, last one first, and then exits.
pub fn end_with_children_on_signals() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if let Ok(live) = LIVE.lock() {
            for group in live.iter().rev() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
        }
        if let Ok(mut actions) = AT_SIGNAL.lock() {
            actions.drain(..).rev().for_each(|action| action());
        }
        std::process::exit(130);
    });
    Ok(())
}
