//! Log output: to stderr, so that stdout stays data, or to a file where a picture is drawn.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use capstan_view::Paint;
use tracing_subscriber::EnvFilter;

/// Starts logging; `CAPSTAN_LOG` chooses what (`info`, `capstan_apiserver=debug`, …).
pub fn start() {
    let filter = filter();
    let colour = crate::output::colours(std::io::stderr().is_terminal()) == Paint::Colours;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr).init();
}

/// Starts logging into a file, after what it holds.
pub fn start_in(file: &Path) -> Result<()> {
    let opened = File::options().create(true).append(true).open(file);
    let opened = opened.with_context(|| format!("{} cannot be written", file.display()))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_ansi(false)
        .with_writer(Mutex::new(opened))
        .init();
    Ok(())
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_env("CAPSTAN_LOG").unwrap_or_else(|_| EnvFilter::new("info"))
}
