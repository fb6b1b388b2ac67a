//! Texts about a request, in bounded amounts. What a client sends decides how many errors and warnings there
//! are and how long the paths and values in them get, so that neither may decide how much the server holds.

use std::fmt::{self, Display, Write};

/// Bytes of a path in an error. What is longer ends in `...`.
pub const MAX_TEXT: usize = 4 * 1024;

/// Renders something, at most `limit` bytes of it. Rendering stops there.
pub fn cut(what: impl Display, limit: usize) -> String {
    let mut out = Cut { text: String::new(), limit };
    // The only error is our own: there is no more room.
    _ = write!(out, "{what}");
    out.text
}

/// [`cut`] of a text that exists.
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

/// A list of texts that stops growing: after [`Texts::MAX_ENTRIES`] or [`Texts::MAX_BYTES`] it only counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    entries: Vec<String>,
    bytes: usize,
    more: usize,
}

impl Texts {
    /// Where upstream's strict decoder stops.
    pub const MAX_ENTRIES: usize = 100;
    /// Bytes of one entry. What is longer ends in `...`.
    pub const MAX_ENTRY: usize = 1024;
    /// Bytes of all entries, after which there are no more.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Adds a text, or counts it if there is no room; then it is not rendered.
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

    /// The same paths below another one.
    pub fn below(self, path: &str) -> Self {
        let mut out: Self = self.entries.iter().map(|own| format!("{path}.{own}")).collect();
        out.more += self.more;
        out
    }

    /// Each path in quotes behind a word: `unknown field "spec.x"`.
    pub fn quoted(self, word: &str) -> Self {
        let mut out: Self = self.entries.iter().map(|path| format!("{word} \"{path}\"")).collect();
        out.more += self.more;
        out
    }

    /// Whether whatever comes next is only counted.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= Self::MAX_ENTRIES || self.bytes >= Self::MAX_BYTES
    }

    /// Whether there was nothing to add.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.more == 0
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many texts were counted but not kept.
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

    /// All in one text, `and 7 more` last if not all were kept.
    pub fn join(&self, separator: &str) -> String {
        let mut out = self.entries.join(separator);
        if self.more > 0 {
            _ = write!(out, "{separator}and {} more", self.more);
        }
        out
    }

    /// Each text, `and 7 more` last if not all were kept.
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
    fn a_list_of_texts_stops_at_its_bounds_and_says_what_is_missing() {
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
