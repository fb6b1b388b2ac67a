//! What a cloud would say to orders that nobody has made yet: whether what they name is there and fits, how large the
//! machines would be, and how much the account may still have. Looks and changes nothing.

use std::sync::Arc;

use capstan_cloudstack_client::commands::{ListAccounts, ListProjects};
use capstan_cloudstack_client::model::{Quota, ServiceOffering};
use capstan_cloudstack_client::{Class, Error};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomainSpec, CloudStackMachineSpec};
use capstan_controller::Outcome;
use capstan_provider_kit::{Secret, Size};

use crate::clouds::{Access, Clouds, secret_of};
use crate::error::{CloudError, failed};
use crate::failure_domain::zone;
use crate::machine;
use crate::quota::{Amounts, Headroom};

/// A machine that somebody may order.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    pub spec: CloudStackMachineSpec,
    /// The Kubernetes version that it shall run.
    pub version: String,
}

/// What the cloud says to one order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderOutlook {
    /// How large the machine would be, if the offering is there and says so.
    pub size: Option<Size>,
    /// Why the order would fail.
    pub error: Option<CloudError>,
}

/// Results of checking orders against the cloud.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// What is left of the limits of the account or project, or why that is not known.
    pub left: Result<Quota, String>,
    /// One for each order, in their order.
    pub verdicts: Vec<OrderOutlook>,
}

impl Clouds {
    /// Asks the cloud of a failure domain about orders, with the keys of its Secret.
    pub async fn outlook(
        &self,
        domain: &CloudStackFailureDomainSpec,
        keys: &Secret,
        orders: &[Prospect],
    ) -> Result<Outlook, CloudError> {
        let (client, owner) = self.open(domain, keys).await?;
        let access = Access { client, owner, cache: Arc::default(), secret: secret_of(&domain.acs_endpoint) };
        let zone = zone(domain, &access).await?;
        let mut verdicts = Vec::with_capacity(orders.len());
        for order in orders {
            let offering = machine::service_offering(&order.spec, &zone.id, &access).await;
            let size = offering.as_ref().ok().and_then(|offering| size(offering, &order.spec));
            let fits = machine::fits(&order.spec, &order.version, &zone.id, &access).await;
            verdicts.push(OrderOutlook { size, error: offering.err().or(fits.err()) });
        }
        Ok(Outlook { left: left(&access).await, verdicts })
    }

    /// Fails unless the cloud of a failure domain accepts the keys of its Secret, and shows them the zone.
    pub async fn check(&self, domain: &CloudStackFailureDomainSpec, keys: &Secret) -> Result<(), CloudError> {
        self.outlook(domain, keys, &[]).await.map(drop)
    }
}

/// What an offering gives; where it leaves that open, what the machine asks for.
pub(crate) fn size(offering: &ServiceOffering, spec: &CloudStackMachineSpec) -> Option<Size> {
    let asked = |name: &str| spec.details.get(name).and_then(|text| text.parse().ok());
    Some(Size {
        cpus: offering.cpunumber.map(u64::from).or_else(|| asked("cpuNumber"))?,
        memory_mib: offering.memory.or_else(|| asked("memory"))?,
    })
}

impl Access {
    /// What the account or project has left for an order, by the key of whoever makes it. `needed` may be more than the
    /// order takes: what orders that have to follow it take.
    pub(crate) async fn headroom(&self, order: &str, needed: &Amounts, taken: &Amounts) -> Headroom {
        self.cache.quota().await.observe(order, needed, taken, async { left(self).await.ok() }).await
    }

    /// The end of an order that the cloud refused: it may have other limits than it reported.
    pub(crate) async fn refused(&self, error: &Error) -> Outcome {
        if error.class() == Class::Limit {
            self.cache.quota().await.forget();
        }
        failed(error, &self.secret)
    }
}

/// What the project or account has left. Roles need not allow to ask.
async fn left(access: &Access) -> Result<Quota, String> {
    let explain = |error: capstan_cloudstack_client::Error| access.explain(&error).text();
    let nobody = || "the credentials do not identify a project or account".to_owned();
    let owner = &access.owner;
    if let Some(project) = &owner.projectid {
        let question = ListProjects { id: Some(project.clone()), ..ListProjects::default() };
        let found = access.client.list(&question).await.map_err(explain)?;
        return found.into_iter().next().map(|project| project.quota).ok_or_else(nobody);
    }
    // Of an account that is named, or of the keys' own: an ordinary user sees no other.
    let question = ListAccounts {
        name: owner.account.clone(),
        domainid: owner.domainid.clone(),
        ..ListAccounts::default()
    };
    let mut found = access.client.list(&question).await.map_err(explain)?;
    if let Some(name) = &owner.account {
        found.retain(|account| account.name == *name);
    }
    match found.len() {
        1 => found.pop().map(|account| account.quota).ok_or_else(nobody),
        _ => Err(nobody()),
    }
}
