//! Field selectors: `metadata.name=a,spec.nodeName!=b`.

use std::fmt;

use super::SelectorError;

/// A conjunction of comparisons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The comparisons, sorted by their text.
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Field, for example `metadata.name`.
    pub field: String,
    /// Whether the field must differ from the value.
    pub negated: bool,
    /// Value to compare with.
    pub value: String,
}

impl FieldSelector {
    /// Parses a selector. Field names are not checked, since each kind has its own.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (field, negated, value) = split_term(part).ok_or_else(|| {
                SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            terms.push(Term { field: field.into(), negated, value: unescape(value)? });
        }
        Ok(Self { terms })
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether fields match. An unknown field is the empty string.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        let matches = |term: &Term| (lookup(&term.field).unwrap_or_default() == term.value) != term.negated;
        self.terms.iter().all(matches)
    }

    /// The value that a field must have, if the selector requires a single one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| t.field == field && !t.negated).map(|t| t.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.negated { "!=" } else { "=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (index, _) in term.char_indices() {
        let rest = &term[index..];
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..index], negated, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let invalid = |sequence: &str| {
        SelectorError(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut out = String::with_capacity(value.len());
    let mut escaped = false;
    for c in value.chars() {
        match (escaped, c) {
            (true, '\\' | ',' | '=') => {
                out.push(c);
                escaped = false;
            }
            (true, other) => return Err(invalid(&format!("\\{other}"))),
            (false, '\\') => escaped = true,
            (false, ',' | '=') => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    c as u32
                )));
            }
            (false, other) => out.push(other),
        }
    }
    if escaped { Err(invalid("\\")) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_parse_and_print() {
        for (text, printed) in [
            ("", ""),
            ("a=b", "a=b"),
            ("z!=1,a==b", "a=b,z!=1"),
            (r"a=b\,c\=d\\", r"a=b\,c\=d\\"),
            ("a=,,b=", "a=,b="),
        ] {
            assert_eq!(FieldSelector::parse(text).expect(text).to_string(), printed);
        }
    }

    #[test]
    fn errors_have_upstreams_texts() {
        for (text, error) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(FieldSelector::parse(text).expect_err(text).to_string(), error);
        }
    }

    #[test]
    fn matching_treats_unknown_fields_as_empty() {
        let selector = FieldSelector::parse("metadata.name=a,spec.x!=y").expect("parses");
        let lookup = |field: &str| (field == "metadata.name").then_some("a");
        assert!(selector.matches(lookup));
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert_eq!(selector.exact("spec.x"), None);
        assert!(!FieldSelector::parse("spec.x=y").expect("parses").matches(lookup));
    }
}
