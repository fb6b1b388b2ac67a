//! Output of commands: data on stdout, notes on stderr, colours only on terminals. Nothing else prints.
//!
//! Text for people has names and messages from servers: it is printed without characters that a terminal acts on. Files and
//! data for programs are printed as they are.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Result;
use capstan_provider_kit::{ProviderError, Terminal};
use capstan_view::{Paint, printable};
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Human-readable
    #[default]
    Text,
    /// Human-readable; all columns and complete messages
    Wide,
    /// One KIND/NAME per line
    Name,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Data that a command prints.
pub trait Show: Serialize {
    /// The text has colours: `capstan_view` draws it, and cleans what is from a server. Other text is cleaned when it is
    /// printed.
    const HAS_COLOURS: bool = false;

    fn text(&self, options: &TextOptions) -> String;
    /// `kind/name` of each object, for `-o name`.
    fn names(&self) -> Vec<String>;
}

#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// All columns, whole messages.
    pub wide: bool,
    pub paint: Paint,
    /// Reference time of ages.
    pub now: Timestamp,
}

impl TextOptions {
    /// Short, without colours.
    pub fn plain() -> Self {
        Self { wide: false, paint: Paint::Plain, now: Timestamp::now() }
    }
}

impl OutputArgs {
    pub fn is_wide(&self) -> bool {
        self.output == Format::Wide
    }

    pub fn is_text(&self) -> bool {
        matches!(self.output, Format::Text | Format::Wide)
    }

    /// Prints data to stdout in the chosen format.
    pub fn show<T: Show>(&self, data: &T) -> Result<()> {
        match self.written(data)?.trim_end() {
            "" => Ok(()),
            written => print_as_it_is(written),
        }
    }

    fn written<T: Show>(&self, data: &T) -> Result<String> {
        let options =
            TextOptions { wide: self.output == Format::Wide, paint: paint(), now: Timestamp::now() };
        Ok(match self.output {
            Format::Text | Format::Wide if T::HAS_COLOURS => data.text(&options),
            Format::Text | Format::Wide => printable(&data.text(&options)).into_owned(),
            Format::Name => printable(&data.names().join("\n")).into_owned(),
            Format::Json => serde_json::to_string_pretty(data)?,
            Format::Yaml => serde_saphyr::to_string(data)?,
        })
    }
}

/// What a command did to an object, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// `kind/name`.
    pub object: String,
    /// Such as `replicas 1 → 3`.
    pub what: String,
    pub dry_run: bool,
    /// The line for people.
    #[serde(skip)]
    pub sentence: String,
}

/// Reports actions: as text one by one, as JSON or YAML all at the end.
pub struct ActionReport {
    output: OutputArgs,
    actions: Vec<Action>,
}

impl ActionReport {
    pub fn new(output: OutputArgs) -> Self {
        Self { output, actions: Vec::new() }
    }

    pub fn record(&mut self, action: Action) -> Result<()> {
        if self.output.is_text() {
            print_line(&action.sentence)?;
        }
        self.actions.push(action);
        Ok(())
    }

    /// Prints a line that is not about an action; to stderr if stdout is for programs.
    pub fn note(&self, text: &str) -> Result<()> {
        if self.output.is_text() {
            return print_line(text);
        }
        eprint_line(text);
        Ok(())
    }

    /// Prints the list for programs; also after a failure, with what was done before it.
    pub fn finish(&self) -> Result<()> {
        if self.output.is_text() { Ok(()) } else { self.output.show(self) }
    }
}

impl Serialize for ActionReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.actions.serialize(serializer)
    }
}

impl Show for ActionReport {
    fn text(&self, _: &TextOptions) -> String {
        self.actions.iter().map(|action| format!("{}\n", action.sentence)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.actions.iter().map(|action| action.object.clone()).collect()
    }
}

pub fn paint() -> Paint {
    colours(std::io::stdout().is_terminal())
}

/// Colours for terminals, unless `NO_COLOR` is set to anything.
pub fn colours(terminal: bool) -> Paint {
    let disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !disabled { Paint::Colours } else { Paint::Plain }
}

/// Prints text for people to stdout. A closed pipe is not an error.
pub fn print_line(text: &str) -> Result<()> {
    print_as_it_is(&printable(text))
}

/// Prints a file, or text that is clean and has colours.
pub fn print_as_it_is(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints a note to stderr, ignoring errors.
pub fn eprint_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// Stdout and the signals of this process, for commands of providers.
pub struct Stdio;

impl Terminal for Stdio {
    fn print(&self, text: &str) -> Result<(), ProviderError> {
        print_as_it_is(text).map_err(|error| ProviderError::caused_by("stdout", error))
    }

    fn stopped(&self) -> BoxFuture<'static, ()> {
        Box::pin(crate::signals::stop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_people_has_no_control_characters_of_a_server() {
        let action = |name: &str| Action {
            object: format!("cluster/{name}"),
            what: "deleted".to_owned(),
            dry_run: false,
            sentence: format!("cluster {name} deleted"),
        };
        for (output, expected) in [
            (Format::Text, "cluster a[2J deleted\ncluster b deleted\n"),
            (Format::Name, "cluster/a[2J\ncluster/b"),
        ] {
            let output = OutputArgs { output };
            let actions = vec![action("a\u{1b}[2J\u{202e}"), action("b")];
            let written = output.written(&ActionReport { output, actions }).expect("text");
            assert_eq!(written, expected, "{output:?}");
        }
    }
}
