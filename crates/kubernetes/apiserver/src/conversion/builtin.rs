//! Built-in kinds served in two versions or groups: events in two groups, autoscalers in two versions. Each is stored
//! in one of them.

use capstan_builtin::autoscaling;
use serde_json::Value;

use crate::events;
use crate::registry::Resource;

/// Conversion between the served and the stored form of a built-in resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltInConversion {
    /// `events.k8s.io/v1`; stored as `v1`.
    NewEvent,
    /// `autoscaling/v1`; stored as `autoscaling/v2`.
    OldAutoscaler,
}

impl BuiltInConversion {
    /// The conversion of a resource; `None` if its objects are stored as they are served.
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

    /// Converts an object to its stored form.
    pub fn to_stored(self, object: Value) -> Value {
        match self {
            Self::NewEvent => events::to_old(object),
            Self::OldAutoscaler => autoscaling::to_v2(object),
        }
    }

    /// Converts a stored object to its served form.
    pub fn to_served(self, object: Value) -> Value {
        match self {
            Self::NewEvent => events::to_new(object),
            Self::OldAutoscaler => autoscaling::to_v1(object),
        }
    }

    /// The conversion of a resource whose objects are completed and validated in their stored form, as upstream does
    /// both on its internal form. Events have the same rules in both.
    pub fn validated_as_stored(resource: &Resource) -> Option<Self> {
        Self::of(resource).filter(|conversion| *conversion == Self::OldAutoscaler)
    }
}

/// Converts an object of a built-in kind to another version of its group.
pub(crate) fn in_version(object: Value, version: &str) -> Value {
    match (object["kind"].as_str(), object["apiVersion"].as_str(), version) {
        (Some("HorizontalPodAutoscaler"), Some("autoscaling/v1"), "v2") => autoscaling::to_v2(object),
        (Some("HorizontalPodAutoscaler"), Some("autoscaling/v2"), "v1") => autoscaling::to_v1(object),
        _ => object,
    }
}
