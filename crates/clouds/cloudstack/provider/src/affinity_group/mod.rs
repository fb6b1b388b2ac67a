//! `CloudStackAffinityGroup`: machines that are kept together or apart.
//!
//! Owns: CloudStackAffinityGroups, their finalizer, id and status; the group of that name in the cloud. Reads: the
//! failure domain, the cloud until the group is there once. Names of groups are unique in an account, and hold the uid of
//! the cluster: a group of that name is ours.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, condition, label};
use capstan_cloudstack_client::commands::{
    CreateAffinityGroup, DeleteAffinityGroup, ListAffinityGroups, Owner,
};
use capstan_cloudstack_client::model::AffinityGroup;
use capstan_cloudstack_types::v1beta3::{CloudStackAffinityGroup, CloudStackFailureDomain};
use capstan_controller::{
    Call, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::Object;
use capstan_provider_kit::resolution;
use serde::{Deserialize, Serialize};

use crate::clouds::{Access, Clouds};
use crate::error::{CloudError, failed, kept};
use crate::failure_domain::cluster_of;

/// The controller of CloudStackAffinityGroups.
pub struct AffinityGroups {
    clouds: Clouds,
}

impl AffinityGroups {
    /// A controller of groups in these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

/// What was seen beside the CloudStackAffinityGroup.
#[derive(Debug, Default)]
pub struct Seen {
    /// The failure domain it belongs to.
    pub domain: Option<Arc<CloudStackFailureDomain>>,
    /// The group in the cloud; `None` if nobody had to ask.
    pub group: Option<Result<Option<AffinityGroup>, CloudError>>,
    /// For whom groups are made.
    pub owner: Owner,
}

/// A call to CloudStack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum GroupCall {
    /// Make a group.
    Create {
        name: String,
        /// `host affinity` or `host anti-affinity`.
        kind: String,
        /// The account or project, unless it is that of the keys.
        #[serde(default, skip_serializing_if = "Owner::is_caller")]
        owner: Owner,
    },
    Delete {
        id: String,
        /// The account or project, unless it is that of the keys.
        #[serde(default, skip_serializing_if = "Owner::is_caller")]
        owner: Owner,
    },
}

impl Call for GroupCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { name, .. } => name.clone(),
            Self::Delete { id, .. } => id.clone(),
        }
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { name, .. } => format!("create-group {name}"),
            Self::Delete { id, .. } => format!("delete-group {id}"),
        }
    }
}

impl Controller for AffinityGroups {
    const NAME: &'static str = "cloudstackaffinitygroup";
    type Kind = CloudStackAffinityGroup;
    type Seen = Seen;
    type Call = GroupCall;

    fn watches(&self, watches: &mut Watches<CloudStackAffinityGroup>) {
        watches.index_label::<CloudStackAffinityGroup>(label::CLUSTER_NAME);
        watches.related::<Cluster>(|change, caches| {
            let is_paused = |cluster: &Arc<Cluster>| cluster.spec.paused;
            let same = change.old.as_ref().map(is_paused) == change.new.as_ref().map(is_paused);
            let Some(cluster) = change.latest().filter(|_| !same) else { return Vec::new() };
            let meta = &cluster.metadata;
            let groups = caches
                .of::<CloudStackAffinityGroup>()
                .and_then(|groups| groups.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
            groups.unwrap_or_default().iter().map(|group| group.key()).collect()
        });
        watches.read::<capstan_provider_kit::SecretOutline>();
        watches.read::<CloudStackFailureDomain>();
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    fn paused(&self, object: &CloudStackAffinityGroup, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = cluster_of(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackAffinityGroup::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackAffinityGroup>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        let domain = owners::of::<CloudStackFailureDomain>(&object.metadata, view)?;
        let mut seen = Seen { domain, ..Seen::default() };
        if let Some(domain) = &seen.domain
            && (!object.status.ready || object.metadata.is_deleting())
        {
            seen.group = Some(match self.clouds.access(&domain.spec, view).await {
                Ok(access) => {
                    seen.owner = access.owner.clone();
                    find(object, &access).await
                }
                Err(cause) => Err(cause),
            });
        }
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &GroupCall, object: &Arc<CloudStackAffinityGroup>, view: &View) -> Outcome {
        let access = match self.access(object, view).await {
            Ok(access) => access,
            Err(cause) => return cause.outcome(),
        };
        let done = match call {
            GroupCall::Create { name, kind, owner } => {
                let request = CreateAffinityGroup {
                    name: name.clone(),
                    r#type: kind.clone(),
                    description: None,
                    owner: owner.clone(),
                };
                access.client.run(&request).await.map(drop)
            }
            GroupCall::Delete { id, owner } => {
                let request = DeleteAffinityGroup { id: id.as_str().into(), owner: owner.clone() };
                match access.client.run(&request).await {
                    // What is not known any more is gone.
                    Err(error) if error.is_unknown(id) => Ok(()),
                    Err(error) => return kept(&error, &access.secret),
                    Ok(_) => Ok(()),
                }
            }
        };
        match done {
            Ok(()) => Outcome::done(),
            Err(error) => failed(&error, &access.secret),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<GroupCall>,
        object: &Arc<CloudStackAffinityGroup>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let outside = |cause: CloudError| ObserveError::outside(cause.code, cause.message);
        let access = self.access(object, view).await.map_err(outside)?;
        let there = find(object, &access).await.map_err(outside)?.is_some();
        let creates = matches!(intent.call, GroupCall::Create { .. });
        Ok(resolution(there == creates, creates, (intent.at.timestamp(), view.now()), "CloudStack"))
    }
}

impl AffinityGroups {
    async fn access(&self, object: &CloudStackAffinityGroup, view: &View) -> Result<Access, CloudError> {
        let domain = owners::of::<CloudStackFailureDomain>(&object.metadata, view)?;
        let lost = || CloudError::new(crate::code::FAILED, "NoFailureDomain", "its failure domain is gone");
        self.clouds.access(&domain.ok_or_else(lost)?.spec, view).await
    }
}

async fn find(
    object: &CloudStackAffinityGroup,
    access: &Access,
) -> Result<Option<AffinityGroup>, CloudError> {
    let question = ListAffinityGroups {
        name: Some(object.spec.name.clone()),
        scope: access.scope(),
        ..ListAffinityGroups::default()
    };
    let found = access.client.list(&question).await.map_err(|error| access.explain(&error))?;
    Ok(found.into_iter().find(|group| group.name == object.spec.name))
}
