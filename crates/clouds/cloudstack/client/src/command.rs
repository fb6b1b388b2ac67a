//! What a command is.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a command does to the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Read,
    /// Something.
    Change,
}

impl Effect {
    /// The server's own rule, by which it decides what may be sent by GET.
    pub(crate) fn of(command: &str) -> Self {
        match ["get", "list", "query", "find"].iter().any(|prefix| command.starts_with(prefix)) {
            true => Self::Read,
            false => Self::Change,
        }
    }
}

/// A command: its fields are its parameters, under the names that CloudStack gives them.
pub trait Command: Serialize + Send + Sync {
    /// The name, with capitals as the server has them.
    const NAME: &'static str;
}

/// A command that lists things.
pub trait List: Command {
    /// What is listed.
    type Item: DeserializeOwned + Send + Sync + 'static;
    /// Where the entries stand in the answer.
    const KEY: &'static str;
}

/// A list of things that change so rarely that it can be remembered.
pub trait Stable: List {}

/// A command that answers at once.
pub trait Call: Command {
    /// The answer.
    type Answer: DeserializeOwned + Send;
    /// Where it stands, if not at the top.
    const KEY: Option<&'static str>;
}

/// A command that begins a job.
pub trait Job: Command {
    /// The id of what the job makes.
    type Id: DeserializeOwned + Send;
    /// The result of the job.
    type Outcome: DeserializeOwned + Send;
    /// Where it stands, if not at the top.
    const KEY: Option<&'static str>;
}

/// Declares commands that list things: `ListZones: "listZones" => "zone" Zone`.
macro_rules! lists {
    ($($command:ty: $name:literal => $key:literal $item:ty;)*) => {$(
        impl $crate::Command for $command {
            const NAME: &'static str = $name;
        }
        impl $crate::List for $command {
            type Item = $item;
            const KEY: &'static str = $key;
        }
    )*};
}

/// Declares commands that answer at once.
macro_rules! calls {
    ($($command:ty: $name:literal => $($key:literal)? $answer:ty;)*) => {$(
        impl $crate::Command for $command {
            const NAME: &'static str = $name;
        }
        impl $crate::Call for $command {
            type Answer = $answer;
            const KEY: Option<&'static str> = $crate::command::first(&[$($key)?]);
        }
    )*};
}

/// Declares commands that begin a job, with the id of what it makes.
macro_rules! jobs {
    ($($command:ty: $name:literal [$id:ty] => $($key:literal)? $outcome:ty;)*) => {$(
        impl $crate::Command for $command {
            const NAME: &'static str = $name;
        }
        impl $crate::Job for $command {
            type Id = $id;
            type Outcome = $outcome;
            const KEY: Option<&'static str> = $crate::command::first(&[$($key)?]);
        }
    )*};
}

pub(crate) use {calls, jobs, lists};

pub(crate) const fn first(keys: &[&'static str]) -> Option<&'static str> {
    match keys {
        [key, ..] => Some(key),
        [] => None,
    }
}
