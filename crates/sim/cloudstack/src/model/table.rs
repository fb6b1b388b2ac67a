//! Tables as CloudStack's database has them: numbered rows with a UUID beside the number. Nothing is ever taken out;
//! a row is marked as removed, and some kinds also forget the UUID then.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use jiff::Timestamp;

/// Number of a row of one table.
pub(crate) struct Key<T>(u64, PhantomData<fn() -> T>);

impl<T> Key<T> {
    fn new(number: u64) -> Self {
        Self(number, PhantomData)
    }

    /// The internal number, which CloudStack shows in some texts and accepts in place of a UUID.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Key<T> {}
impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Key<T> {}
impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T> std::fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

pub(crate) struct Row<T> {
    pub(crate) key: Key<T>,
    pub(crate) uuid: String,
    pub(crate) created: Timestamp,
    pub(crate) removed: bool,
    it: T,
}

impl<T> Deref for Row<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.it
    }
}

impl<T> DerefMut for Row<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.it
    }
}

/// All rows of one kind.
pub(crate) struct Table<T> {
    rows: BTreeMap<u64, Row<T>>,
    uuids: BTreeMap<String, u64>,
    next: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), uuids: BTreeMap::new(), next: 1 }
    }
}

impl<T> Table<T> {
    /// A table whose first row gets this number.
    pub(crate) fn starting_at(next: u64) -> Self {
        Self { next, ..Self::default() }
    }

    pub(crate) fn insert(&mut self, uuid: String, created: Timestamp, it: T) -> Key<T> {
        let key = Key::new(self.next);
        self.next += 1;
        self.uuids.insert(uuid.clone(), key.0);
        self.rows.insert(key.0, Row { key, uuid, created, removed: false, it });
        key
    }

    /// The row of a UUID or of an internal number, removed or not.
    pub(crate) fn find(&self, id: &str) -> Option<Key<T>> {
        let number = match self.uuids.get(id) {
            Some(number) => *number,
            None => id.parse().ok().filter(|number| self.rows.contains_key(number))?,
        };
        Some(Key::new(number))
    }

    /// Rows that were not removed, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Row<T>> {
        self.rows.values().filter(|row| !row.removed)
    }

    /// Rows that were not removed, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Row<T>> {
        self.rows.values_mut().filter(|row| !row.removed)
    }

    /// Marks a row as removed; its UUID is still known.
    pub(crate) fn remove(&mut self, key: Key<T>) {
        self[key].removed = true;
    }

    /// Marks a row as removed and forgets its UUID.
    pub(crate) fn forget(&mut self, key: Key<T>) {
        self[key].removed = true;
        let uuid = self[key].uuid.clone();
        self.uuids.remove(&uuid);
    }
}

/// A key is made by `insert` and a row never goes away, so every key has its row.
impl<T> Index<Key<T>> for Table<T> {
    type Output = Row<T>;

    fn index(&self, key: Key<T>) -> &Row<T> {
        &self.rows[&key.0]
    }
}

impl<T> IndexMut<Key<T>> for Table<T> {
    #[expect(clippy::expect_used, reason = "a key is made by `insert` and a row never goes away")]
    fn index_mut(&mut self, key: Key<T>) -> &mut Row<T> {
        self.rows.get_mut(&key.0).expect("every key has its row")
    }
}
