//! Built-in kinds that are served in two forms of one set of objects: events in two groups, autoscalers in two
//! versions. Each is stored in one of them.

use capstan_builtin::autoscaling;
use serde_json::Value;

use crate::events;
use crate::registry::Resource;

/// How objects of a resource are spelled that are stored otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `events.k8s.io/v1`; stored as `v1`.
    NewEvent,
    /// `autoscaling/v1`; stored as `autoscaling/v2`.
    OldAutoscaler,
}

impl Spelling {
    /// The spelling of a resource; none if its objects are stored as they are served.
    pub fn of(resource: &Resource) -> Option<Self> {
        if resource.custom().is_some() {
            return None;
        }
        match (resource.group.as_str(), resource.version.as_str(), resource.plural.as_str()) {
            ("events.k8s.io", _, "events") => Some(Self::NewEvent),
            ("autoscaling", "v1", "horizontalpodautoscalers") => Some(Self::OldAutoscaler),
            _ => None,
        }
    }

    /// An object as it is stored.
    pub fn stored(self, object: Value) -> Value {
        match self {
            Self::NewEvent => events::to_old(object),
            Self::OldAutoscaler => autoscaling::to_v2(object),
        }
    }

    /// A stored object in this spelling.
    pub fn served(self, object: Value) -> Value {
        match self {
            Self::NewEvent => events::to_new(object),
            Self::OldAutoscaler => autoscaling::to_v1(object),
        }
    }

    /// The spelling whose objects are completed and validated in the form they are stored in, as upstream does
    /// both on its internal form. Events have the same rules in both.
    pub fn judged_as_stored(resource: &Resource) -> Option<Self> {
        Self::of(resource).filter(|spelling| *spelling == Self::OldAutoscaler)
    }
}

/// An object of a built-in kind in another version of its group.
pub(crate) fn in_version(object: Value, version: &str) -> Value {
    match (object["kind"].as_str(), object["apiVersion"].as_str(), version) {
        (Some("HorizontalPodAutoscaler"), Some("autoscaling/v1"), "v2") => autoscaling::to_v2(object),
        (Some("HorizontalPodAutoscaler"), Some("autoscaling/v2"), "v1") => autoscaling::to_v1(object),
        _ => object,
    }
}
