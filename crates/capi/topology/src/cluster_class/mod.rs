//! `ClusterClass`: reports the variables of a class, and owns its templates so that they are moved and deleted with it.
//!
//! Owns: status and conditions of the class, an owner reference on each template. Reads: the templates, the
//! definitions of their kinds, and the variables that extensions define.

mod decide;
mod discover;

use std::sync::Arc;

use capstan_capi_core::contract::{Definition, External, definition_name, served};
use capstan_capi_core::paused;
use capstan_capi_runtime::{Extensions, Retries};
use capstan_capi_types::core::cluster_class::condition;
use capstan_capi_types::core::{ClusterClass, condition as shared};
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};

use crate::cluster::template;
pub use discover::Discovered;

#[derive(Default)]
pub struct ClusterClasses {
    extensions: Arc<Extensions>,
    retries: Retries,
}

impl ClusterClasses {
    pub fn new(extensions: Arc<Extensions>) -> Self {
        Self { extensions, retries: Retries::default() }
    }
}

/// Index of classes by the extensions that define variables of theirs.
const BY_EXTENSION: &str = "extension";

/// The templates of a class, and the variables that extensions define.
#[derive(Debug, Default)]
pub struct Observed {
    pub templates: Vec<External>,
    /// Templates that cannot be read, and why.
    pub missing: Vec<String>,
    /// References to a version that is not the newest of the contract: what they have, and what they should have.
    pub outdated: Vec<(String, String)>,
    pub variables: Discovered,
}

const CONDITIONS: [&str; 3] =
    [shared::PAUSED, condition::VARIABLES_READY, condition::REF_VERSIONS_UP_TO_DATE];

impl Controller for ClusterClasses {
    const NAME: &'static str = "clusterclass";
    type Kind = ClusterClass;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<ClusterClass>) {
        watches.read::<Definition>();
        watches.index::<ClusterClass>(BY_EXTENSION, discover::extensions_of);
        watches.related::<ExtensionConfig>(|change, caches| {
            let classes = caches.of::<ClusterClass>();
            let classes = classes.and_then(|cache| cache.indexed(BY_EXTENSION, &change.key.name));
            classes.unwrap_or_default().iter().map(|class| class.key()).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &ClusterClass, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(None, &object.metadata, ClusterClass::KIND.kind))
    }

    async fn observe(&self, class: &Arc<ClusterClass>, view: &View) -> Result<Observed, ObserveError> {
        let mut seen = Observed::default();
        if !class.metadata.is_deleting() && self.paused(class, view)?.is_none() {
            seen.variables = discover::variables(self, class, view).await?;
        }
        let namespace = class.metadata.namespace.as_str();
        for (_, reference) in class.spec.templates() {
            match template(view, reference, namespace).await? {
                Ok(template) => {
                    let known = |other: &External| other.reference() == template.reference();
                    if !seen.templates.iter().any(known) {
                        seen.templates.push(template);
                    }
                }
                Err(why) => seen.missing.push(why),
            }
            let name = definition_name(reference.group(), &reference.kind);
            let definition = view.get::<Definition>(&Key::new("", name))?;
            let newest = definition.and_then(|definition| served(&definition.metadata.labels));
            if let Some((_, newest)) = newest {
                let newest = format!("{}/{newest}", reference.group());
                let entry = (format!("{} {}", reference.api_version, reference.kind), newest);
                if entry.1 != reference.api_version && !seen.outdated.contains(&entry) {
                    seen.outdated.push(entry);
                }
            }
        }
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    fn gone(&self, key: &Key) {
        self.retries.succeeded(key);
    }
}
