//! The kinds of Cluster API on a server of this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_apiserver::admission::Admission;
use capstan_apiserver::auth::ObjectSource;
use capstan_apiserver::config::{Config, Kinds};
use capstan_apiserver::conversion::Conversions;
use capstan_capi_types::conversion::Converter;
use capstan_provider_kit::ProviderVersions;
use serde_json::Value;

use crate::admission::InProcess;
use crate::controllers::Group;
use crate::conversion::{Conversion, OfProvider, Versions};
use crate::rules::Rules;

/// The CustomResourceDefinitions of every kind of Cluster API; those of infrastructure are their providers'.
pub fn definitions() -> Vec<Value> {
    capstan_capi_types::definitions::definitions()
}

/// Those of the kinds that groups of controllers look after, and of clusterctl's inventory.
pub fn definitions_for(groups: &BTreeSet<Group>) -> Vec<Value> {
    let wanted = |definition: &Value| {
        let group = Group::of_kind(definition["spec"]["group"].as_str().unwrap_or_default());
        group.is_none_or(|group| groups.contains(&group))
    };
    definitions().into_iter().filter(wanted).collect()
}

/// Has a server default, validate and convert the kinds of Cluster API itself.
#[must_use]
pub fn configure(config: Config) -> Config {
    config.with_kinds(Arc::new(ClusterApi::new(Rules::default())))
}

/// What is known of the kinds of Cluster API beside their definitions.
pub struct ClusterApi {
    rules: Rules,
    versions: Vec<ProviderVersions>,
}

impl ClusterApi {
    /// Judges by `rules`, which may be about kinds of providers too.
    pub fn new(rules: Rules) -> Self {
        Self { rules, versions: Vec::new() }
    }

    /// Converts a provider's kinds too.
    #[must_use]
    pub fn converting(mut self, versions: impl IntoIterator<Item = ProviderVersions>) -> Self {
        self.versions.extend(versions);
        self
    }
}

impl Kinds for ClusterApi {
    fn admission(&self, stored: &Arc<dyn ObjectSource>) -> Vec<Arc<dyn Admission>> {
        vec![Arc::new(InProcess::new(self.rules.clone(), stored.clone()))]
    }

    fn conversions(&self, known: Conversions, stored: &Arc<dyn ObjectSource>) -> Conversions {
        let versions = Versions::stored(stored.clone());
        let conversion = Arc::new(Conversion(Converter::new(versions.into_lookup())));
        let mut known = capstan_capi_types::conversion::kinds()
            .iter()
            .fold(known, |known, (group, kind)| known.with_kind(group, kind, conversion.clone()));
        for versions in &self.versions {
            for (group, kind) in &versions.kinds {
                known = known.with_kind(group, kind, Arc::new(OfProvider(versions.clone())));
            }
        }
        known
    }
}
