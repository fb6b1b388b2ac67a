//! Versions of a provider's kinds.

use capstan_capi_types::conversion::ConversionError;
use serde_json::Value;

/// Converts the objects of a provider whose kinds are served in several versions.
#[derive(Clone)]
pub struct ProviderVersions {
    pub kinds: Vec<(&'static str, &'static str)>,
    /// Converts an object to another version.
    pub convert: fn(Value, &str) -> Result<Value, ConversionError>,
}

impl ProviderVersions {
    /// Whether an object has one of the kinds.
    pub fn know(&self, object: &Value) -> bool {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        self.kinds.contains(&(group, text("kind")))
    }
}
