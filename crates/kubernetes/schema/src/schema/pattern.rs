//! Regular expressions of schemas, compiled on first use: definitions carry hundreds of them and most
//! objects touch a few.

use std::sync::{Arc, OnceLock};

use regex::Regex;

/// A regular expression in Go's syntax.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    compiled: OnceLock<Result<Arc<Regex>, String>>,
}

impl Pattern {
    /// A pattern that is compiled when first matched.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), compiled: OnceLock::new() }
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled expression, or Go's words for why it does not compile.
    pub fn regex(&self) -> Result<&Regex, &str> {
        let compiled = self.compiled.get_or_init(|| capstan_cel::compile_regex(&self.source));
        compiled.as_deref().map_err(String::as_str)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl From<&str> for Pattern {
    fn from(source: &str) -> Self {
        Self::new(source)
    }
}
