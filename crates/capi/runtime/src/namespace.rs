//! Namespaces, as far as selectors of extensions need them.

use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{ApiError, Client};
use capstan_object::{Key, ObjectMeta, object};
use serde::{Deserialize, Serialize};

object!(NamespaceOutline, "" / "v1", "Namespace", "namespaces", Cluster);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct NamespaceOutline {
    metadata: ObjectMeta,
}

/// Whether a server is called for objects of a namespace. The namespace is read only if it matters.
pub(crate) async fn is_selected(
    config: &ExtensionConfig,
    namespace: &str,
    client: &Client,
) -> Result<bool, ApiError> {
    let Some(selector) = config.spec.namespace_selector.as_ref().filter(|selector| !selector.is_empty())
    else {
        return Ok(true);
    };
    let found = client.get::<NamespaceOutline>(&Key::new("", namespace)).await?;
    let labels = found.map(|namespace| namespace.metadata.labels).unwrap_or_default();
    Ok(selector.matches(&labels).unwrap_or(false))
}
