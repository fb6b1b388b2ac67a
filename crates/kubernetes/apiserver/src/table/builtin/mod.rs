//! Tables of built-in kinds, with the columns of kube-apiserver.
//!
//! Objects are JSON in the served version. Where upstream prints from its internal form (`status.podIPs`,
//! `spec.clusterIPs`) both field names are read.

mod access;
mod autoscaler;
mod config;
mod devices;
mod network;
mod pod;
mod storage;
mod workload;

use jiff::Timestamp;
use serde_json::Value;

use super::column::{Header, NAME, date};
use super::{human, read};

/// How one kind is printed.
#[derive(Debug)]
pub struct Kind {
    pub headers: &'static [Header<'static>],
    /// Cells of a row, one per column.
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
    pub conditions: fn(&Value) -> Option<Value>,
}

impl Kind {
    const fn new(headers: &'static [Header<'static>], cells: fn(&Value, Timestamp) -> Vec<Value>) -> Self {
        Self { headers, cells, conditions: |_| None }
    }
}

/// Kinds without a printer of their own: roles, limit ranges, custom resource definitions, …
static FALLBACK: Kind = Kind::new(&[NAME, date("Created At", "when the object was created")], |object, _| {
    let created = read::text_or(object, &["metadata", "creationTimestamp"], "0001-01-01T00:00:00Z");
    vec![name(object).into(), created.into()]
});

pub fn kind(group: &str, kind: &str) -> &'static Kind {
    pod::kind(group, kind)
        .or_else(|| workload::kind(group, kind))
        .or_else(|| autoscaler::kind(group, kind))
        .or_else(|| config::kind(group, kind))
        .or_else(|| network::kind(group, kind))
        .or_else(|| storage::kind(group, kind))
        .or_else(|| access::kind(group, kind))
        .or_else(|| devices::kind(group, kind))
        .unwrap_or(&FALLBACK)
}

fn name(object: &Value) -> &str {
    read::text(object, &["metadata", "name"])
}

/// Time since creation.
fn age(object: &Value, now: Timestamp) -> Value {
    human::since(read::at(object, &["metadata", "creationTimestamp"]), now).into()
}

fn deleting(object: &Value) -> bool {
    !read::at(object, &["metadata", "deletionTimestamp"]).is_null()
}

/// At most three entries and the number of the rest.
fn abridged(list: &[String], absent: &str) -> String {
    const SHOWN: usize = 3;
    match list {
        [] => absent.into(),
        _ if list.len() > SHOWN => {
            format!("{} + {} more...", list[..SHOWN].join(","), list.len() - SHOWN)
        }
        _ => list.join(","),
    }
}
