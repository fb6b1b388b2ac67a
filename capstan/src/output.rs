//! What commands say on stdout: the one place that prints it.

use std::io::Write;

use anyhow::Result;

/// Says something, line by line.
pub fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
