//! Documents shared by all servers of a process.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha512};

/// A rendered document with its entity tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    pub body: Bytes,
    /// SHA-512 of the body, or of what it was rendered from, in upper-case hexadecimal.
    pub hash: String,
}

impl Document {
    /// Hashes a body. If an equal body exists in this process, returns that one.
    pub fn shared(body: Vec<u8>) -> Arc<Self> {
        Self::named(&hash(&body), || body)
    }

    /// A document with a given hash. Rendered unless it exists.
    pub fn named(hash: &str, render: impl FnOnce() -> Vec<u8>) -> Arc<Self> {
        static ALIVE: OnceLock<Mutex<HashMap<String, Weak<Document>>>> = OnceLock::new();
        let alive = ALIVE.get_or_init(Mutex::default);
        if let Some(document) = alive.lock().get(hash).and_then(Weak::upgrade) {
            return document;
        }
        let document = Arc::new(Self { body: render().into(), hash: hash.to_owned() });
        let mut alive = alive.lock();
        // Removing dead entries only when the table is full keeps the cost per insertion constant.
        if alive.len() == alive.capacity() {
            alive.retain(|_, document| document.strong_count() > 0);
        }
        alive.insert(hash.to_owned(), Arc::downgrade(&document));
        document
    }

    /// The `ETag` header: the hash in quotes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }

    /// Whether an `If-None-Match` header matches, so that the response is 304.
    pub fn matches(&self, if_none_match: Option<&str>) -> bool {
        let stripped = if_none_match.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
        stripped == Some(self.hash.as_str())
    }
}

/// SHA-512 in upper-case hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bodies_exist_once_while_alive() {
        let first = Document::shared(b"one body of the shared test".to_vec());
        let second = Document::shared(b"one body of the shared test".to_vec());
        assert!(Arc::ptr_eq(&first, &second));
        let other = Document::shared(b"another body of the shared test".to_vec());
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn only_the_quoted_hash_matches() {
        let document = Document::shared(b"etag test".to_vec());
        assert!(document.matches(Some(&document.etag())));
        assert!(!document.matches(Some(&document.hash)));
        assert!(!document.matches(None));
    }
}
