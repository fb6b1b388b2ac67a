//! What OpenStack has beside what is recorded: everything with our mark in the projects that objects name.

mod kinds;

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_controller::Client;
use capstan_openstack_client::Error;
use capstan_openstack_types::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_provider_kit::{
    Counted, Difference, DifferenceKind, Drift, Inventory, Kept, ProviderError, Removed, Secret, Unrecorded,
    served,
};
use futures::future::BoxFuture;

use crate::clouds::Clouds;
use crate::mark;
use crate::plugin::OpenStack;
use crate::project::{Access, Project};
use crate::references::{self, CredentialUse};
use kinds::{Kind, Marked, marked, remove};

impl Inventory for OpenStack {
    fn compare<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Drift, ProviderError>> {
        Box::pin(compare(self.clouds(), client, namespace))
    }
}

/// Marks of objects, as things in the cloud carry them.
fn recorded(
    clusters: &[OpenStackCluster],
    servers: &[OpenStackServer],
    pools: &[OpenStackFloatingIPPool],
) -> BTreeSet<String> {
    let clusters = clusters.iter().map(|it| &it.metadata);
    let servers = servers.iter().map(|it| &it.metadata);
    clusters.chain(servers).chain(pools.iter().map(|it| &it.metadata)).map(mark::of).collect()
}

/// Marks beside the objects of all namespaces: they can share a project.
async fn compare(clouds: &Clouds, client: &Client, namespace: &str) -> Result<Drift, ProviderError> {
    let Some(clusters) = served::<OpenStackCluster>(client, "").await? else {
        return Ok(Drift::default());
    };
    let servers = served::<OpenStackServer>(client, "").await?.unwrap_or_default();
    let pools = served::<OpenStackFloatingIPPool>(client, "").await?.unwrap_or_default();
    let known = recorded(&clusters, &servers, &pools);
    let mut found = BTreeSet::new();
    let mut present = BTreeSet::new();
    let mut projects: Vec<Arc<Project>> = Vec::new();
    let mut unrecorded: Vec<Box<dyn Unrecorded>> = Vec::new();
    let mut unknown = false;
    for used in references::all(client, namespace).await? {
        let place = format!("openstack {}", used.reference.name);
        let looked = look(clouds, client, &used).await?;
        let (access, things, ids) = match looked {
            Ok(looked) => looked,
            Err(why) => {
                unknown = true;
                let what = format!("{}/{}", used.kind, used.name);
                let says = format!("its project cannot be read: {why}");
                found.insert(Difference { how: DifferenceKind::Unknown, what, place, says });
                continue;
            }
        };
        present.extend(ids);
        if projects.iter().any(|known| Arc::ptr_eq(known, &access.project)) {
            continue;
        }
        projects.push(access.project.clone());
        let things: Vec<Marked> = things.into_iter().filter(|thing| !known.contains(&thing.mark)).collect();
        found.extend(things.iter().map(|thing| Difference {
            how: DifferenceKind::Unrecorded,
            what: format!("{}/{}", thing.kind.name(), thing.name),
            place: place.clone(),
            says: format!("{}; another management cluster may have it", thing.id),
        }));
        unrecorded.push(Box::new(Leftovers { access, things }));
    }
    // What a project that could not be looked at has is not gone.
    if !unknown {
        let mine = servers.iter().filter(|it| namespace.is_empty() || it.metadata.namespace == namespace);
        for server in mine {
            let Some(id) = server.status.instance_id.as_ref().filter(|id| !present.contains(*id)) else {
                continue;
            };
            found.insert(Difference {
                how: DifferenceKind::Gone,
                what: format!("OpenStackServer/{}", server.metadata.name),
                place: format!("openstack {}", server.spec.identity_ref.name),
                says: format!("its server {id} is not in the cloud"),
            });
        }
    }
    Ok(Drift { differences: found.into_iter().collect(), unrecorded })
}

/// What the project of a reference has, or why it cannot be looked at.
async fn look(
    clouds: &Clouds,
    client: &Client,
    used: &CredentialUse,
) -> Result<Result<(Access, Vec<Marked>, BTreeSet<String>), String>, ProviderError> {
    let Some(secret) = &used.secret else {
        return Ok(Err(format!("there is no OpenStackClusterIdentity {}", used.reference.name)));
    };
    let Some(content) = client.get::<Secret>(secret).await? else {
        return Ok(Err(format!("there is no Secret {secret}")));
    };
    let access = match clouds.open(&used.reference, secret, &content).await {
        Ok(access) => access,
        Err(error) => return Ok(Err(error.message)),
    };
    Ok(match marked(&access).await {
        Ok((things, ids)) => Ok((access, things, ids)),
        Err(error) => Err(error.to_string()),
    })
}

/// What of a project is in no record.
struct Leftovers {
    access: Access,
    things: Vec<Marked>,
}

impl Unrecorded for Leftovers {
    fn counts(&self) -> Counted {
        let mut counted = Counted::default();
        for kind in Kind::ALL {
            counted.add(kind.noun(), self.things.iter().filter(|thing| thing.kind == kind).count());
        }
        counted
    }

    fn remove(&self) -> BoxFuture<'_, Result<Removed, ProviderError>> {
        Box::pin(async {
            let failed = |error: Error| ProviderError::new(error.to_string());
            let (now, _) = marked(&self.access).await.map_err(failed)?;
            let mut removed = Removed { gone: self.counts().none_of(), kept: Vec::new() };
            // The mark counts as it is now.
            for thing in self.things.iter().filter(|thing| now.contains(thing)) {
                match remove(&self.access, thing).await {
                    Ok(()) => removed.gone.add(thing.kind.noun(), 1),
                    Err(error) if error.refusal().is_some() => {
                        let what = format!("{} ({})", thing.name, thing.id);
                        removed.kept.push(Kept { what, why: error.to_string() });
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            Ok(removed)
        })
    }
}
