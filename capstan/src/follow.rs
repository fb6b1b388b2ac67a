//! Following a cluster until it is as wanted: a tree that is drawn again in place, or a line for every transition.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use capstan_view::{Facts, Tree, clipped, draw, why};
use jiff::Timestamp;

use crate::output::{colours, say};
use crate::picture;
use crate::reach::Management;

/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// Size of a terminal that does not tell.
const SIZE: (usize, usize) = (100, 40);

/// How following ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The cluster is as wanted.
    Ready,
    /// It is gone.
    Gone,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// It was not there in time.
    TimedOut,
    /// An error stood in the way longer than anybody wanted to wait: its code.
    Blocked(String),
}

/// How long to wait, and for what.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// At most this long.
    pub timeout: Option<Duration>,
    /// At most this long with the same error in the way.
    pub patience: Option<Duration>,
    /// Looks in a row that have to find it as wanted: what was only just asked for may not have been noticed.
    pub looks: u32,
}

/// Where the course of things is shown.
pub enum Screen {
    /// A tree, drawn again in place.
    Live {
        /// Lines that were drawn.
        drawn: usize,
        /// Width and height of the terminal.
        size: (usize, usize),
    },
    /// A line for every transition.
    Lines {
        /// What was told.
        told: Facts,
        /// When the first line was.
        began: Instant,
    },
}

impl Screen {
    /// In place on a terminal, unless lines are wanted.
    pub fn new(lines: bool) -> Self {
        if lines || !std::io::stdout().is_terminal() {
            Self::lines()
        } else {
            Self::Live { drawn: 0, size: size() }
        }
    }

    /// A line for every transition.
    pub fn lines() -> Self {
        Self::Lines { told: Facts::default(), began: Instant::now() }
    }

    /// Takes what is so for told: only what changes from here on is.
    pub fn know(&mut self, tree: &Tree) {
        if let Self::Lines { told, .. } = self {
            *told = Facts::of(tree);
        }
    }

    /// Shows a tree as it is now.
    pub fn show(&mut self, tree: &Tree, now: Timestamp) -> Result<()> {
        match self {
            Self::Lines { told, began } => {
                let facts = Facts::of(tree);
                for line in facts.since(told) {
                    say(&format!("{:>6.1}s  {line}", began.elapsed().as_secs_f64()))?;
                }
                *told = facts;
            }
            Self::Live { drawn, size: (width, height) } => {
                let picture = draw(tree, false, now, colours(true));
                // The end of it tells the most: how far the operation is.
                let lines: Vec<&str> = picture.lines().collect();
                let shown = &lines[lines.len().saturating_sub(height.saturating_sub(1))..];
                let mut text = if *drawn > 0 { format!("\u{1b}[{drawn}A\u{1b}[J") } else { String::new() };
                for line in shown {
                    text.push_str(&clipped(line, *width));
                    text.push('\n');
                }
                *drawn = shown.len();
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

/// Width and height of the terminal that this runs on, asked once: whoever makes it smaller sees less.
fn size() -> (usize, usize) {
    let asked = std::process::Command::new("stty").arg("size").stdin(std::process::Stdio::inherit()).output();
    let told = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let told = told.and_then(|text| {
        let (rows, columns) = text.trim().split_once(' ')?;
        Some((columns.parse().ok()?, rows.parse().ok()?))
    });
    told.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(SIZE)
}

/// The error that is in the way.
fn error(tree: &Tree) -> Option<String> {
    let blocked =
        tree.part.operation.as_ref().and_then(|operation| operation.blocked_by.as_ref()?.code.clone());
    blocked.or_else(|| why(tree).and_then(|why| why.cause.code))
}

/// Shows a cluster until it is as wanted, gone, or `limits` are reached.
pub async fn follow(
    management: &Management,
    cluster: &str,
    screen: &mut Screen,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<Ending> {
    tokio::pin!(stop);
    let began = Instant::now();
    let mut found = 0;
    let mut blocked: Option<(String, Instant)> = None;
    loop {
        let Some(tree) = picture::seek(management, cluster).await? else { return Ok(Ending::Gone) };
        screen.show(&tree, Timestamp::now())?;
        found = if tree.is_as_wanted() { found + 1 } else { 0 };
        if found >= limits.looks.max(1) {
            return Ok(Ending::Ready);
        }
        blocked = error(&tree).map(|code| match blocked.take() {
            Some((before, since)) if before == code => (before, since),
            _ => (code, Instant::now()),
        });
        if let (Some((code, since)), Some(patience)) = (&blocked, limits.patience)
            && since.elapsed() > patience
        {
            return Ok(Ending::Blocked(code.clone()));
        }
        if limits.timeout.is_some_and(|timeout| began.elapsed() > timeout) {
            return Ok(Ending::TimedOut);
        }
        tokio::select! {
            () = &mut stop => return Ok(Ending::Interrupted),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Tells every transition of a cluster from here on, until `stop` resolves.
pub async fn watch(
    management: &Management,
    cluster: &str,
    screen: &mut Screen,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    tokio::pin!(stop);
    if let Some(tree) = picture::seek(management, cluster).await? {
        screen.know(&tree);
    }
    loop {
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Some(tree) = picture::seek(management, cluster).await? {
            screen.show(&tree, Timestamp::now())?;
        }
    }
}
