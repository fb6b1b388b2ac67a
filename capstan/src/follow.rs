//! Following a cluster until it is ready: a live tree, or a line for every transition.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use capstan_view::{ProgressSnapshot, Tree, draw_within, why};
use futures::FutureExt as _;
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::connection::{Management, Reconnect};
use crate::inspect;
use crate::output::{colours, print_line};

/// Poll interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// Assumed where the terminal does not report its size.
const DEFAULT_SIZE: (usize, usize) = (100, 40);

/// How following ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// After this time.
    Ready(Duration),
    /// The cluster does not exist any more.
    Gone,
    Interrupted,
    TimedOut,
    /// The same error lasted longer than [`Limits::patience`]: its code.
    Blocked(String),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub timeout: Option<Duration>,
    /// How long the same error may last.
    pub patience: Option<Duration>,
    /// How long it takes by a plan, for the estimate of the time left.
    pub planned: Option<Duration>,
    /// Polls in a row that must find the cluster ready: controllers may not have observed the last change yet.
    pub ready_polls: u32,
}

/// How progress is shown.
pub enum Screen {
    /// A tree, redrawn in place.
    Live {
        /// Lines of the last drawing.
        drawn: usize,
        /// Width and height of the terminal.
        size: (usize, usize),
        /// Notified when the terminal has another size.
        resized: Option<Signal>,
    },
    /// A line for every transition.
    Lines { printed: ProgressSnapshot, started: Instant },
}

impl Screen {
    /// Live on a terminal, unless `lines`.
    pub fn new(lines: bool) -> Self {
        if lines || !std::io::stdout().is_terminal() {
            Self::lines()
        } else {
            Self::Live { drawn: 0, size: size(), resized: signal(SignalKind::window_change()).ok() }
        }
    }

    pub fn lines() -> Self {
        Self::Lines { printed: ProgressSnapshot::default(), started: Instant::now() }
    }

    /// Only changes from this state on are printed.
    pub fn set_baseline(&mut self, tree: &Tree) {
        if let Self::Lines { printed, .. } = self {
            *printed = ProgressSnapshot::of(tree);
        }
    }

    pub fn show(&mut self, tree: &Tree, now: Timestamp) -> Result<()> {
        match self {
            Self::Lines { printed, started } => {
                let current = ProgressSnapshot::of(tree);
                for line in current.changes_since(printed) {
                    print_line(&format!("{:>6.1}s  {line}", started.elapsed().as_secs_f64()))?;
                }
                *printed = current;
            }
            Self::Live { drawn, size, resized } => {
                let mut text = if *drawn > 0 { format!("\u{1b}[{drawn}A\u{1b}[J") } else { String::new() };
                if resized.as_mut().is_some_and(has_come) {
                    *size = self::size();
                    // Nobody knows how the terminal has wrapped the old lines.
                    text = "\u{1b}[H\u{1b}[J".to_owned();
                }
                // The cursor is on the line after the last.
                let (width, height) = (size.0, size.1.saturating_sub(1));
                let lines = draw_within(tree, now, colours(true), (width, height));
                for line in &lines {
                    text.push_str(line);
                    text.push('\n');
                }
                *drawn = lines.len();
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

/// Whether a signal has come since the last call.
fn has_come(signal: &mut Signal) -> bool {
    let mut come = false;
    while signal.recv().now_or_never().flatten().is_some() {
        come = true;
    }
    come
}

/// Width and height of the terminal.
fn size() -> (usize, usize) {
    let asked = std::process::Command::new("stty").arg("size").stdin(std::process::Stdio::inherit()).output();
    let text = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let size = text.and_then(|text| {
        let (rows, columns) = text.trim().split_once(' ')?;
        Some((columns.parse().ok()?, rows.parse().ok()?))
    });
    size.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(DEFAULT_SIZE)
}

/// Code of the error that blocks the cluster.
fn blocking_code(tree: &Tree) -> Option<String> {
    let blocked =
        tree.part.operation.as_ref().and_then(|operation| operation.blocked_by.as_ref()?.code.clone());
    blocked.or_else(|| why(tree, Timestamp::now()).and_then(|why| why.first.cause.code))
}

/// Shows a cluster until it is ready or deleted, or until a limit is reached.
pub async fn follow(
    management: &Management,
    cluster: &str,
    screen: &mut Screen,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<Ending> {
    tokio::pin!(stop);
    let started = Instant::now();
    let mut ready_polls = 0;
    let mut blocked: Option<(String, Instant)> = None;
    let mut connection = Reconnect::default();
    loop {
        let Some(found) = connection.retry(inspect::find_tree(management, cluster).await)? else {
            if limits.timeout.is_some_and(|timeout| started.elapsed() > timeout) {
                return Ok(Ending::TimedOut);
            }
            tokio::select! {
                () = &mut stop => return Ok(Ending::Interrupted),
                () = tokio::time::sleep(INTERVAL) => continue,
            }
        };
        let Some(mut tree) = found else { return Ok(Ending::Gone) };
        tree.part.planned = limits.planned.and_then(|planned| planned.try_into().ok());
        screen.show(&tree, Timestamp::now())?;
        ready_polls = if tree.is_ready() { ready_polls + 1 } else { 0 };
        if ready_polls >= limits.ready_polls.max(1) {
            return Ok(Ending::Ready(started.elapsed()));
        }
        blocked = blocking_code(&tree).map(|code| match blocked.take() {
            Some((before, since)) if before == code => (before, since),
            _ => (code, Instant::now()),
        });
        if let (Some((code, since)), Some(patience)) = (&blocked, limits.patience)
            && since.elapsed() > patience
        {
            return Ok(Ending::Blocked(code.clone()));
        }
        if limits.timeout.is_some_and(|timeout| started.elapsed() > timeout) {
            return Ok(Ending::TimedOut);
        }
        tokio::select! {
            () = &mut stop => return Ok(Ending::Interrupted),
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Prints every transition of a cluster until `stop` resolves.
pub async fn watch(
    management: &Management,
    cluster: &str,
    screen: &mut Screen,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    tokio::pin!(stop);
    if let Some(tree) = inspect::find_tree(management, cluster).await? {
        screen.set_baseline(&tree);
    }
    loop {
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if let Some(tree) = inspect::find_tree(management, cluster).await? {
            screen.show(&tree, Timestamp::now())?;
        }
    }
}
