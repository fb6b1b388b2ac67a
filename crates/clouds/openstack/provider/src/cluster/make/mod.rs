//! Carries out calls: one request each. What a call changed is taken over into the project's lists; after an error they
//! are read again.

mod lists;
mod requests;

use capstan_controller::Outcome;
use capstan_openstack_client::block_storage::{Snapshot, Volume};
use capstan_openstack_client::compute::{NewServerGroup, ServerGroup};
use capstan_openstack_client::image::Image;
use capstan_openstack_client::load_balancer::{
    HealthMonitor, Listener, ListenerChange, LoadBalancer, NewMember, Pool, ProvisioningStatus,
};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpChange, Network, NewSecurityGroup, Port, Router, SecurityGroup, SecurityGroupRule,
    Subnet, SubnetChange,
};
use capstan_openstack_client::{Create, Delete, Deletion, Error, Id};

use super::balancer_order::MemberOrder;
use super::call::{ClusterCall, Tagged};
use super::image;
use super::rules::Rule;
use crate::error::failed;
use crate::project::{Access, Listed};

pub(super) use lists::forget;

pub(super) async fn make(call: &ClusterCall, access: &Access) -> Outcome {
    match carry_out(call, access).await {
        Ok(()) => Outcome::done(),
        Err(error) => {
            forget(call, access).await;
            failed(&error)
        }
    }
}

async fn carry_out(call: &ClusterCall, access: &Access) -> Result<(), Error> {
    let client = &access.client;
    match call {
        ClusterCall::CreateNetwork { name, description, mtu, port_security } => {
            create::<Network>(&requests::network(name, description, *mtu, *port_security), access).await
        }
        ClusterCall::CreateSubnet { name, description, network, cidr, name_servers, pools, slaac } => {
            let new = requests::subnet((name, description), network, cidr, name_servers, pools, *slaac);
            create::<Subnet>(&new, access).await
        }
        ClusterCall::SetNameServers { subnet, name_servers } => {
            let change =
                SubnetChange { dns_nameservers: Some(name_servers.clone()), ..SubnetChange::default() };
            access.put(&client.update::<Subnet>(&subnet.as_str().into(), &change).await?).await;
            Ok(())
        }
        ClusterCall::CreateRouter { name, description, external, addresses } => {
            create::<Router>(&requests::router(name, description, external, addresses), access).await
        }
        ClusterCall::AddInterface { router, subnet } => {
            client.add_router_interface(&router.as_str().into(), &subnet.as_str().into()).await?;
            access.forget::<Port>().await;
            Ok(())
        }
        ClusterCall::RemoveInterface { router, subnet } => {
            client.remove_router_interface(&router.as_str().into(), &subnet.as_str().into()).await?;
            access.forget::<Port>().await;
            Ok(())
        }
        ClusterCall::CreateGroup { name, description } => {
            let new = NewSecurityGroup { name: name.clone(), description: Some(description.clone()) };
            create::<SecurityGroup>(&new, access).await
        }
        ClusterCall::AddRules { group, rules } => add_rules(group, rules, access).await,
        ClusterCall::RemoveRule { group, rule } => remove_rule(group, rule, access).await,
        ClusterCall::CreateAddress { description, network, port, address } => {
            let new = requests::address(description, network, port.as_deref(), address.as_deref());
            create::<FloatingIp>(&new, access).await
        }
        ClusterCall::Associate { address, port } => {
            let change = FloatingIpChange { port_id: Some(port.as_str().into()), fixed_ip_address: None };
            access.put(&client.update::<FloatingIp>(&address.as_str().into(), &change).await?).await;
            Ok(())
        }
        ClusterCall::SetTags { of, id, tags } => set_tags(*of, id, tags, access).await,
        ClusterCall::DeleteAddress { id } => delete::<FloatingIp>(id, access).await,
        ClusterCall::DeletePort { id } => delete::<Port>(id, access).await,
        ClusterCall::DeleteRouter { id } => delete::<Router>(id, access).await,
        ClusterCall::DeleteNetwork { id } => delete::<Network>(id, access).await,
        ClusterCall::DeleteGroup { id } => delete::<SecurityGroup>(id, access).await,
        ClusterCall::CreateServerGroup { name, policy } => {
            let new =
                NewServerGroup { name: name.clone(), policy: policy.clone(), max_server_per_host: None };
            create::<ServerGroup>(&new, access).await
        }
        ClusterCall::DeleteServerGroup { id } => delete::<ServerGroup>(id, access).await,
        ClusterCall::CreateImage { image, mark } => image::create(image, mark, access).await,
        ClusterCall::ImportImage { id, url } => {
            client.import_image(&id.as_str().into(), url).await?;
            access.forget::<Image>().await;
            Ok(())
        }
        ClusterCall::DeleteImage { id } => delete::<Image>(id, access).await,
        ClusterCall::DeleteSnapshot { id } => client.delete::<Snapshot>(&id.as_str().into()).await.map(drop),
        ClusterCall::DeleteVolume { id } => delete::<Volume>(id, access).await,
        ClusterCall::CreateBalancer { name, order } => {
            create::<LoadBalancer>(&order.request(name), access).await?;
            access.forget::<Listener>().await;
            access.forget::<Pool>().await;
            access.forget::<HealthMonitor>().await;
            Ok(())
        }
        ClusterCall::DeleteBalancer { id } => delete_balancer(id, access).await,
        ClusterCall::CreateListener { balancer, name, port, allowed, tags } => {
            client.create::<Listener>(&requests::listener(balancer, name, *port, allowed, tags)).await?;
            changing(balancer, access).await
        }
        ClusterCall::SetAllowed { balancer, listener, allowed } => {
            let change = ListenerChange { allowed_cidrs: Some(allowed.clone()), ..ListenerChange::default() };
            client.update::<Listener>(&listener.as_str().into(), &change).await?;
            changing(balancer, access).await
        }
        ClusterCall::CreatePool { balancer, name, listener, algorithm, tags } => {
            client.create::<Pool>(&requests::pool(name, listener, algorithm, tags)).await?;
            changing(balancer, access).await
        }
        ClusterCall::CreateMonitor { balancer, name, pool, monitor } => {
            client.create::<HealthMonitor>(&requests::monitor(name, pool, monitor)).await?;
            changing(balancer, access).await
        }
        ClusterCall::SetMonitor { balancer, id, monitor } => {
            client.update::<HealthMonitor>(&id.as_str().into(), &requests::monitor_change(monitor)).await?;
            changing(balancer, access).await
        }
        ClusterCall::SetMembers { balancer, pool, members } => {
            let members: Vec<NewMember> = members.iter().map(MemberOrder::request).collect();
            client.set_members(&pool.as_str().into(), &members).await?;
            changing(balancer, access).await
        }
        // Made by the controller, which keeps the secret.
        ClusterCall::CreateCredential { .. } | ClusterCall::DeleteCredential { .. } => Ok(()),
    }
}

async fn create<R: Listed + Create>(new: &R::New, access: &Access) -> Result<(), Error> {
    access.put(&access.client.create::<R>(new).await?).await;
    Ok(())
}

async fn delete<R: Listed + Delete>(id: &str, access: &Access) -> Result<(), Error> {
    access.client.delete::<R>(&Id::new(id)).await?;
    access.remove::<R>(id).await;
    Ok(())
}

async fn add_rules(group: &str, rules: &[Rule], access: &Access) -> Result<(), Error> {
    let rules: Vec<_> = rules.iter().map(|rule| rule.request(group)).collect();
    let made = access.client.create_security_group_rules(&rules).await?;
    access.change::<SecurityGroup>(group, |held| held.security_group_rules.extend(made)).await;
    Ok(())
}

async fn remove_rule(group: &str, rule: &str, access: &Access) -> Result<(), Error> {
    access.client.delete::<SecurityGroupRule>(&rule.into()).await?;
    let gone = |held: &mut SecurityGroup| held.security_group_rules.retain(|held| held.id.as_str() != rule);
    access.change(group, gone).await;
    Ok(())
}

async fn set_tags(of: Tagged, id: &str, tags: &[String], access: &Access) -> Result<(), Error> {
    macro_rules! set {
        ($kind:ty) => {{
            let held = access.client.set_tags::<$kind>(&id.into(), tags).await?;
            access.change::<$kind>(id, |item| item.tags = held).await;
        }};
    }
    match of {
        Tagged::Network => set!(Network),
        Tagged::Subnet => set!(Subnet),
        Tagged::Router => set!(Router),
        Tagged::SecurityGroup => set!(SecurityGroup),
        Tagged::FloatingIp => set!(FloatingIp),
    }
    Ok(())
}

async fn delete_balancer(id: &str, access: &Access) -> Result<(), Error> {
    if access.client.delete_load_balancer(&id.into(), true).await? == Deletion::Absent {
        access.remove::<LoadBalancer>(id).await;
    }
    let leaving = |held: &mut LoadBalancer| held.provisioning_status = ProvisioningStatus::PendingDelete;
    access.change(id, leaving).await;
    Ok(())
}

/// Every change of a part makes its load balancer pending.
async fn changing(balancer: &str, access: &Access) -> Result<(), Error> {
    let pending = |held: &mut LoadBalancer| held.provisioning_status = ProvisioningStatus::PendingUpdate;
    access.change(balancer, pending).await;
    access.forget::<Listener>().await;
    access.forget::<Pool>().await;
    access.forget::<HealthMonitor>().await;
    Ok(())
}
