//! In-process conversion between versions of the kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::auth::{ObjectSource, bucket};
use capstan_apiserver::conversion::Convert;
use capstan_capi_core::contract::{definition_name, served};
use capstan_capi_types::conversion::{Converter, VersionOf};
use capstan_provider_kit::ProviderVersions;
use parking_lot::RwLock;
use serde_json::Value;

/// Converts objects of Cluster API.
pub(crate) struct Conversion(pub Converter);

impl Convert for Conversion {
    fn convert(&self, object: Value, version: &str) -> Result<Value, String> {
        self.0.convert(object, version).map_err(|error| error.to_string())
    }
}

/// Converts objects of a provider.
pub(crate) struct ProviderConversion(pub ProviderVersions);

impl Convert for ProviderConversion {
    fn convert(&self, object: Value, version: &str) -> Result<Value, String> {
        (self.0.convert)(object, version).map_err(|error| error.to_string())
    }
}

/// The version of each provider kind for v1beta1 references, which have a version; those of v1beta2 do not. It comes
/// from the contract labels of the definition.
#[derive(Default)]
pub struct Versions {
    /// By name of the definition.
    known: RwLock<BTreeMap<String, String>>,
}

impl Versions {
    /// Records a definition.
    pub fn learn(&self, name: &str, labels: &BTreeMap<String, String>) {
        let mut known = self.known.write();
        match served(labels) {
            Some((_, version)) => known.insert(name.to_owned(), version),
            None => known.remove(name),
        };
    }

    /// The version of a kind, if its definition is known and follows the contract.
    pub fn of(&self, group: &str, kind: &str) -> Option<String> {
        self.known.read().get(&definition_name(group, kind)).cloned()
    }

    /// Reads the definitions in a store on demand.
    pub(crate) fn stored(source: Arc<dyn ObjectSource>) -> Stored {
        Stored { source, known: RwLock::default() }
    }
}

/// Versions read from a store; cached until a definition changes.
pub(crate) struct Stored {
    source: Arc<dyn ObjectSource>,
    known: RwLock<(u64, Arc<Versions>)>,
}

impl Stored {
    pub(crate) fn into_lookup(self) -> VersionOf {
        Arc::new(move |group, kind| self.current().of(group, kind))
    }

    fn current(&self) -> Arc<Versions> {
        let revision = self.source.bucket_revision(bucket::DEFINITIONS);
        {
            let known = self.known.read();
            if known.0 == revision {
                return known.1.clone();
            }
        }
        let versions = Arc::new(Versions::default());
        for definition in self.source.list(bucket::DEFINITIONS) {
            let metadata = &definition["metadata"];
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let labels = metadata["labels"].as_object().into_iter().flatten();
            let labels = labels.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect();
            versions.learn(metadata["name"].as_str().unwrap_or_default(), &labels);
        }
        *self.known.write() = (revision, versions.clone());
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_without_contract_label_is_dropped() {
        let versions = Versions::default();
        let label = |value: &str| BTreeMap::from([("cluster.x-k8s.io/v1beta2".to_owned(), value.to_owned())]);
        versions.learn("simclusters.g", &label("v1alpha1_v1beta1"));
        assert_eq!(versions.of("g", "SimCluster").as_deref(), Some("v1beta1"));
        versions.learn("simclusters.g", &BTreeMap::new());
        assert_eq!(versions.of("g", "SimCluster"), None);
    }
}
