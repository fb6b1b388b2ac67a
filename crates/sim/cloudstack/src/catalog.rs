//! Every command: what it is called, who may call it, which parameters it reads, and what carries it out.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::commands;
use crate::error::Result;
use crate::model::identity::RoleType;

/// A command of the API.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The least of the stock roles that has it.
    pub(crate) role: RoleType,
    /// Parameters as `name`, `name:kind`, with `!` where they must be given. Others are ignored, as the server does.
    pub(crate) reads: &'static str,
    /// Java class of the command without the common prefix, for jobs; synchronous commands need none.
    pub(crate) class: &'static str,
    pub(crate) run: fn(&mut Cloud, &Call) -> Result<Answer>,
}

/// What a parameter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Text of any length.
    LongText,
    Number,
    Flag,
    /// A day, or a moment.
    Date,
    Map,
    /// The id of something.
    Entity(&'static str),
    /// Ids, separated by commas.
    Entities(&'static str),
}

impl Kind {
    /// As `listApis` names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text | Self::LongText => "string",
            Self::Number => "integer",
            Self::Flag => "boolean",
            Self::Date => "date",
            Self::Map => "map",
            Self::Entity(_) => "uuid",
            Self::Entities(_) => "list",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}

impl Command {
    pub(crate) fn lower_name(&self) -> String {
        self.name.to_lowercase()
    }

    pub(crate) fn is_list(&self) -> bool {
        self.name.starts_with("list")
    }

    pub(crate) fn is_async(&self) -> bool {
        !self.class.is_empty()
    }

    /// What the reply is wrapped in; one command answers under another's name, and one under a misspelt one.
    pub(crate) fn wrapper(&self) -> String {
        match self.name {
            "updateVMAffinityGroup" => "updatevirtualmachineresponse".to_owned(),
            "activateProject" => "activaterojectresponse".to_owned(),
            name => format!("{}response", name.to_lowercase()),
        }
    }

    pub(crate) fn parameters(&self) -> impl Iterator<Item = Parameter> {
        let common = if self.is_list() { "page:number pagesize:number keyword" } else { "" };
        self.reads.split_whitespace().chain(common.split_whitespace()).map(|text| {
            let (text, required) = match text.strip_suffix('!') {
                Some(text) => (text, true),
                None => (text, false),
            };
            let (name, kind) = match text.split_once(':') {
                None => (text, Kind::Text),
                Some((name, "long")) => (name, Kind::LongText),
                Some((name, "number")) => (name, Kind::Number),
                Some((name, "flag")) => (name, Kind::Flag),
                Some((name, "date")) => (name, Kind::Date),
                Some((name, "map")) => (name, Kind::Map),
                Some((name, kind)) => match kind.strip_suffix("[]") {
                    Some(kind) => (name, Kind::Entities(kind)),
                    None => (name, Kind::Entity(kind)),
                },
            };
            Parameter { name, kind, required }
        })
    }
}

/// The command of a name, whose case matters.
pub(crate) fn command(name: &str) -> Option<&'static Command> {
    static BY_NAME: OnceLock<BTreeMap<&'static str, &'static Command>> = OnceLock::new();
    BY_NAME.get_or_init(|| all().map(|command| (command.name, command)).collect()).get(name).copied()
}

pub(crate) fn all() -> impl Iterator<Item = &'static Command> {
    commands::ALL.iter().flat_map(|table| table.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entity_that_a_command_names_is_one_that_the_cloud_knows() {
        for command in all() {
            for parameter in command.parameters() {
                if let Kind::Entity(kind) | Kind::Entities(kind) = parameter.kind {
                    assert!(
                        Cloud::ENTITIES.contains(&kind),
                        "{} reads {}:{kind}",
                        command.name,
                        parameter.name
                    );
                }
            }
        }
    }

    #[test]
    fn no_command_stands_in_two_tables() {
        let mut names: Vec<_> = all().map(|command| command.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
