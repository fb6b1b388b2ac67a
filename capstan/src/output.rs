//! What commands say: data on stdout, talk on stderr, colours for terminals alone. The one place that prints.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Result;
use capstan_provider_kit::{ProviderError, Terminal};
use capstan_view::Paint;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For people with a wide terminal: nothing is left out
    Wide,
    /// One KIND/NAME per line
    Name,
    /// For programs
    Json,
    /// For programs, and for people with time
    Yaml,
}

/// The argument that chooses it.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct OutputArgs {
    /// How to write it
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Data that a command shows.
pub trait Show: Serialize {
    /// As people read it.
    fn text(&self, how: &How) -> String;
    /// `Kind/name` of what it is about, one each.
    fn names(&self) -> Vec<String>;
}

/// What text is written for.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Nothing is left out.
    pub wide: bool,
    /// Whether to use colours.
    pub paint: Paint,
    /// The moment that ages count from.
    pub now: Timestamp,
}

impl How {
    /// As short as can be, without colours.
    pub fn plain() -> Self {
        Self { wide: false, paint: Paint::Plain, now: Timestamp::now() }
    }
}

impl OutputArgs {
    /// For people.
    pub fn is_text(&self) -> bool {
        matches!(self.output, Format::Text | Format::Wide)
    }

    /// Writes data to stdout in the form that was asked for.
    pub fn show(&self, data: &impl Show) -> Result<()> {
        let how = How { wide: self.output == Format::Wide, paint: paint(), now: Timestamp::now() };
        let written = match self.output {
            Format::Text | Format::Wide => data.text(&how),
            Format::Name => data.names().join("\n"),
            Format::Json => serde_json::to_string_pretty(data)?,
            Format::Yaml => serde_saphyr::to_string(data)?,
        };
        match written.trim_end() {
            "" => Ok(()),
            written => say(written),
        }
    }
}

/// What a command did to an object, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deed {
    /// `kind/name`.
    pub object: String,
    /// What, in a few words.
    pub what: String,
    /// It was not done.
    pub dry_run: bool,
    /// The same as a sentence.
    #[serde(skip)]
    pub sentence: String,
}

/// Tells deeds: people as they are done, programs when all are.
pub struct Deeds {
    output: OutputArgs,
    done: Vec<Deed>,
}

impl Deeds {
    /// Nothing is done yet.
    pub fn new(output: OutputArgs) -> Self {
        Self { output, done: Vec::new() }
    }

    /// Tells of one more.
    pub fn tell(&mut self, deed: Deed) -> Result<()> {
        if self.output.is_text() {
            say(&deed.sentence)?;
        }
        self.done.push(deed);
        Ok(())
    }

    /// Says something that is no deed.
    pub fn remark(&self, words: &str) -> Result<()> {
        if self.output.is_text() {
            return say(words);
        }
        talk(words);
        Ok(())
    }

    /// Tells programs of all; of what was done before something failed, too.
    pub fn end(&self) -> Result<()> {
        if self.output.is_text() { Ok(()) } else { self.output.show(self) }
    }
}

impl Serialize for Deeds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.done.serialize(serializer)
    }
}

impl Show for Deeds {
    fn text(&self, _: &How) -> String {
        self.done.iter().map(|deed| format!("{}\n", deed.sentence)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.done.iter().map(|deed| deed.object.clone()).collect()
    }
}

/// Whether stdout takes colours.
pub fn paint() -> Paint {
    colours(std::io::stdout().is_terminal())
}

/// Colours for terminals, unless `NO_COLOR` is set to anything.
pub fn colours(terminal: bool) -> Paint {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused { Paint::Colours } else { Paint::Plain }
}

/// Says something on stdout, line by line. A reader that has seen enough is no error.
pub fn say(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Says something to whoever watches, on stderr; whether anybody does makes no difference.
pub fn talk(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Stdout and the signals of this process, for what providers run.
pub struct Stdio;

impl Terminal for Stdio {
    fn say(&self, text: &str) -> Result<(), ProviderError> {
        say(text).map_err(|error| ProviderError::caused_by("stdout", error))
    }

    fn stopped(&self) -> BoxFuture<'static, ()> {
        Box::pin(crate::signals::stop())
    }
}
