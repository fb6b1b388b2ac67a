//! A consistent view of one bucket.

use std::{ops::Bound, sync::Arc};

use imbl::OrdMap;

use crate::Entry;

/// One bucket at one revision. It blocks no writer and keeps only its own entries alive.
pub struct Snapshot<D> {
    pub(crate) revision: u64,
    pub(crate) entries: OrdMap<Arc<str>, Arc<Entry<D>>>,
}

impl<D> Snapshot<D> {
    /// The revision of the store that this view shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The entry of a key at that revision.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry<D>>> {
        self.entries.get(key)
    }

    /// Entries whose keys start with `prefix`, in key order, optionally only those after the key `after`.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Entry<D>>> + use<'a, D> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let range = (from, Bound::Unbounded);
        self.entries
            .range::<_, str>(range)
            .map(|(_, entry)| entry)
            .take_while(move |entry| entry.key.starts_with(prefix))
    }

    /// Number of keys that start with `prefix`.
    pub fn count(&self, prefix: &str) -> usize {
        if prefix.is_empty() { self.entries.len() } else { self.range(prefix, None).count() }
    }
}

impl<D> Clone for Snapshot<D> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, entries: self.entries.clone() }
    }
}
