//! What was made in CloudStack for a network, as its object remembers it.

use std::collections::BTreeSet;

use capstan_object::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::annotation;

/// Ids of what was made. Kept in an annotation, which backups and moves keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Made {
    /// Uids that the CloudStackCluster has and had: tags in the cloud name them, and a move changes the uid.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub clusters: BTreeSet<String>,
    /// Everything was there when the object came, and nothing of it is tagged that is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// The network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc: Option<String>,
    /// The network has its tags.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tagged: bool,
    /// The network could not be given its tags: which it lacks is looked up before the next try.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tag_failed: bool,
    /// The public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The rule for the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether the rule was made with one that lets everybody in. Not recorded by releases that always made one unless
    /// the manifest said who may come in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<bool>,
    /// Rules that let packets in.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub openings: BTreeSet<String>,
    /// The rule that lets packets out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}

impl Made {
    /// What an object remembers. A record that cannot be read is none: then nothing is deleted that has no mark.
    pub fn of(meta: &ObjectMeta) -> Self {
        let text = meta.annotations.get(annotation::MADE);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Has an object remember it.
    pub fn put(&self, meta: &mut ObjectMeta) {
        if *self == Self::default() {
            meta.annotations.remove(annotation::MADE);
        } else if let Ok(text) = serde_json::to_string(self) {
            meta.annotations.insert(annotation::MADE.to_owned(), text);
        }
    }
}
