//! `ExtensionConfig`: asks servers which hooks they answer.
//!
//! Owns: status and conditions, and `spec.clientConfig.caBundle` if an annotation names a Secret to take it from. Reads:
//! that Secret, and the server itself. A server is asked when the way to it changes, and every ten minutes.

mod decide;
mod observe;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::paused;
use capstan_capi_core::secret::SecretOutline;
use capstan_capi_types::core::condition as shared;
use capstan_capi_types::runtime::extension_config::{INJECT_CA_FROM_SECRET, condition};
use capstan_capi_types::runtime::{ExtensionConfig, ExtensionHandler};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::extensions::Extensions;
use crate::retry::Retries;

pub struct ExtensionConfigs {
    extensions: Arc<Extensions>,
    retries: Retries,
    last: Mutex<BTreeMap<Key, LastDiscovery>>,
}

impl ExtensionConfigs {
    pub fn new(extensions: Arc<Extensions>) -> Self {
        Self { extensions, retries: Retries::default(), last: Mutex::default() }
    }
}

/// The last discovery, until it is to be repeated or the way to the server changes.
#[derive(Debug, Clone)]
struct LastDiscovery {
    /// The way to the server, as JSON.
    client: String,
    next: Timestamp,
    result: Result<Vec<ExtensionHandler>, String>,
}

/// Observed state beside the ExtensionConfig.
#[derive(Debug, Default)]
pub struct Observed {
    /// The CA bundle that the spec must have, in base64, if it has another.
    pub ca_bundle: Option<String>,
    /// Handlers of the server, or why they are not known; none if it was not asked.
    pub discovery: Option<Result<Vec<ExtensionHandler>, String>>,
    /// When it is asked again.
    pub again: Option<Duration>,
}

const CONDITIONS: [&str; 2] = [shared::PAUSED, condition::DISCOVERED];

/// Index of ExtensionConfigs by the Secret of their CA.
const BY_SECRET: &str = "ca-secret";

impl Controller for ExtensionConfigs {
    const NAME: &'static str = "extensionconfig";
    type Kind = ExtensionConfig;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<ExtensionConfig>) {
        watches.index::<ExtensionConfig>(BY_SECRET, |config| {
            config.metadata.annotations.get(INJECT_CA_FROM_SECRET).cloned().into_iter().collect()
        });
        watches.related::<SecretOutline>(|change, caches| {
            let secret = change.key.to_string();
            let configs = caches.of::<ExtensionConfig>().and_then(|cache| cache.indexed(BY_SECRET, &secret));
            configs.unwrap_or_default().iter().map(|config| config.key()).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &ExtensionConfig, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(None, &object.metadata, ExtensionConfig::KIND.kind))
    }

    async fn observe(&self, object: &Arc<ExtensionConfig>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(self, object, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    fn gone(&self, key: &Key) {
        self.retries.succeeded(key);
        self.last.lock().remove(key);
    }
}
