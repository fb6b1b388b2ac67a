//! Source text by code points, and issues pointing into it.

/// Longest line shown with an issue, in bytes.
const MAX_SNIPPET: usize = 16_384;
const MAX_ISSUES: usize = 100;

/// An expression's text with its line starts.
#[derive(Debug)]
pub(crate) struct Source {
    chars: Vec<char>,
    /// The offset after each line break.
    line_starts: Vec<u32>,
}

/// Location of an issue. Lines count from one, columns from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: i64,
    pub(crate) column: i64,
}

impl Location {
    /// Not in the text.
    pub(crate) const NONE: Self = Self { line: -1, column: -1 };
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let line_starts =
            chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(i, _)| i as u32 + 1).collect();
        Self { chars, line_starts }
    }

    pub(crate) fn chars(&self) -> &[char] {
        &self.chars
    }

    pub(crate) fn location(&self, offset: u32) -> Location {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = if line == 0 { 0 } else { self.line_starts[line - 1] };
        Location { line: line as i64 + 1, column: i64::from(offset - start) }
    }

    fn line(&self, line: i64) -> Option<String> {
        let index = usize::try_from(line - 1).ok()?;
        if self.chars.is_empty() || index > self.line_starts.len() {
            return None;
        }
        let start = if index == 0 { 0 } else { self.line_starts[index - 1] as usize };
        let end = self.line_starts.get(index).map_or(self.chars.len(), |next| *next as usize - 1);
        Some(self.chars[start..end].iter().collect())
    }
}

/// Issues of parser, checker and validators, in order of discovery.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    issues: Vec<(Location, String)>,
    count: usize,
}

impl Issues {
    pub(crate) fn report(&mut self, location: Location, message: impl Into<String>) {
        self.count += 1;
        if self.issues.len() < MAX_ISSUES {
            self.issues.push((location, message.into()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Formats all issues by location, each with its line and a caret.
    pub(crate) fn display(mut self, source: &Source) -> String {
        self.issues.sort_by_key(|(location, _)| *location);
        let mut parts: Vec<String> =
            self.issues.iter().map(|(location, message)| render(*location, message, source)).collect();
        if self.count > MAX_ISSUES {
            parts.push(format!("{} more errors were truncated", self.count - MAX_ISSUES));
        }
        parts.join("\n")
    }
}

fn render(location: Location, message: &str, source: &Source) -> String {
    let mut text = format!("ERROR: <input>:{}:{}: {message}", location.line, location.column + 1);
    let Some(line) = source.line(location.line).filter(|line| line.len() <= MAX_SNIPPET) else { return text };
    let line = line.replace('\t', " ");
    text.push_str("\n | ");
    text.push_str(&line);
    text.push_str("\n | ");
    // Full-width markers align the caret under wide characters.
    let mut chars = line.chars();
    for _ in 0..location.column {
        match chars.next() {
            Some(c) => text.push(if c.len_utf8() > 1 { '．' } else { '.' }),
            None => break,
        }
    }
    text.push(if chars.next().is_some_and(|c| c.len_utf8() > 1) { '＾' } else { '^' });
    text
}
