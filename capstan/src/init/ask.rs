//! Questions on a terminal.

use std::io::IsTerminal as _;
use std::process::Command;

use anyhow::{Context, Result, bail};
use capstan_provider_kit::{CredentialField, CredentialValues, Question, Shape, Surveyor};

use crate::output::eprint_line;
use crate::prompt;

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
            Ok(text) => checked(field, &text)
                .with_context(|| format!("the value of {} in the environment", field.variable))?,
            Err(_) => loop {
                match checked(field, &typed(field)?) {
                    Ok(value) => break value,
                    Err(why) => eprint_line(&format!("{why:#}")),
                }
            },
        };
        values.insert(field.field.to_owned(), value);
    }
    Ok(values)
}

/// What a user types for a credential.
fn typed(field: &CredentialField) -> Result<String> {
    match field {
        CredentialField { secret: true, .. } => hidden(field.field),
        CredentialField { is_file: true, .. } => line(&format!("path of {}: ", field.field)),
        _ => line(&format!("{}: ", field.field)),
    }
}

/// The value of a credential: the text itself, or the content of the file that it names.
fn checked(field: &CredentialField, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        bail!("{} is empty", field.field);
    }
    if !field.is_file {
        return Ok(text.to_owned());
    }
    let content =
        std::fs::read_to_string(text).with_context(|| format!("{}: cannot read {text}", field.field))?;
    match content.trim() {
        "" => bail!("{}: {text} is empty", field.field),
        content => Ok(content.to_owned()),
    }
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The answer to a question; without a terminal the proposal.
pub fn question(question: &Question, yes: bool) -> Result<String> {
    let Some(proposed) = question.choices.first() else {
        if question.others.is_some() && !yes && is_terminal() {
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
            Ok(value) => return Ok(value),
            Err(why) => eprint_line(&why),
        }
    }
}

/// What was typed, as a value: nothing is the proposal. The error says what is possible.
fn chosen(question: &Question, typed: &str) -> Result<String, String> {
    let choices = &question.choices;
    let first = choices.first().filter(|_| typed.is_empty());
    if let Some(choice) = first.or_else(|| choices.iter().find(|choice| choice.value == typed)) {
        return Ok(choice.value.clone());
    }
    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    // Where a number is a value, as in the count of machines, it is not a position.
    let counts = matches!(question.others, Some(Shape::Count | Shape::OddCount));
    match (number.filter(|_| !counts).and_then(|number| choices.get(number)), question.others) {
        (Some(choice), _) => Ok(choice.value.clone()),
        (None, Some(shape)) => shape.check(typed).map(|()| typed.to_owned()),
        (None, None) => Err(format!("{typed:?} is not one of them")),
    }
}

fn line(question: &str) -> Result<String> {
    prompt::ask(question)?.context("no answer: nothing was written")
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
        let question = |choices: &[&str], others| Question {
            variable: "X",
            title: "x",
            choices: choices.iter().map(|choice| Choice::new(*choice, "")).collect(),
            others,
        };
        let names = question(&["a", "b"], None);
        let counts = question(&["1", "3"], Some(Shape::Count));
        let odd = question(&["1", "3"], Some(Shape::OddCount));
        let version = question(&[], Some(Shape::Version));
        for (question, typed, expected) in [
            (&names, "", Ok("a")),
            (&names, "2", Ok("b")),
            (&names, "b", Ok("b")),
            (&names, "c", Err(r#""c" is not one of them"#)),
            (&names, "0", Err(r#""0" is not one of them"#)),
            (&counts, "2", Ok("2")),
            (&counts, "3", Ok("3")),
            (&counts, "two", Err(r#""two" is not a number of machines"#)),
            (&odd, "5", Ok("5")),
            (&odd, "2", Err("2 is even: a control plane has an odd number of machines")),
            (&version, "v1.36.0", Ok("v1.36.0")),
            (&version, "", Err(r#""" is not a Kubernetes version such as v1.36.0"#)),
            (&version, "v1.36", Err(r#""v1.36" is not a Kubernetes version such as v1.36.0"#)),
        ] {
            let value = chosen(question, typed);
            assert_eq!(value.as_deref().map_err(String::as_str), expected, "{typed:?}");
        }
    }
}
