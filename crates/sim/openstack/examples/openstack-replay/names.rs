//! Ids, addresses and host names of the recording, and what they are here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// Recorded names and ours.
#[derive(Default)]
pub struct Names {
    ours: BTreeMap<String, String>,
    /// Names of ours that are mapped already.
    taken: BTreeSet<String>,
}

const ID: &str = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b";

static IDS: LazyLock<Regex> = LazyLock::new(|| pattern(ID));
static ADDRESSES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| unreachable!("the pattern is fixed: {error}"))
}

/// An id that stands for something that does not exist.
fn is_nobody(id: &str) -> bool {
    let mut digits = id.chars().filter(|c| *c != '-');
    let first = digits.next();
    digits.all(|c| Some(c) == first) || id.starts_with("00000000-0000-0000")
}

pub fn is_id(text: &str) -> bool {
    IDS.find(text).is_some_and(|found| found.as_str().len() == text.len())
}

pub fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

pub fn is_mac(text: &str) -> bool {
    text.len() == 17 && text.split(':').count() == 6
}

impl Names {
    pub fn get(&self, recorded: &str) -> Option<&str> {
        self.ours.get(recorded).map(String::as_str)
    }

    pub fn learn(&mut self, recorded: &str, ours: &str) {
        self.ours.entry(recorded.to_owned()).or_insert_with(|| ours.to_owned());
        self.taken.insert(ours.to_owned());
    }

    pub fn is_taken(&self, ours: &str) -> bool {
        self.taken.contains(ours)
    }

    /// A recorded text with our names in it.
    pub fn translate(&self, text: &str) -> String {
        let with_ids = IDS.replace_all(text, |found: &regex::Captures<'_>| {
            let id = &found[0];
            self.get(id).unwrap_or(id).to_owned()
        });
        let with_addresses = ADDRESSES.replace_all(&with_ids, |found: &regex::Captures<'_>| {
            let address = &found[0];
            self.get(address).unwrap_or(address).to_owned()
        });
        with_addresses.into_owned()
    }

    /// Whether a text has an id that has not been seen.
    pub fn unknown(&self, text: &str) -> bool {
        IDS.find_iter(text).any(|found| self.get(found.as_str()).is_none() && !is_nobody(found.as_str()))
    }
}
