//! Questions on a terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::Command;

use anyhow::{Context, Result, bail};
use capstan_provider_kit::{CredentialValues, Question, Surveyor};

use crate::output::eprint_line;

/// Choices that are shown.
const MOST: usize = 20;

/// The credentials, from the environment or a terminal.
pub fn credentials(surveyor: &dyn Surveyor, yes: bool) -> Result<CredentialValues> {
    let mut values = CredentialValues::new();
    let missing: Vec<&str> = surveyor
        .credentials()
        .iter()
        .map(|field| field.variable)
        .filter(|variable| std::env::var(variable).is_err())
        .collect();
    if !missing.is_empty() && (yes || !is_terminal()) {
        bail!("no credentials: set {} in the environment", missing.join(", "));
    }
    for field in surveyor.credentials() {
        let value = match std::env::var(field.variable) {
            Ok(value) => value,
            Err(_) if field.secret => hidden(field.field)?,
            Err(_) if field.is_file => line(&format!("path of {}: ", field.field))?,
            Err(_) => line(&format!("{}: ", field.field))?,
        };
        let value = match field.is_file {
            true => std::fs::read_to_string(value.trim())
                .with_context(|| format!("{}: cannot read {}", field.field, value.trim()))?,
            false => value,
        };
        if value.trim().is_empty() {
            bail!("{} is empty: set {} in the environment", field.field, field.variable);
        }
        values.insert(field.field.to_owned(), value.trim().to_owned());
    }
    Ok(values)
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The answer to a question; without a terminal the proposal.
pub fn question(question: &Question, yes: bool) -> Result<String> {
    let Some(proposed) = question.choices.first() else {
        if question.open && !yes && is_terminal() {
            return read_choice(question, "");
        }
        bail!("the cloud has no {}; use --set {}=VALUE", question.title, question.variable);
    };
    if yes || !is_terminal() {
        return Ok(proposed.value.clone());
    }
    read_choice(question, &proposed.value)
}

fn read_choice(question: &Question, proposed: &str) -> Result<String> {
    let mut text = format!("{}:\n", question.title);
    for (number, choice) in question.choices.iter().enumerate().take(MOST) {
        let note = if choice.note.is_empty() { String::new() } else { format!("  ({})", choice.note) };
        text.push_str(&format!("  {}. {}{note}\n", number + 1, choice.value));
    }
    if question.choices.len() > MOST {
        text.push_str(&format!("  and {} more, by name\n", question.choices.len() - MOST));
    }
    eprint_line(text.trim_end());
    loop {
        let typed = line(&format!("number or name [{proposed}]: "))?;
        match chosen(question, typed.trim()) {
            Some(value) => return Ok(value),
            None => eprint_line(&format!("{:?} is not one of them", typed.trim())),
        }
    }
}

/// What was typed, as a value: nothing is the proposal.
fn chosen(question: &Question, typed: &str) -> Option<String> {
    let choices = &question.choices;
    if typed.is_empty() {
        return choices.first().map(|choice| choice.value.clone());
    }
    if let Some(choice) = choices.iter().find(|choice| choice.value == typed) {
        return Some(choice.value.clone());
    }
    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    // Where a number is a value, as in the count of machines, it is not a position.
    let counts = choices.iter().all(|choice| choice.value.parse::<u32>().is_ok());
    match number.filter(|_| !counts).and_then(|number| choices.get(number)) {
        Some(choice) => Some(choice.value.clone()),
        None => question.open.then(|| typed.to_owned()),
    }
}

fn line(prompt: &str) -> Result<String> {
    let mut out = std::io::stderr();
    write!(out, "{prompt}")?;
    out.flush()?;
    let mut text = String::new();
    let read = std::io::stdin().lock().read_line(&mut text).context("cannot read the answer")?;
    if read == 0 {
        bail!("no answer: nothing was written");
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads a line without echo.
fn hidden(what: &str) -> Result<String> {
    let echo = |mode: &str| Command::new("stty").arg(mode).status().is_ok_and(|status| status.success());
    if !echo("-echo") {
        bail!("{what} would be shown while it is typed: set it in the environment instead");
    }
    let text = line(&format!("{what} (not shown): "));
    echo("echo");
    eprint_line("");
    text
}

#[cfg(test)]
mod tests {
    use capstan_provider_kit::Choice;

    use super::*;

    #[test]
    fn an_answer_is_a_number_a_name_or_nothing() {
        let question = |choices: &[&str], open| Question {
            variable: "X",
            title: "x",
            choices: choices.iter().map(|choice| Choice::new(*choice, "")).collect(),
            open,
        };
        let names = question(&["a", "b"], false);
        let counts = question(&["1", "3"], true);
        for (question, typed, expected) in [
            (&names, "", Some("a")),
            (&names, "2", Some("b")),
            (&names, "b", Some("b")),
            (&names, "c", None),
            (&names, "0", None),
            (&counts, "2", Some("2")),
            (&counts, "3", Some("3")),
        ] {
            assert_eq!(chosen(question, typed).as_deref(), expected, "{typed:?}");
        }
    }
}
