//! `OpenStackFloatingIPPool`: floating IPs for those who claim them, such as machines with a `floatingIPPoolRef`.
//!
//! Owns: OpenStackFloatingIPPools, their finalizer and status; the IPAddresses of their claims, and which one a claim has; the
//! floating IPs that it creates. Reads: IPAddressClaims that name the pool, the credentials, the cloud.
//!
//! ```text
//! IPAddressClaim ─▶ a free floating IP, or a new one ─▶ IPAddress ─▶ status of the claim
//! claim gone ─▶ IPAddress deleted ─┬─ Retain, or given ─▶ free
//!                                  └─ Delete ─▶ floating IP deleted
//! ```
//!
//! Floating IPs of a pool have CAPO's tag, by which it finds them again, and our mark: pools of one name in two namespaces may
//! share a project.

mod call;
mod decide;
mod observe;
mod observed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::condition as capi;
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim, IPPoolReference};
use capstan_controller::{
    Change, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object};
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool};
use capstan_provider_kit::SecretOutline;

use crate::clouds::{Clouds, Namespace};
use crate::condition;

pub use call::PoolCall;
pub use observed::Seen;

/// Index of claims and addresses by pool, as `namespace/name`.
const POOL: &str = "openstackfloatingippool";

/// The controller of OpenStackFloatingIPPools.
pub struct OpenStackFloatingIPPools {
    clouds: Clouds,
}

impl OpenStackFloatingIPPools {
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

/// The pool that a claim or address names, if it is one of ours.
fn pool_of(reference: &IPPoolReference, namespace: &str) -> Option<Key> {
    let kind = OpenStackFloatingIPPool::KIND;
    let ours = reference.kind == kind.kind && reference.api_group == kind.group;
    ours.then(|| Key::new(namespace, reference.name.as_str()))
}

fn pool_of_claim(claim: &IPAddressClaim) -> Option<Key> {
    pool_of(&claim.spec.pool_ref, &claim.metadata.namespace)
}

fn pool_of_address(address: &IPAddress) -> Option<Key> {
    pool_of(&address.spec.pool_ref, &address.metadata.namespace)
}

impl Controller for OpenStackFloatingIPPools {
    const NAME: &'static str = "openstackfloatingippool";
    type Kind = OpenStackFloatingIPPool;
    type Seen = Seen;
    type Call = PoolCall;

    fn watches(&self, watches: &mut Watches<OpenStackFloatingIPPool>) {
        watches.read::<SecretOutline>();
        watches.read::<OpenStackClusterIdentity>();
        watches.read::<Namespace>();
        let index = |key: Option<Key>| key.iter().map(Key::to_string).collect();
        watches.index::<IPAddressClaim>(POOL, move |claim| index(pool_of_claim(claim)));
        watches.index::<IPAddress>(POOL, move |address| index(pool_of_address(address)));
        watches.related::<IPAddressClaim>(|change: &Change<IPAddressClaim>, _| {
            change.latest().and_then(|claim| pool_of_claim(claim)).into_iter().collect()
        });
        watches.related::<IPAddress>(|change: &Change<IPAddress>, _| {
            change.latest().and_then(|address| pool_of_address(address)).into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::POOL_READY, condition::AUTHENTICATED, capi::PAUSED]
    }

    fn paused(&self, object: &OpenStackFloatingIPPool, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(None, &object.metadata, OpenStackFloatingIPPool::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<OpenStackFloatingIPPool>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.clouds).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &PoolCall, object: &Arc<OpenStackFloatingIPPool>, view: &View) -> Outcome {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await;
        match access {
            Ok(access) => call::make(call, &access).await,
            Err(error) => error.outcome(),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<PoolCall>,
        object: &Arc<OpenStackFloatingIPPool>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await?;
        call::resolve(intent, view, &access).await
    }
}
