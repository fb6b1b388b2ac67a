//! What was made for the SSH port of a machine, as its object remembers it. The operator may have firewall rules on the
//! same port; only what is on record here is ever closed.

use std::collections::BTreeSet;

use capstan_controller::Look;
use capstan_object::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{CloudStackMachines, MachineCall};
use crate::annotation;

/// Kept in an annotation, which backups and moves keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SshRecord {
    /// The public port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The forwarding rule may have come with a firewall rule that lets everybody in. CloudStack deletes that with it, and
    /// nothing shows which one it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Ids of other firewall rules that were created here.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub openings: BTreeSet<String>,
    /// Sources that all of it was set up for; none while something is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

impl SshRecord {
    /// What an object remembers.
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        let text = meta.annotations.get(annotation::SSH_RECORD);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// What an object remembers, and what calls changed that have ended since.
    pub(super) fn known(look: &Look<CloudStackMachines>) -> Self {
        let mut record = Self::of(&look.object.metadata);
        for ended in &look.concluded {
            match (&ended.call, &ended.result) {
                (MachineCall::OpenFirewall { .. }, Some(result)) => {
                    record.openings.extend(result["rule"].as_str().map(str::to_owned));
                }
                (MachineCall::CloseFirewall { rule, .. }, Some(_)) => {
                    record.openings.remove(rule);
                }
                _ => {}
            }
        }
        record
    }

    /// Has an object remember it.
    pub(super) fn put(&self, meta: &mut ObjectMeta) {
        if *self == Self::default() {
            meta.annotations.remove(annotation::SSH_RECORD);
        } else if let Ok(text) = serde_json::to_string(self) {
            meta.annotations.insert(annotation::SSH_RECORD.to_owned(), text);
        }
    }
}
