//! Syntax tree of a script.

use std::sync::Arc;

/// Commands one after the other.
pub(super) type List = Vec<AndOr>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AndOr {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Connector, Pipeline)>,
    pub(super) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connector {
    And,
    Or,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pipeline {
    pub(super) negated: bool,
    pub(super) commands: Vec<Command>,
}

/// A command with its redirections and its line in the script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) form: Form,
    pub(super) redirects: Vec<Redirect>,
    pub(super) line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Simple { assignments: Vec<(String, Word)>, words: Vec<Word> },
    If { branches: Vec<(List, List)>, otherwise: Option<List> },
    Loop { until: bool, condition: List, body: List },
    For { name: String, words: Option<Vec<Word>>, body: List },
    Case { word: Word, arms: Vec<(Vec<Word>, List)> },
    Group(List),
    Subshell(List),
    Function { name: String, body: Arc<Command> },
}

/// A redirection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    pub(super) stream: u32,
    pub(super) target: Target,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Read(Word),
    Write(Word),
    Append(Word),
    /// `2>&1`.
    Duplicate(Word),
    /// The text of a here-document or here-string.
    Text(Word),
}

/// A word: a sequence of parts.
pub(super) type Word = Vec<Part>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text { text: String, quoted: bool },
    Parameter { name: String, change: Option<Change>, quoted: bool },
    Output { list: List, quoted: bool },
    Arithmetic { expression: Word },
}

/// Modification of a parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    Length,
    /// `:-`, and `-` without the colon.
    Default {
        or_empty: bool,
        word: Word,
    },
    /// `:=`.
    Assign {
        or_empty: bool,
        word: Word,
    },
    /// `:+`.
    Alternative {
        or_empty: bool,
        word: Word,
    },
    /// `:?`.
    Required {
        or_empty: bool,
        word: Word,
    },
    /// `#` and `##`.
    WithoutPrefix {
        longest: bool,
        pattern: Word,
    },
    /// `%` and `%%`.
    WithoutSuffix {
        longest: bool,
        pattern: Word,
    },
    /// `/` and `//`.
    Replace {
        all: bool,
        pattern: Word,
        with: Word,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) why: String,
}
