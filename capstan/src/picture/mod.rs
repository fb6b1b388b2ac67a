//! `capstan describe` and `capstan why`: a cluster as people look at it, on any server that speaks Cluster API.

mod describe;
mod reach;
mod why;

pub use describe::{Args as DescribeArgs, run as describe};
pub use why::{Args as WhyArgs, run as why};

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// For programs, and for people with time
    Yaml,
}

impl Format {
    /// The document in this form, or what `text` says.
    fn write<T: serde::Serialize>(self, document: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        let written = match self {
            Self::Text => text(),
            Self::Json => serde_json::to_string_pretty(document)?,
            Self::Yaml => serde_saphyr::to_string(document)?,
        };
        crate::output::say(written.trim_end())
    }
}
