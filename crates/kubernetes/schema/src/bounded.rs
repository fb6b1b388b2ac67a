//! Bounded lists of texts about a request. A client decides how many errors and warnings there are and how long their
//! paths and values are; it must not decide how much memory the server uses.

use std::fmt::{self, Display, Write};

/// Longest path in an error, in bytes. Longer ones end in `...`.
pub const MAX_TEXT: usize = 4 * 1024;

/// Formats a value, truncated to `limit` bytes. Formatting stops there.
pub fn cut(what: impl Display, limit: usize) -> String {
    let mut out = Cut { text: String::new(), limit };
    // The only error is our own, at the limit.
    _ = write!(out, "{what}");
    out.text
}

/// [`cut`] for an existing text.
pub fn cut_text(text: String, limit: usize) -> String {
    if text.len() <= limit { text } else { cut(text, limit) }
}

struct Cut {
    text: String,
    limit: usize,
}

impl Write for Cut {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.limit.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let end = part.floor_char_boundary(room);
        self.text.push_str(part.get(..end).unwrap_or_default());
        self.text.push_str("...");
        Err(fmt::Error)
    }
}

/// A list of texts with a limit: after [`Texts::MAX_ENTRIES`] or [`Texts::MAX_BYTES`] it only counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    entries: Vec<String>,
    bytes: usize,
    more: usize,
}

impl Texts {
    /// The limit of upstream's strict decoder.
    pub const MAX_ENTRIES: usize = 100;
    /// Longest entry in bytes. Longer ones end in `...`.
    pub const MAX_ENTRY: usize = 1024;
    /// Limit of the total size in bytes.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Adds a text, or only counts it beyond the limit, without formatting it.
    pub fn push(&mut self, text: impl Display) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        let text = cut(text, Self::MAX_ENTRY);
        self.bytes += text.len();
        self.entries.push(text);
    }

    /// Adds all of another list.
    pub fn append(&mut self, other: Self) {
        other.entries.into_iter().for_each(|text| self.push(text));
        self.more += other.more;
    }

    /// Prefixes each path with another one.
    pub fn below(self, path: &str) -> Self {
        let mut out: Self = self.entries.iter().map(|own| format!("{path}.{own}")).collect();
        out.more += self.more;
        out
    }

    /// Each path in quotes after a word: `unknown field "spec.x"`.
    pub fn quoted(self, word: &str) -> Self {
        let mut out: Self = self.entries.iter().map(|path| format!("{word} \"{path}\"")).collect();
        out.more += self.more;
        out
    }

    /// Whether further texts are only counted.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= Self::MAX_ENTRIES || self.bytes >= Self::MAX_BYTES
    }

    /// Whether no text was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.more == 0
    }

    /// Total size of the entries in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of texts that were counted but not kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// The texts that were kept.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Sorts the texts that were kept.
    pub fn sort(&mut self) {
        self.entries.sort_unstable();
    }

    /// All entries in one text, followed by `and 7 more` if not all were kept.
    pub fn join(&self, separator: &str) -> String {
        let mut out = self.entries.join(separator);
        if self.more > 0 {
            _ = write!(out, "{separator}and {} more", self.more);
        }
        out
    }

    /// All entries, followed by `and 7 more` if not all were kept.
    pub fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.entries.push(format!("and {} more", self.more));
        }
        self.entries
    }
}

impl<T: Display> Extend<T> for Texts {
    fn extend<I: IntoIterator<Item = T>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push(text));
    }
}

impl<T: Display> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut out = Self::default();
        out.extend(texts);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc...");
        assert_eq!(cut("aéé", 4), "aé...");
        assert_eq!(cut_text("abcd".to_owned(), 3), "abc...");
    }

    #[test]
    fn a_list_of_texts_stops_at_its_limit_and_counts_the_rest() {
        let short: Texts = (0..1_000).collect();
        assert_eq!(short.entries().len(), Texts::MAX_ENTRIES);
        assert!(short.join(", ").ends_with("99, and 900 more"));

        let long: Texts = (0..1_000).map(|_| "x".repeat(1 << 20)).collect();
        assert!(long.bytes() <= Texts::MAX_BYTES + Texts::MAX_ENTRY + 3, "{}", long.bytes());
        assert_eq!(long.entries().len() + long.more(), 1_000);
    }

    #[test]
    fn what_does_not_fit_is_not_rendered() {
        struct Counted<'a>(&'a std::cell::Cell<usize>);
        impl Display for Counted<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                for _ in 0..1_000_000 {
                    self.0.set(self.0.get() + 1);
                    f.write_str("0123456789")?;
                }
                Ok(())
            }
        }
        let written = std::cell::Cell::new(0);
        let texts: Texts = (0..1_000_000).map(|_| Counted(&written)).collect();
        assert_eq!(texts.more() + texts.entries().len(), 1_000_000);
        assert!(written.get() < Texts::MAX_BYTES, "{}", written.get());
    }
}
