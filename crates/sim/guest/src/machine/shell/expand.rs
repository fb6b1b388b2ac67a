//! Expansion of words: parameters, command substitution, field splitting, globs.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::pattern;
use super::syntax::{Change, List, Part, Word};
use super::{Io, Shell, Sink, arithmetic};

/// Maximum fields of one word.
const FIELDS: usize = 10_000;

/// A piece of a word after expansion.
enum Piece {
    Quoted(String),
    /// Text of the script: globs apply, no splitting.
    Literal(String),
    /// Result of an unquoted expansion.
    Split(String),
    /// Start of the next argument of `"$@"`.
    Break,
}

/// Expansion failed; the error was printed.
#[derive(Debug)]
pub(super) struct Failed;

impl Shell<'_, '_> {
    /// Expands words to fields.
    pub(super) async fn fields(&mut self, words: &[Word], io: &Io) -> Result<Vec<String>, Failed> {
        let mut fields = Vec::new();
        for word in words {
            let pieces = self.pieces(word, io).await?;
            self.split(pieces, &mut fields);
            if fields.len() > FIELDS {
                self.print_error(io, "Argument list too long");
                return Err(Failed);
            }
        }
        Ok(fields)
    }

    /// A word as one text, as in assignments and redirections.
    pub(super) async fn text(&mut self, word: &Word, io: &Io) -> Result<String, Failed> {
        let pieces = self.pieces(word, io).await?;
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Quoted(text) | Piece::Literal(text) | Piece::Split(text) => out.push_str(&text),
                Piece::Break => out.push(' '),
            }
        }
        Ok(out)
    }

    /// A word as a pattern, in which quoted characters are literal.
    pub(super) async fn pattern(&mut self, word: &Word, io: &Io) -> Result<String, Failed> {
        let pieces = self.pieces(word, io).await?;
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Quoted(text) => out.push_str(&pattern::escaped(&text)),
                Piece::Literal(text) | Piece::Split(text) => out.push_str(&text),
                Piece::Break => out.push(' '),
            }
        }
        Ok(out)
    }

    fn pieces<'s>(&'s mut self, word: &'s Word, io: &'s Io) -> BoxFuture<'s, Result<Vec<Piece>, Failed>> {
        Box::pin(async move {
            let mut pieces = Vec::new();
            for (index, part) in word.iter().enumerate() {
                match part {
                    Part::Text { text, quoted: true } => pieces.push(Piece::Quoted(text.clone())),
                    Part::Text { text, quoted: false } => {
                        let home = index == 0 && (text == "~" || text.starts_with("~/"));
                        let text = if home { text.replacen('~', "/root", 1) } else { text.clone() };
                        pieces.push(Piece::Literal(text));
                    }
                    Part::Output { list, quoted } => {
                        let output = self.output(list, io).await;
                        pieces.push(if *quoted { Piece::Quoted(output) } else { Piece::Split(output) });
                    }
                    Part::Arithmetic { expression } => {
                        let text = self.text(expression, io).await?;
                        let variables = &self.state.variables;
                        let value = arithmetic::evaluate(&text, &|name| {
                            variables.get(name).and_then(|value| value.trim().parse().ok()).unwrap_or(0)
                        });
                        match value {
                            Ok(value) => pieces.push(Piece::Quoted(value.to_string())),
                            Err(why) => {
                                self.print_error(io, &format!("{text}: {why}"));
                                return Err(Failed);
                            }
                        }
                    }
                    Part::Parameter { name, change: None, quoted: true } if name == "@" => {
                        for (n, argument) in self.state.arguments.clone().into_iter().enumerate() {
                            if n > 0 {
                                pieces.push(Piece::Break);
                            }
                            pieces.push(Piece::Quoted(argument));
                        }
                        // Without arguments the quotes yield nothing either.
                        if self.state.arguments.is_empty() {
                            pieces.retain(|piece| !matches!(piece, Piece::Quoted(text) if text.is_empty()));
                        }
                    }
                    Part::Parameter { name, change, quoted } => {
                        let value = self.parameter(name, change.as_ref(), io).await?;
                        pieces.push(if *quoted { Piece::Quoted(value) } else { Piece::Split(value) });
                    }
                }
            }
            Ok(pieces)
        })
    }

    /// Output of a list of commands, without trailing newlines.
    async fn output(&mut self, list: &List, io: &Io) -> String {
        let buffer = Arc::new(Mutex::new(Vec::new()));
        let inner = Io { out: Sink::Buffer(buffer.clone()), ..io.clone() };
        self.subshell(list, &inner).await;
        let bytes = std::mem::take(&mut *buffer.lock());
        let text: String = String::from_utf8_lossy(&bytes).chars().filter(|c| *c != '\0').collect();
        text.trim_end_matches('\n').to_owned()
    }

    fn value(&self, name: &str) -> Option<String> {
        let arguments = &self.state.arguments;
        Some(match name {
            "?" => self.state.status.to_string(),
            "#" => arguments.len().to_string(),
            "@" | "*" => arguments.join(" "),
            "$" => "1000".to_owned(),
            "!" => return None,
            "-" => if self.state.errexit { "e" } else { "" }.to_owned(),
            "0" => self.state.script.to_string(),
            "HOSTNAME" => self.guest.hostname.clone(),
            "UID" | "EUID" => "0".to_owned(),
            name => match name.parse::<usize>() {
                Ok(number) => arguments.get(number.checked_sub(1)?)?.clone(),
                Err(_) => self.state.variables.get(name)?.clone(),
            },
        })
    }

    async fn parameter(&mut self, name: &str, change: Option<&Change>, io: &Io) -> Result<String, Failed> {
        let value = self.value(name);
        let Some(change) = change else {
            if value.is_none() && self.state.nounset && name != "@" && name != "*" {
                self.print_error(io, &format!("{name}: unbound variable"));
                return Err(Failed);
            }
            return Ok(value.unwrap_or_default());
        };
        let (absent, value) = (value.is_none(), value.unwrap_or_default());
        let missing = |or_empty: bool| absent || (or_empty && value.is_empty());
        Ok(match change {
            Change::Length => value.chars().count().to_string(),
            Change::Default { or_empty, word } => {
                if missing(*or_empty) {
                    self.text(word, io).await?
                } else {
                    value
                }
            }
            Change::Alternative { or_empty, word } => {
                if missing(*or_empty) {
                    String::new()
                } else {
                    self.text(word, io).await?
                }
            }
            Change::Assign { or_empty, word } => {
                if !missing(*or_empty) {
                    return Ok(value);
                }
                let value = self.text(word, io).await?;
                self.state.variables.insert(name.to_owned(), value.clone());
                value
            }
            Change::Required { or_empty, word } => {
                if !missing(*or_empty) {
                    return Ok(value);
                }
                let mut why = self.text(word, io).await?;
                if why.is_empty() {
                    why = "parameter null or not set".to_owned();
                }
                self.print_error(io, &format!("{name}: {why}"));
                return Err(Failed);
            }
            Change::WithoutPrefix { longest, pattern: word } => {
                let pattern = self.pattern(word, io).await?;
                let end = pattern::prefix(&pattern, &value, *longest).unwrap_or(0);
                value[end..].to_owned()
            }
            Change::WithoutSuffix { longest, pattern: word } => {
                let pattern = self.pattern(word, io).await?;
                let end = pattern::suffix(&pattern, &value, *longest).unwrap_or(value.len());
                value[..end].to_owned()
            }
            Change::Replace { all, pattern: word, with } => {
                let pattern = self.pattern(word, io).await?;
                let with = self.text(with, io).await?;
                replaced(&value, &pattern, &with, *all)
            }
        })
    }

    /// Splits pieces into fields and expands globs.
    fn split(&self, pieces: Vec<Piece>, fields: &mut Vec<String>) {
        let separators = self.state.variables.get("IFS").map_or(" \t\n", String::as_str).to_owned();
        // The current field, and the same as a pattern.
        let mut current: Option<(String, String)> = None;
        let mut finish = |current: &mut Option<(String, String)>| {
            let Some((text, pattern)) = current.take() else { return };
            let found = if pattern::is_pattern(&pattern) { self.files_like(&pattern) } else { Vec::new() };
            if found.is_empty() {
                fields.push(text);
            } else {
                fields.extend(found);
            }
        };
        for piece in pieces {
            match piece {
                Piece::Quoted(text) => {
                    let (held, pattern) = current.get_or_insert_default();
                    pattern.push_str(&pattern::escaped(&text));
                    held.push_str(&text);
                }
                Piece::Literal(text) => {
                    let (held, pattern) = current.get_or_insert_default();
                    pattern.push_str(&text);
                    held.push_str(&text);
                }
                Piece::Break => finish(&mut current),
                Piece::Split(text) => {
                    for c in text.chars() {
                        if separators.contains(c) {
                            finish(&mut current);
                        } else {
                            let (held, pattern) = current.get_or_insert_default();
                            pattern.push(c);
                            held.push(c);
                        }
                    }
                }
            }
        }
        finish(&mut current);
    }

    /// Paths that match a pattern, sorted.
    fn files_like(&self, pattern: &str) -> Vec<String> {
        let absolute = pattern.starts_with('/');
        let mut found = vec![if absolute { "/".to_owned() } else { String::new() }];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for base in found {
                let directory = if base.is_empty() { self.state.directory.clone() } else { self.path(&base) };
                let join = |name: &str| match base.as_str() {
                    "" => name.to_owned(),
                    "/" => format!("/{name}"),
                    base => format!("{base}/{name}"),
                };
                if pattern::is_pattern(part) {
                    let names = self.guest.files.list(&directory).unwrap_or_default();
                    let fitting = names.iter().filter(|name| {
                        pattern::matches(part, name) && (part.starts_with('.') || !name.starts_with('.'))
                    });
                    next.extend(fitting.map(|name| join(name)));
                } else {
                    let path = join(&part.replace('\\', ""));
                    if self.guest.files.exists(&self.path(&path)) {
                        next.push(path);
                    }
                }
            }
            found = next;
        }
        found.retain(|path| !path.is_empty() && path != "/");
        found
    }
}

/// Replaces matches of a pattern in a text.
fn replaced(text: &str, pattern: &str, with: &str, all: bool) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        match pattern::prefix(pattern, &text[at..], true).filter(|length| *length > 0) {
            Some(length) => {
                out.push_str(with);
                at += length;
                if !all {
                    break;
                }
            }
            None => {
                let c = text[at..].chars().next().unwrap_or_default();
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    out.push_str(&text[at..]);
    out
}
