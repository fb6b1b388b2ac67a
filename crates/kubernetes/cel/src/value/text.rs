//! Strings that borrow where they can.

use std::ops::Deref;
use std::sync::Arc;

/// Text borrowed from a variable's JSON, or shared.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Borrowed from JSON or from a constant table.
    Borrowed(&'a str),
    /// Computed, or a literal of the expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(s) => s,
            Self::Shared(s) => s,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(s: &'a str) -> Self {
        Self::Borrowed(s)
    }
}
