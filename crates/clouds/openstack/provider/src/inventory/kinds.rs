//! The kinds of things that carry marks: how they are listed and removed.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::{Server, ServerGroup};
use capstan_openstack_client::image::Image;
use capstan_openstack_client::load_balancer::LoadBalancer;
use capstan_openstack_client::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet, Trunk};
use capstan_openstack_client::{Class, Error};

use crate::project::Access;
use crate::{mark, server_group};

/// A kind of thing that carries marks, in the order of removal: what uses others comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Server,
    LoadBalancer,
    FloatingIp,
    Trunk,
    Port,
    Router,
    Subnet,
    Network,
    SecurityGroup,
    ServerGroup,
    Volume,
    ApplicationCredential,
    Image,
}

impl Kind {
    pub(super) const ALL: [Self; 13] = [
        Self::Server,
        Self::LoadBalancer,
        Self::FloatingIp,
        Self::Trunk,
        Self::Port,
        Self::Router,
        Self::Subnet,
        Self::Network,
        Self::SecurityGroup,
        Self::ServerGroup,
        Self::Volume,
        Self::ApplicationCredential,
        Self::Image,
    ];

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::LoadBalancer => "load balancer",
            Self::FloatingIp => "floating IP",
            Self::Trunk => "trunk",
            Self::Port => "port",
            Self::Router => "router",
            Self::Subnet => "subnet",
            Self::Network => "network",
            Self::SecurityGroup => "security group",
            Self::ServerGroup => "server group",
            Self::Volume => "volume",
            Self::ApplicationCredential => "application credential",
            Self::Image => "image",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::LoadBalancer => "LoadBalancer",
            Self::FloatingIp => "FloatingIP",
            Self::Trunk => "Trunk",
            Self::Port => "Port",
            Self::Router => "Router",
            Self::Subnet => "Subnet",
            Self::Network => "Network",
            Self::SecurityGroup => "SecurityGroup",
            Self::ServerGroup => "ServerGroup",
            Self::Volume => "Volume",
            Self::ApplicationCredential => "ApplicationCredential",
            Self::Image => "Image",
        }
    }
}

/// A thing with a mark.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Marked {
    pub kind: Kind,
    pub id: String,
    pub name: String,
    pub mark: String,
}

/// The cloud has no such service or extension. Of a path that it does not know, Neutron says what a proxy would.
fn is_absent(error: &Error) -> bool {
    matches!(error.class(), Class::Unsupported | Class::NotFound | Class::Protocol)
}

/// Everything with a mark in a project, and the ids of all its servers.
pub(super) async fn marked(access: &Access) -> Result<(Vec<Marked>, BTreeSet<String>), Error> {
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
    described!(Subnet, name);
    described!(Network, name);
    described!(SecurityGroup, name);
    for it in access.all::<ServerGroup>(now).await?.iter() {
        add(Kind::ServerGroup, it.id.as_str(), &it.name, server_group::held_mark(&it.name));
    }
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
    // Clouds exist without Octavia, Cinder or Neutron's trunks.
    macro_rules! optional {
        ($kind:ident) => {
            match access.all::<$kind>(now).await {
                Ok(all) => all.iter().for_each(|it| {
                    add(Kind::$kind, it.id.as_str(), &it.name, mark::held(&it.description));
                }),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        };
    }
    optional!(Trunk);
    optional!(LoadBalancer);
    optional!(Volume);
    all.sort();
    Ok((all, servers.iter().map(|server| server.id.to_string()).collect()))
}

pub(super) async fn remove(access: &Access, thing: &Marked) -> Result<(), Error> {
    let (client, id) = (&access.client, thing.id.as_str());
    match thing.kind {
        Kind::Server => client.delete::<Server>(&id.into()).await.map(drop),
        Kind::LoadBalancer => client.delete_load_balancer(&id.into(), true).await.map(drop),
        Kind::FloatingIp => client.delete::<FloatingIp>(&id.into()).await.map(drop),
        Kind::Trunk => client.delete::<Trunk>(&id.into()).await.map(drop),
        Kind::Port => client.delete::<Port>(&id.into()).await.map(drop),
        Kind::Router => {
            for port in access.all::<Port>(Duration::ZERO).await?.iter().filter(|port| port.device_id == id) {
                for ip in &port.fixed_ips {
                    client.remove_router_interface(&id.into(), &ip.subnet_id).await?;
                }
            }
            client.delete::<Router>(&id.into()).await.map(drop)
        }
        Kind::Subnet => client.delete::<Subnet>(&id.into()).await.map(drop),
        Kind::Network => client.delete::<Network>(&id.into()).await.map(drop),
        Kind::SecurityGroup => client.delete::<SecurityGroup>(&id.into()).await.map(drop),
        Kind::ServerGroup => client.delete::<ServerGroup>(&id.into()).await.map(drop),
        Kind::Volume => client.delete::<Volume>(&id.into()).await.map(drop),
        Kind::ApplicationCredential => client.delete_application_credential(&id.into()).await.map(drop),
        Kind::Image => client.delete::<Image>(&id.into()).await.map(drop),
    }
}
