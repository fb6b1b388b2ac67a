//! Lists of the project that calls make stale.

use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::ServerGroup;
use capstan_openstack_client::image::Image;
use capstan_openstack_client::load_balancer::{HealthMonitor, Listener, LoadBalancer, Pool};
use capstan_openstack_client::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};

use crate::cluster::call::{ClusterCall, Tagged};
use crate::project::Access;

/// Drops the lists that a call concerns.
pub(in crate::cluster) async fn forget(call: &ClusterCall, access: &Access) {
    match call {
        ClusterCall::CreateNetwork { .. } | ClusterCall::DeleteNetwork { .. } => {
            access.forget::<Network>().await;
            access.forget::<Subnet>().await;
        }
        ClusterCall::CreateSubnet { .. } | ClusterCall::SetNameServers { .. } => {
            access.forget::<Subnet>().await;
        }
        ClusterCall::CreateRouter { .. } | ClusterCall::DeleteRouter { .. } => {
            access.forget::<Router>().await;
        }
        ClusterCall::AddInterface { .. }
        | ClusterCall::RemoveInterface { .. }
        | ClusterCall::DeletePort { .. } => access.forget::<Port>().await,
        ClusterCall::CreateGroup { .. }
        | ClusterCall::AddRules { .. }
        | ClusterCall::RemoveRule { .. }
        | ClusterCall::DeleteGroup { .. } => access.forget::<SecurityGroup>().await,
        ClusterCall::CreateServerGroup { .. } | ClusterCall::DeleteServerGroup { .. } => {
            access.forget::<ServerGroup>().await;
        }
        ClusterCall::CreateCredential { .. } | ClusterCall::DeleteCredential { .. } => {
            access.forget_application_credentials().await;
        }
        ClusterCall::CreateImage { .. }
        | ClusterCall::ImportImage { .. }
        | ClusterCall::DeleteImage { .. } => access.forget::<Image>().await,
        ClusterCall::DeleteSnapshot { .. } => {}
        ClusterCall::DeleteVolume { .. } => access.forget::<Volume>().await,
        ClusterCall::CreateBalancer { .. }
        | ClusterCall::CreateListener { .. }
        | ClusterCall::SetAllowed { .. }
        | ClusterCall::CreatePool { .. }
        | ClusterCall::CreateMonitor { .. }
        | ClusterCall::SetMonitor { .. }
        | ClusterCall::SetMembers { .. }
        | ClusterCall::DeleteBalancer { .. } => {
            access.forget::<LoadBalancer>().await;
            access.forget::<HealthMonitor>().await;
            access.forget::<Listener>().await;
            access.forget::<Pool>().await;
        }
        ClusterCall::CreateAddress { .. }
        | ClusterCall::Associate { .. }
        | ClusterCall::DeleteAddress { .. } => access.forget::<FloatingIp>().await,
        ClusterCall::SetTags { of, .. } => match of {
            Tagged::Network => access.forget::<Network>().await,
            Tagged::Subnet => access.forget::<Subnet>().await,
            Tagged::Router => access.forget::<Router>().await,
            Tagged::SecurityGroup => access.forget::<SecurityGroup>().await,
            Tagged::FloatingIp => access.forget::<FloatingIp>().await,
        },
    }
}
