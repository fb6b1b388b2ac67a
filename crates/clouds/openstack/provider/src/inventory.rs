//! What OpenStack has beside what is recorded: everything with our mark in the projects that OpenStackClusters name.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capstan_controller::Client;
use capstan_object::Key;
use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::Server;
use capstan_openstack_client::image::Image;
use capstan_openstack_client::load_balancer::LoadBalancer;
use capstan_openstack_client::network::{FloatingIp, Network, Port, Router, SecurityGroup};
use capstan_openstack_client::{Class, Error};
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool, OpenStackServer};
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackIdentityReference};
use capstan_provider_kit::{
    Counted, Difference, DifferenceKind, Drift, Inventory, Kept, ProviderError, Removed, Secret, Unrecorded,
    served,
};
use futures::future::BoxFuture;

use crate::clouds::Clouds;
use crate::mark;
use crate::plugin::OpenStack;
use crate::project::{Access, Project};

/// A kind of thing that carries marks, in the order of removal: what uses others comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Server,
    LoadBalancer,
    FloatingIp,
    Port,
    Router,
    Network,
    SecurityGroup,
    Volume,
    ApplicationCredential,
    Image,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Server,
        Self::LoadBalancer,
        Self::FloatingIp,
        Self::Port,
        Self::Router,
        Self::Network,
        Self::SecurityGroup,
        Self::Volume,
        Self::ApplicationCredential,
        Self::Image,
    ];

    fn noun(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::LoadBalancer => "load balancer",
            Self::FloatingIp => "floating IP",
            Self::Port => "port",
            Self::Router => "router",
            Self::Network => "network",
            Self::SecurityGroup => "security group",
            Self::Volume => "volume",
            Self::ApplicationCredential => "application credential",
            Self::Image => "image",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::LoadBalancer => "LoadBalancer",
            Self::FloatingIp => "FloatingIP",
            Self::Port => "Port",
            Self::Router => "Router",
            Self::Network => "Network",
            Self::SecurityGroup => "SecurityGroup",
            Self::Volume => "Volume",
            Self::ApplicationCredential => "ApplicationCredential",
            Self::Image => "Image",
        }
    }
}

/// A thing with a mark.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Marked {
    kind: Kind,
    id: String,
    name: String,
    mark: String,
}

impl Inventory for OpenStack {
    fn compare<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Drift, ProviderError>> {
        Box::pin(compare(self.clouds(), client, namespace))
    }
}

/// Everything with a mark in a project, and the ids of all its servers.
async fn marked(access: &Access) -> Result<(Vec<Marked>, BTreeSet<String>), Error> {
    let now = Duration::ZERO;
    let mut all = Vec::new();
    let mut add = |kind: Kind, id: &str, name: &str, mark: Option<&str>| {
        let of =
            |mark: &str| Marked { kind, id: id.to_owned(), name: name.to_owned(), mark: mark.to_owned() };
        all.extend(mark.map(of));
    };
    let servers = access.all::<Server>(now).await?;
    for it in servers.iter() {
        add(Kind::Server, it.id.as_str(), &it.name, it.metadata.get(mark::METADATA).map(String::as_str));
    }
    macro_rules! described {
        ($kind:ident, $name:ident) => {
            for it in access.all::<$kind>(now).await?.iter() {
                add(Kind::$kind, it.id.as_str(), &it.$name, mark::held(&it.description));
            }
        };
    }
    described!(FloatingIp, floating_ip_address);
    described!(Port, name);
    described!(Router, name);
    described!(Network, name);
    described!(SecurityGroup, name);
    for it in access.application_credentials(now).await?.iter() {
        // The list has those of all projects of the user.
        if it.project_id.as_ref() == Some(&access.project.id) {
            add(Kind::ApplicationCredential, it.id.as_str(), &it.name, mark::held(&it.description));
        }
    }
    for it in access.all::<Image>(now).await?.iter() {
        // Images that servers were made of are needed to rebuild them.
        let used = servers.iter().any(|server| server.image_id.0.as_ref() == Some(&it.id));
        if it.owner == access.project.id && !used {
            add(Kind::Image, it.id.as_str(), &it.name, it.property(mark::METADATA));
        }
    }
    for unavailable in [Kind::LoadBalancer, Kind::Volume] {
        // Clouds exist without Octavia or Cinder.
        let listed = match unavailable {
            Kind::LoadBalancer => access.all::<LoadBalancer>(now).await.map(|all| {
                all.iter().for_each(|it| {
                    add(Kind::LoadBalancer, it.id.as_str(), &it.name, mark::held(&it.description));
                });
            }),
            _ => access.all::<Volume>(now).await.map(|all| {
                all.iter().for_each(|it| {
                    add(Kind::Volume, it.id.as_str(), &it.name, mark::held(&it.description));
                });
            }),
        };
        match listed {
            Err(error) if error.class() == Class::Unsupported => {}
            listed => listed?,
        }
    }
    all.sort();
    Ok((all, servers.iter().map(|server| server.id.to_string()).collect()))
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

/// The Secret that a reference leads to. Namespaces are not checked: nothing is created.
fn secret_of(
    reference: &OpenStackIdentityReference,
    namespace: &str,
    identities: &[OpenStackClusterIdentity],
) -> Option<Key> {
    if reference.kind != "ClusterIdentity" {
        return Some(Key::new(namespace, reference.name.as_str()));
    }
    let identity = identities.iter().find(|it| it.metadata.name == reference.name)?;
    let secret = &identity.spec.secret_ref;
    Some(Key::new(secret.namespace.as_str(), secret.name.as_str()))
}

/// Marks beside the objects of all namespaces: they can share a project.
async fn compare(clouds: &Clouds, client: &Client, namespace: &str) -> Result<Drift, ProviderError> {
    let Some(clusters) = served::<OpenStackCluster>(client, "").await? else {
        return Ok(Drift::default());
    };
    let servers = served::<OpenStackServer>(client, "").await?.unwrap_or_default();
    let identities = served::<OpenStackClusterIdentity>(client, "").await?.unwrap_or_default();
    let pools = served::<OpenStackFloatingIPPool>(client, "").await?.unwrap_or_default();
    let known = recorded(&clusters, &servers, &pools);
    let mut found = BTreeSet::new();
    let mut present = BTreeSet::new();
    let mut projects: Vec<Arc<Project>> = Vec::new();
    let mut unrecorded: Vec<Box<dyn Unrecorded>> = Vec::new();
    let mut unknown = false;
    for cluster in clusters.iter().filter(|it| namespace.is_empty() || it.metadata.namespace == namespace) {
        let reference = &cluster.spec.identity_ref;
        let place = format!("openstack {}", reference.name);
        let looked = look(clouds, client, reference, &cluster.metadata.namespace, &identities).await?;
        let (access, things, ids) = match looked {
            Ok(looked) => looked,
            Err(why) => {
                unknown = true;
                let what = format!("OpenStackCluster/{}", cluster.metadata.name);
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
    reference: &OpenStackIdentityReference,
    namespace: &str,
    identities: &[OpenStackClusterIdentity],
) -> Result<Result<(Access, Vec<Marked>, BTreeSet<String>), String>, ProviderError> {
    let Some(secret) = secret_of(reference, namespace, identities) else {
        return Ok(Err(format!("there is no OpenStackClusterIdentity {}", reference.name)));
    };
    let Some(content) = client.get::<Secret>(&secret).await? else {
        return Ok(Err(format!("there is no Secret {secret}")));
    };
    let access = match clouds.open(reference, &secret, &content).await {
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

async fn remove(access: &Access, thing: &Marked) -> Result<(), Error> {
    let (client, id) = (&access.client, thing.id.as_str());
    match thing.kind {
        Kind::Server => client.delete::<Server>(&id.into()).await.map(drop),
        Kind::LoadBalancer => client.delete_load_balancer(&id.into(), true).await.map(drop),
        Kind::FloatingIp => client.delete::<FloatingIp>(&id.into()).await.map(drop),
        Kind::Port => client.delete::<Port>(&id.into()).await.map(drop),
        Kind::Router => {
            for port in access.all::<Port>(Duration::ZERO).await?.iter().filter(|port| port.device_id == id) {
                for ip in &port.fixed_ips {
                    client.remove_router_interface(&id.into(), &ip.subnet_id).await?;
                }
            }
            client.delete::<Router>(&id.into()).await.map(drop)
        }
        Kind::Network => client.delete::<Network>(&id.into()).await.map(drop),
        Kind::SecurityGroup => client.delete::<SecurityGroup>(&id.into()).await.map(drop),
        Kind::Volume => client.delete::<Volume>(&id.into()).await.map(drop),
        Kind::ApplicationCredential => client.delete_application_credential(&id.into()).await.map(drop),
        Kind::Image => client.delete::<Image>(&id.into()).await.map(drop),
    }
}
