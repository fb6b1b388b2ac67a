//! Questions on a terminal.

use std::io::{BufRead as _, Write as _};

use anyhow::{Context, Result};

/// Prints a question and reads the line that answers it; `None` if the input ends without one.
pub fn ask(question: &str) -> Result<Option<String>> {
    let mut out = std::io::stderr();
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")? == 0 {
        // What is printed next does not belong to the question.
        writeln!(out)?;
        return Ok(None);
    }
    Ok(Some(answer.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Whether the answer to a question is yes.
pub fn confirm(question: &str) -> Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(answer.is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes")))
}
