//! `CloudStackDatacenterConfig`: asks CloudStack whether it has what a datacenter names.
//!
//! Owns: the status. Reads: the credentials' Secrets and the cloud, once per generation and version of the Secrets, and
//! again while something is wrong. Clusters wait for `specValid` and are requeued when it changes.

mod decide;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_provider::{CloudError, Clouds};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};
use capstan_provider_kit::SecretOutline;
use parking_lot::Mutex;

use crate::cloud::{self, OpenZone, secret_of};
use crate::names::{annotation, is_set};
use crate::types::CloudStackDatacenterConfig;

/// Datacenters by the Secrets with their keys.
const BY_SECRET: &str = "secret";
/// How long an answer that something is wrong counts.
const RETRY: Duration = Duration::from_secs(30);
/// How long the questions about one zone may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Datacenters {
    clouds: Clouds,
    /// What was found valid: generation of the datacenter and versions of its Secrets.
    valid: Mutex<BTreeMap<Key, Vec<String>>>,
}

impl Datacenters {
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds, valid: Mutex::default() }
    }
}

pub type Validity = Result<(), CloudError>;

impl Controller for Datacenters {
    const NAME: &'static str = "lifecycle-datacenter";
    type Kind = CloudStackDatacenterConfig;
    type Seen = Validity;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackDatacenterConfig>) {
        watches.index::<CloudStackDatacenterConfig>(BY_SECRET, |datacenter| {
            datacenter.spec.zones().iter().map(|zone| secret_of(zone).to_string()).collect()
        });
        watches.related::<SecretOutline>(|change, caches| {
            let users = caches
                .of::<CloudStackDatacenterConfig>()
                .and_then(|cache| cache.indexed(BY_SECRET, &change.key.to_string()));
            users.unwrap_or_default().iter().map(|datacenter| datacenter.key()).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &["Ready"]
    }

    fn paused(&self, object: &CloudStackDatacenterConfig, _: &View) -> Result<Option<String>, ObserveError> {
        let paused = is_set(&object.metadata, annotation::PAUSED);
        Ok(paused.then(|| format!("it has the annotation {}", annotation::PAUSED)))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackDatacenterConfig>,
        view: &View,
    ) -> Result<Validity, ObserveError> {
        if object.metadata.is_deleting() {
            return Ok(Ok(()));
        }
        let zones = object.spec.zones();
        let mut state = vec![object.metadata.generation.to_string()];
        for zone in &zones {
            let secret = view.get::<SecretOutline>(&secret_of(zone))?;
            state.push(secret.map(|secret| secret.metadata.resource_version.clone()).unwrap_or_default());
        }
        if self.valid.lock().get(&object.key()) == Some(&state) {
            return Ok(Ok(()));
        }
        for (at, zone) in zones.iter().enumerate() {
            let asked = async {
                let open = OpenZone::open(&self.clouds, zone, view).await?;
                open.network(&zone.zone.network).await
            };
            if let Err(mut error) = cloud::within(PATIENCE, asked).await {
                error.message = format!("availabilityZones[{at}] ({}): {}", zone.name, error.message);
                self.valid.lock().remove(&object.key());
                return Ok(Err(error));
            }
        }
        self.valid.lock().insert(object.key(), state);
        Ok(Ok(()))
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    fn gone(&self, key: &Key) {
        self.valid.lock().remove(key);
    }
}
