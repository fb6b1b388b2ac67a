//! Log output: to stderr, because stdout is for data, or to a file where the terminal shows a live view.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};
use capstan_controller::TRACE_TARGET;
use capstan_traces::SpanLayer;
use capstan_view::Paint;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Starts logging. `CAPSTAN_LOG` sets the filter (`info`, `capstan_apiserver=debug`, …). `spans` records those of
/// reconciles, whatever that filter is.
pub fn start(spans: Option<SpanLayer>) -> Result<()> {
    let filter = filter()?;
    let colour = crate::output::colours(std::io::stderr().is_terminal()) == Paint::Colours;
    let lines = tracing_subscriber::fmt::layer().with_ansi(colour).with_writer(std::io::stderr);
    let recorded = Targets::new().with_target(TRACE_TARGET, LevelFilter::INFO);
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(spans.map(|spans| spans.with_filter(recorded)))
        .init();
    Ok(())
}

/// Starts logging; appends to a file.
pub fn start_in(file: &Path) -> Result<()> {
    let opened = File::options().create(true).append(true).open(file);
    let opened = opened.with_context(|| format!("{} cannot be written", file.display()))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter()?)
        .with_ansi(false)
        .with_writer(Mutex::new(opened))
        .init();
    Ok(())
}

fn filter() -> Result<EnvFilter> {
    let text = std::env::var("CAPSTAN_LOG").unwrap_or_default();
    parsed(&text)
}

/// Frames of HTTP/2 and TLS would drown `debug`: they are logged only where the filter names these crates.
fn parsed(text: &str) -> Result<EnvFilter> {
    const NOISY: [&str; 4] = ["h2", "hyper", "hyper_util", "rustls"];
    let text = if text.trim().is_empty() { "info" } else { text };
    // Its cause says the same again.
    let mut filter = EnvFilter::try_new(text).map_err(|error| {
        anyhow!(
            "CAPSTAN_LOG={text} is not a log filter such as info or info,capstan_apiserver=debug: {error}"
        )
    })?;
    // Lines name their object; they are not prefixed with spans.
    filter = filter.add_directive(format!("{TRACE_TARGET}=off").parse()?);
    for noisy in NOISY.iter().filter(|noisy| !text.split([',', '=']).any(|word| word.trim() == **noisy)) {
        filter = filter.add_directive(format!("{noisy}=info").parse()?);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn a_filter_is_checked_and_keeps_frames_out_of_debug() {
        assert!(parsed("debug").expect("a filter").to_string().contains("h2=info"));
        assert!(!parsed("info,h2=trace").expect("a filter").to_string().contains("h2=info"));
        assert!(parsed("").expect("the default").to_string().contains("info"));
        for wrong in ["info,capstan=loud", "=debug=x"] {
            let error = parsed(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("CAPSTAN_LOG={wrong} is not a log filter")), "{error}");
        }
    }
}
