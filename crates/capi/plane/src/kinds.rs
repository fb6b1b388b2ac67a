//! The kinds of Cluster API on a server of this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_apiserver::admission::Admission;
use capstan_apiserver::auth::{Authorizer, ObjectSource};
use capstan_apiserver::config::{Config, Kinds};
use capstan_apiserver::conversion::Conversions;
use capstan_capi_types::conversion::Converter;
use capstan_provider_kit::ProviderVersions;
use serde_json::Value;

use crate::admission::InProcess;
use crate::controllers::Group;
use crate::conversion::{Conversion, ProviderConversion, Versions};
use crate::rules::Rules;

/// The CustomResourceDefinitions of Cluster API, without infrastructure providers.
pub fn definitions() -> Vec<Value> {
    capstan_capi_types::definitions::definitions()
}

/// The definitions of groups of controllers, and of clusterctl's inventory.
pub fn definitions_for(groups: &BTreeSet<Group>) -> Vec<Value> {
    let wanted = |definition: &Value| {
        let group = Group::of_kind(definition["spec"]["group"].as_str().unwrap_or_default());
        group.is_none_or(|group| groups.contains(&group))
    };
    definitions().into_iter().filter(wanted).collect()
}

/// Configures defaulting, validation and conversion of Cluster API's own kinds.
#[must_use]
pub fn configure(config: Config) -> Config {
    config.with_kinds(Arc::new(ClusterApi::new(Rules::default())))
}

/// Rules and conversions of Cluster API.
pub struct ClusterApi {
    rules: Rules,
    versions: Vec<ProviderVersions>,
}

impl ClusterApi {
    /// Uses `rules`, which may include kinds of providers.
    pub fn new(rules: Rules) -> Self {
        Self { rules, versions: Vec::new() }
    }

    /// Adds conversions of a provider's kinds.
    #[must_use]
    pub fn converting(mut self, versions: impl IntoIterator<Item = ProviderVersions>) -> Self {
        self.versions.extend(versions);
        self
    }
}

impl Kinds for ClusterApi {
    fn admission(
        &self,
        stored: &Arc<dyn ObjectSource>,
        authorizer: &Arc<dyn Authorizer>,
    ) -> Vec<Arc<dyn Admission>> {
        vec![Arc::new(InProcess::new(self.rules.clone(), stored.clone(), authorizer.clone()))]
    }

    fn conversions(&self, known: Conversions, stored: &Arc<dyn ObjectSource>) -> Conversions {
        let versions = Versions::stored(stored.clone());
        let conversion = Arc::new(Conversion(Converter::new(versions.into_lookup())));
        let mut known = capstan_capi_types::conversion::kinds()
            .iter()
            .fold(known, |known, (group, kind)| known.with_kind(group, kind, conversion.clone()));
        for versions in &self.versions {
            for (group, kind) in &versions.kinds {
                known = known.with_kind(group, kind, Arc::new(ProviderConversion(versions.clone())));
            }
        }
        known
    }
}
