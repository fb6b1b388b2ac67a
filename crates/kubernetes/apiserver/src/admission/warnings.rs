//! Warnings gathered while a request is served, sent as `Warning` headers with the answer.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Characters of all warnings together past which each is cut to [`ITEM_LIMIT`], as upstream.
const TOTAL_LIMIT: usize = 4 * 1024;
/// Characters of one warning once warnings are cut.
const ITEM_LIMIT: usize = 256;

/// Collects warnings of one request from wherever they arise, as many as can be sent. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    texts: Vec<String>,
    known: HashSet<String>,
    /// Characters of all texts, each counted as if it were cut.
    cut_length: usize,
}

impl Warnings {
    /// Adds a warning unless it is empty, already there, or one that could not be sent any more.
    pub fn add(&self, text: impl Into<String>) {
        let mut list = self.0.lock();
        if list.cut_length >= TOTAL_LIMIT {
            return;
        }
        // A text beyond the limit of all is cut anyway; where it is cut shows that it was longer.
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(TOTAL_LIMIT + 1) {
            text.truncate(end);
        }
        if !text.is_empty() && list.known.insert(text.clone()) {
            list.cut_length += text.chars().take(ITEM_LIMIT).count();
            list.texts.push(text);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.lock().texts.is_empty()
    }

    /// The texts in order, cut as upstream cuts them when there is too much.
    pub fn texts(&self) -> Vec<String> {
        let all = &self.0.lock().texts;
        let length = |text: &String| text.chars().count();
        if all.iter().map(length).sum::<usize>() <= TOTAL_LIMIT {
            return all.clone();
        }
        let mut written = 0;
        let mut cut = Vec::new();
        for text in all.iter() {
            if written >= TOTAL_LIMIT {
                break;
            }
            let item: String = text.chars().take(ITEM_LIMIT).collect();
            written += length(&item);
            cut.push(item);
        }
        cut
    }

    /// Values for `Warning` headers: `299 - "text"`. Texts with control characters have no header form
    /// and are left out, as upstream leaves them out.
    pub fn header_values(&self) -> Vec<String> {
        self.texts()
            .iter()
            .filter(|text| !text.chars().any(char::is_control))
            .map(|text| format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_warning_is_sent_once() {
        let warnings = Warnings::default();
        warnings.add("v1 is deprecated");
        warnings.clone().add("v1 is deprecated");
        warnings.add("");
        assert_eq!(warnings.header_values(), ["299 - \"v1 is deprecated\""]);
    }

    #[test]
    fn quotes_and_backslashes_are_escaped_and_control_characters_drop_the_warning() {
        let warnings = Warnings::default();
        warnings.add(r#"a "b" \c"#);
        warnings.add("line\nbreak");
        assert_eq!(warnings.header_values(), [r#"299 - "a \"b\" \\c""#]);
    }

    #[test]
    fn warnings_that_cannot_be_sent_are_not_held() {
        let warnings = Warnings::default();
        for i in 0..10_000 {
            warnings.add(format!("{i}{}", "x".repeat(10_000)));
        }
        let held: usize = warnings.0.lock().texts.iter().map(String::len).sum();
        assert!(held <= TOTAL_LIMIT / ITEM_LIMIT * (TOTAL_LIMIT + 1), "{held}");
        assert_eq!(warnings.texts().len(), 16);
    }

    #[test]
    fn past_the_total_limit_each_warning_is_cut() {
        let warnings = Warnings::default();
        for i in 0..20 {
            warnings.add(format!("{i:0>300}"));
        }
        let texts = warnings.texts();
        assert_eq!(texts.len(), 16);
        assert!(texts.iter().all(|t| t.chars().count() == ITEM_LIMIT));
    }
}
