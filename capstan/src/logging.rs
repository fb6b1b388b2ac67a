//! Log output: to stderr, so that stdout stays data.

use std::io::IsTerminal;

use capstan_view::Paint;
use tracing_subscriber::EnvFilter;

/// Starts logging; `CAPSTAN_LOG` chooses what (`info`, `capstan_apiserver=debug`, …).
pub fn start() {
    let filter = EnvFilter::try_from_env("CAPSTAN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let colour = crate::output::colours(std::io::stderr().is_terminal()) == Paint::Colours;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr).init();
}
