//! Intended differences. Each has a reason; none may be unused.

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;

use super::Difference;
use super::corpus;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    /// Regular expression of the request's line.
    request: String,
    /// `status`, `headers`, `body`, `key order` or `white space`; several separated by commas.
    what: String,
    reason: String,
}

/// An intended difference.
#[derive(Debug)]
pub struct Explanation {
    pub file: String,
    request: Regex,
    what: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    reason: String,
}

pub fn load() -> Result<Vec<Explanation>> {
    let path = corpus::folder().join("explained.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let entries: Vec<Entry> = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
    entries.into_iter().map(Explanation::parse).collect()
}

impl Explanation {
    fn parse(entry: Entry) -> Result<Self> {
        let request = Regex::new(&entry.request).with_context(|| entry.request.clone())?;
        let what = entry.what.split(',').map(|word| word.trim().to_owned()).collect();
        Ok(Self { file: entry.file, request, what, reason: entry.reason })
    }

    pub fn covers(&self, found: &Difference) -> bool {
        self.file == found.file
            && self.what.iter().any(|what| what == found.what)
            && self.request.is_match(&found.request)
    }

    pub fn label(&self) -> String {
        format!("{}: {}: {}", self.file, self.request, self.what.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_explanation_names_a_file_and_a_request_of_it() {
        let files = corpus::load().unwrap();
        for entry in load().unwrap() {
            let file = files.iter().find(|file| file.name == entry.file);
            let requests = file.unwrap_or_else(|| panic!("{}", entry.label())).requests().unwrap();
            assert!(
                requests.iter().any(|request| entry.request.is_match(&request.label())),
                "{}",
                entry.label()
            );
            assert!(entry.reason.len() > 20, "{}", entry.label());
        }
    }
}
