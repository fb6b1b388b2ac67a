//! Warnings collected while a request is served, sent as `Warning` headers of the response.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Total length in characters above which each warning is truncated to [`ITEM_LIMIT`], as upstream.
const TOTAL_LIMIT: usize = 4 * 1024;
/// Length in characters of a truncated warning.
const ITEM_LIMIT: usize = 256;

/// Collects warnings of one request, as many as can be sent. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    texts: Vec<String>,
    known: HashSet<String>,
    /// Total length in characters, with each text truncated.
    cut_length: usize,
}

impl Warnings {
    /// Adds a warning unless it is empty, a duplicate, or beyond what can be sent.
    pub fn add(&self, text: impl Into<String>) {
        let mut list = self.0.lock();
        if list.cut_length >= TOTAL_LIMIT {
            return;
        }
        // A longer text is truncated anyway; the cut shows that it was longer.
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(TOTAL_LIMIT + 1) {
            text.truncate(end);
        }
        if !text.is_empty() && list.known.insert(text.clone()) {
            list.cut_length += text.chars().take(ITEM_LIMIT).count();
            list.texts.push(text);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().texts.is_empty()
    }

    /// The texts in order, truncated as upstream does when there are too many.
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

    /// Values of `Warning` headers: `299 - "text"`. As upstream, texts with control characters are left out, because
    /// they have no header form.
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
