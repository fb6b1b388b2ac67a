//! A consistent view of one bucket.

use std::{ops::Bound, sync::Arc};

use imbl::OrdMap;

use crate::Entry;

/// One bucket at one revision. Holding it blocks nobody and keeps only the entries it shows.
pub struct Snapshot<D> {
    pub(crate) revision: u64,
    pub(crate) entries: OrdMap<Arc<str>, Arc<Entry<D>>>,
}

impl<D> Snapshot<D> {
    /// The store's revision this view shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry<D>>> {
        self.entries.get(key)
    }

    /// The entries whose keys begin with `prefix`, in key order, those after the key `after` if one is given.
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

    /// How many keys begin with `prefix`.
    pub fn count(&self, prefix: &str) -> usize {
        if prefix.is_empty() { self.entries.len() } else { self.range(prefix, None).count() }
    }
}

impl<D> Clone for Snapshot<D> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, entries: self.entries.clone() }
    }
}
