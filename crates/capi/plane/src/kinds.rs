//! The kinds of Cluster API on a server of this process.

use std::sync::Arc;

use capstan_apiserver::admission::Admission;
use capstan_apiserver::auth::ObjectSource;
use capstan_apiserver::conversion::Conversions;
use capstan_apiserver::plane::{Config, Kinds};
use capstan_capi_types::conversion::Converter;
use serde_json::Value;

use crate::admission::InProcess;
use crate::conversion::{Conversion, Versions};
use crate::rules::Rules;

/// The CustomResourceDefinitions of every kind of Cluster API; those of infrastructure are their providers'.
pub fn definitions() -> Vec<Value> {
    capstan_capi_types::definitions::definitions()
}

/// Has a server default, validate and convert the kinds of Cluster API itself.
#[must_use]
pub fn configure(config: Config) -> Config {
    config.with_kinds(Arc::new(ClusterApi))
}

/// What is known of the kinds of Cluster API beside their definitions.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterApi;

impl Kinds for ClusterApi {
    fn admission(&self, stored: &Arc<dyn ObjectSource>) -> Vec<Arc<dyn Admission>> {
        vec![Arc::new(InProcess::new(Rules::default(), stored.clone()))]
    }

    fn conversions(&self, known: Conversions, stored: &Arc<dyn ObjectSource>) -> Conversions {
        let versions = Versions::stored(stored.clone());
        let conversion = Arc::new(Conversion(Converter::new(versions.into_lookup())));
        capstan_capi_types::conversion::kinds()
            .iter()
            .fold(known, |known, (group, kind)| known.with_kind(group, kind, conversion.clone()))
    }
}
