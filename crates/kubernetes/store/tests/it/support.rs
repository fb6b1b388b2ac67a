//! Short words for the tests.

use bytes::Bytes;
use capstan_store::{Expect, Stamped, Store, Write, WriteError, Written};

pub type Plain = Store<()>;

/// A value whose bytes are `text`, a space and the revision.
pub fn body(text: &str) -> Stamped {
    Stamped { head: Bytes::from(format!("{text} ")), tail: Bytes::new() }
}

pub fn put(bucket: &str, key: &str, text: &str, expect: Expect) -> Write {
    Write::Put { bucket: bucket.into(), key: key.into(), value: body(text), expect }
}

pub fn delete(bucket: &str, key: &str, expect: Expect) -> Write {
    Write::Delete { bucket: bucket.into(), key: key.into(), last: body("last"), expect }
}

pub async fn set(store: &Plain, key: &str, text: &str) -> Result<Written<()>, WriteError<()>> {
    store.write(put("b", key, text, Expect::Any)).await
}

/// A single-threaded runtime: what is awaited runs in one order only.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
