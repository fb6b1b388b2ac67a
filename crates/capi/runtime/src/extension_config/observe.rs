//! Reads the CA of a server and asks it for its handlers.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_core::paused;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_capi_types::runtime::extension_config::{CA_KEY, INJECT_CA_FROM_SECRET};
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, Object};
use jiff::Timestamp;

use super::{ExtensionConfigs, LastDiscovery, Observed};

/// How often a server is asked while nothing changes.
const INTERVAL: Duration = Duration::from_secs(600);

pub(super) async fn observe(
    controller: &ExtensionConfigs,
    config: &ExtensionConfig,
    view: &View,
) -> Result<Observed, ObserveError> {
    let paused = paused::why(None, &config.metadata, ExtensionConfig::KIND.kind).is_some();
    if paused || config.metadata.is_deleting() {
        return Ok(Observed::default());
    }
    let key = config.key();
    match ca_bundle(config, view).await? {
        Ok(Some(bundle)) if bundle != config.spec.client_config.ca_bundle => {
            // Its change brings the next reconcile.
            Ok(Observed { ca_bundle: Some(bundle), ..Observed::default() })
        }
        Ok(_) => Ok(discovery(controller, config, &key, view.now()).await),
        Err(why) => Ok(Observed {
            discovery: Some(Err(format!("failed to reconcile caBundle: {why}"))),
            again: Some(controller.retries.failed(&key)),
            ..Observed::default()
        }),
    }
}

/// The CA bundle from the Secret that an annotation names, in base64.
async fn ca_bundle(
    config: &ExtensionConfig,
    view: &View,
) -> Result<Result<Option<String>, String>, ObserveError> {
    let Some(named) = config.metadata.annotations.get(INJECT_CA_FROM_SECRET) else { return Ok(Ok(None)) };
    let parts = named.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    let Some((namespace, name)) = parts else {
        return Ok(Err(format!("secret name {named:?} must be in the form <namespace>/<name>")));
    };
    let Some(secret) = view.client().get::<Secret>(&Key::new(namespace, name)).await? else {
        return Ok(Err(format!("secret {named} does not exist")));
    };
    Ok(match secret.data.get(CA_KEY) {
        Some(bundle) => Ok(Some(STANDARD.encode(bundle))),
        None => Err(format!("secret {named} does not contain a {CA_KEY:?} entry")),
    })
}

async fn discovery(
    controller: &ExtensionConfigs,
    config: &ExtensionConfig,
    key: &Key,
    now: Timestamp,
) -> Observed {
    let client = serde_json::to_string(&config.spec.client_config).unwrap_or_default();
    let known = controller.last.lock().get(key).filter(|last| last.client == client).cloned();
    if let Some(last) = known.filter(|last| last.next > now) {
        let again = last.next.duration_since(now).unsigned_abs();
        return Observed { discovery: Some(last.result), again: Some(again), ..Observed::default() };
    }
    let result = controller.extensions.discover(config).await;
    let again = match result.is_ok() {
        true => {
            controller.retries.succeeded(key);
            INTERVAL
        }
        false => controller.retries.failed(key),
    };
    let next = now.saturating_add(again).unwrap_or(Timestamp::MAX);
    controller.last.lock().insert(key.clone(), LastDiscovery { client, next, result: result.clone() });
    Observed { discovery: Some(result), again: Some(again), ..Observed::default() }
}
