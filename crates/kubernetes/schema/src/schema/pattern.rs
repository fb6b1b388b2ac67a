//! Regular expressions of schemas, compiled on first use: CRDs have hundreds of them and most objects use a few.

use std::sync::{Arc, OnceLock};

use regex::Regex;

/// A regular expression in Go's syntax.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    compiled: OnceLock<Result<Arc<Regex>, String>>,
}

impl Pattern {
    /// A pattern. Compiled on the first match.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), compiled: OnceLock::new() }
    }

    /// The expression in Go's syntax.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled expression, or Go's error text.
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
