//! The current path of a walk. A linked list on the stack that is only rendered for an error, since errors are rare.

use std::fmt;

use crate::bounded::{MAX_TEXT, cut};

/// A path into an object, apimachinery's `field.Path`.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    /// The object itself, which upstream renders as `<nil>`.
    Root,
    /// An already rendered path.
    Prefix(&'a str),
    /// `.name`
    Field(&'a str),
    /// `[key]`
    Key(&'a str),
    /// `[0]`
    Index(usize),
}

impl<'a> Path<'a> {
    /// The root object.
    pub const ROOT: Path<'static> = Path { parent: None, part: Part::Root };

    /// A path that starts below `prefix`.
    pub fn at(prefix: &'a str) -> Self {
        Self { parent: None, part: Part::Prefix(prefix) }
    }

    /// A field below this one.
    pub fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Field(name) }
    }

    /// A key of the map that is here.
    pub fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), part: Part::Key(key) }
    }

    /// An entry of the list that is here.
    pub fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), part: Part::Index(index) }
    }

    /// Whether this is the whole object.
    pub fn is_root(&self) -> bool {
        matches!(self.part, Part::Root)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = match self.parent {
            Some(parent) if !parent.is_root() => {
                parent.write(f)?;
                true
            }
            _ => false,
        };
        match self.part {
            Part::Root => Ok(()),
            Part::Prefix(prefix) => f.write_str(prefix),
            Part::Field(name) if below => write!(f, ".{name}"),
            Part::Field(name) => f.write_str(name),
            Part::Key(key) => write!(f, "[{key}]"),
            Part::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Map keys come from the client, and a long key is part of every path below it: truncated to [`MAX_TEXT`] bytes.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str("<nil>") } else { f.write_str(&cut(Whole(self), MAX_TEXT)) }
    }
}

struct Whole<'a>(&'a Path<'a>);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> Self {
        path.to_string()
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_upstream_prints_them() {
        let spec = Path::ROOT.field("spec");
        let items = spec.field("items");
        let item = items.index(3);
        let key = item.key("a.b/c");
        let name = key.field("name");
        assert_eq!(name.to_string(), "spec.items[3][a.b/c].name");
        assert_eq!(Path::ROOT.to_string(), "<nil>");
        assert_eq!(Path::ROOT.key("k").to_string(), "[k]");
        assert_eq!(Path::at("spec.x").field("y").to_string(), "spec.x.y");
    }

    #[test]
    fn a_long_key_makes_no_long_path() {
        let long = "k".repeat(1 << 20);
        let path = Path::ROOT.key(&long);
        assert!(path.field("x").to_string().len() < 2 * MAX_TEXT);
    }
}
