//! Octavia: load balancers and what belongs to them.
//!
//! Every change makes the load balancer `PENDING_UPDATE`, and until that is over every other change of it or its parts is
//! refused: [`Class::Busy`](crate::Class::Busy).

use http::Method;
use serde::{Deserialize, Serialize};

use crate::catalog;
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{Time, model, request, words};
use crate::microversion::Microversion;
use crate::network::{Network, Port, Subnet};
use crate::resource::{Deletion, List, Resource, encoded, item, resources, verbs, with_body};
use crate::service::Service;

words! {
    /// How far a part of a load balancer is.
    pub enum ProvisioningStatus {
        /// It can be used and changed.
        Active = "ACTIVE",
        /// It is being made.
        PendingCreate = "PENDING_CREATE",
        /// It is being changed.
        PendingUpdate = "PENDING_UPDATE",
        /// It goes.
        PendingDelete = "PENDING_DELETE",
        /// It failed, and can only be deleted or failed over.
        Error = "ERROR",
        /// It is gone.
        Deleted = "DELETED",
    }
}

impl ProvisioningStatus {
    /// Something is being done to it, and changes are refused meanwhile.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::PendingCreate | Self::PendingUpdate | Self::PendingDelete)
    }
}

/// `{"id": …}`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Ref<R> {
    /// The id.
    pub id: Id<R>,
}

impl<R> Clone for Ref<R> {
    fn clone(&self) -> Self {
        Self { id: self.id.clone() }
    }
}

model! {
    /// A load balancer.
    pub struct LoadBalancer {
        /// Id of the load balancer.
        pub id: Id<LoadBalancer>,
        /// Its name, which others may have too.
        pub name: String,
        /// Description of the load balancer.
        pub description: String,
        /// Project that owns the load balancer.
        pub project_id: String,
        /// How far it is.
        pub provisioning_status: ProvisioningStatus,
        /// `ONLINE`, `OFFLINE`, `DEGRADED`, `ERROR` or `NO_MONITOR`.
        pub operating_status: String,
        /// IP address of the load balancer.
        pub vip_address: String,
        /// The port with that address.
        pub vip_port_id: Id<Port>,
        /// The subnet of that port.
        pub vip_subnet_id: Id<Subnet>,
        /// The network of that port.
        pub vip_network_id: Id<Network>,
        /// Who carries it out: `amphora`, `ovn`, ….
        pub provider: String,
        /// Flavor of the load balancer.
        pub flavor_id: Option<String>,
        /// Where it is.
        pub availability_zone: Option<String>,
        /// Listeners of the load balancer.
        pub listeners: Vec<Ref<Listener>>,
        /// Pools of the load balancer.
        pub pools: Vec<Ref<Pool>>,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// When it was made.
        pub created_at: Option<Time>,
        /// When it or anything that belongs to it was changed; `None` until it is built.
        pub updated_at: Option<Time>,
    }

    /// A port that a load balancer listens on.
    pub struct Listener {
        /// Id of the listener.
        pub id: Id<Listener>,
        /// Its name, which others may have too.
        pub name: String,
        /// How far it is.
        pub provisioning_status: ProvisioningStatus,
        /// `ONLINE`, `OFFLINE`, `DEGRADED` or `ERROR`.
        pub operating_status: String,
        /// `TCP`, `HTTP`, ….
        pub protocol: String,
        /// The port.
        pub protocol_port: u16,
        /// Where it leads.
        pub default_pool_id: Option<Id<Pool>>,
        /// Who may come.
        pub allowed_cidrs: Option<Vec<String>>,
        /// Milliseconds of silence of a client.
        pub timeout_client_data: Option<u64>,
        /// Milliseconds of silence of a member.
        pub timeout_member_data: Option<u64>,
        /// Load balancer of the listener.
        pub loadbalancers: Vec<Ref<LoadBalancer>>,
        /// Words of its owner.
        pub tags: Vec<String>,
    }

    /// Members that share the work.
    pub struct Pool {
        /// Id of the pool.
        pub id: Id<Pool>,
        /// Its name, which others may have too.
        pub name: String,
        /// How far it is.
        pub provisioning_status: ProvisioningStatus,
        /// `ONLINE`, `OFFLINE`, `DEGRADED` or `ERROR`.
        pub operating_status: String,
        /// `TCP`, `HTTP`, ….
        pub protocol: String,
        /// `ROUND_ROBIN`, `SOURCE_IP_PORT`, ….
        pub lb_algorithm: String,
        /// Members of the pool.
        pub members: Vec<Ref<Member>>,
        /// Health monitor of the pool.
        pub healthmonitor_id: Option<Id<HealthMonitor>>,
        /// Listeners of the pool.
        pub listeners: Vec<Ref<Listener>>,
        /// Load balancer of the pool.
        pub loadbalancers: Vec<Ref<LoadBalancer>>,
        /// Words of its owner.
        pub tags: Vec<String>,
    }

    /// A server that a pool leads to.
    pub struct Member {
        /// Id of the member.
        pub id: Id<Member>,
        /// Its name, which others may have too.
        pub name: String,
        /// How far it is.
        pub provisioning_status: ProvisioningStatus,
        /// `ONLINE`, `OFFLINE`, `NO_MONITOR` or `ERROR`.
        pub operating_status: String,
        /// Its address. It cannot be changed.
        pub address: String,
        /// Port of the member.
        pub protocol_port: u16,
        /// Share of the connections; 0 takes no new ones.
        pub weight: Option<u16>,
        /// Connections reach it only while no other member is up.
        pub backup: Option<bool>,
        /// It takes part.
        pub admin_state_up: Option<bool>,
        /// The address that is checked, where that is another one.
        pub monitor_address: Option<String>,
        /// The port that is checked, where that is another one.
        pub monitor_port: Option<u16>,
        /// The subnet it is reached by.
        pub subnet_id: Option<Id<Subnet>>,
        /// Words of its owner.
        pub tags: Vec<String>,
    }

    /// How members are watched.
    pub struct HealthMonitor {
        /// Id of the health monitor.
        pub id: Id<HealthMonitor>,
        /// Its name, which others may have too.
        pub name: String,
        /// How far it is.
        pub provisioning_status: ProvisioningStatus,
        /// `TCP`, `HTTPS`, ….
        #[serde(rename = "type")]
        pub kind: String,
        /// Seconds between two looks.
        pub delay: u32,
        /// Seconds that a look may take.
        pub timeout: u32,
        /// So many good looks and the member is back.
        pub max_retries: u32,
        /// So many bad looks and the member is out.
        pub max_retries_down: u32,
        /// Pool of the health monitor.
        pub pools: Vec<Ref<Pool>>,
    }

    /// Who carries load balancers out.
    pub struct Provider {
        /// Name of the provider.
        pub name: String,
        /// Description of the provider.
        pub description: String,
    }

    /// A kind of load balancer.
    pub struct LoadBalancerFlavor {
        /// Id of the load balancer flavor.
        pub id: Id<LoadBalancerFlavor>,
        /// Name of the load balancer flavor.
        pub name: String,
        /// It can be used.
        pub enabled: bool,
    }
}

request! {
    /// A new load balancer.
    pub struct NewLoadBalancer {
        /// Name of the load balancer.
        pub name: String,
        /// Description of the load balancer.
        pub description: Option<String>,
        /// The subnet of its address.
        pub vip_subnet_id: Option<Id<Subnet>>,
        /// The network of its address.
        pub vip_network_id: Option<Id<Network>>,
        /// IP address of the load balancer.
        pub vip_address: Option<String>,
        /// Who carries it out.
        pub provider: Option<String>,
        /// Flavor of the load balancer.
        pub flavor_id: Option<Id<LoadBalancerFlavor>>,
        /// Where it is to be.
        pub availability_zone: Option<String>,
        /// Words.
        pub tags: Vec<String>,
        /// Listeners with their pools and monitors, made together with it.
        pub listeners: Vec<ListenerTree>,
    }

    /// A listener of a new load balancer.
    pub struct ListenerTree {
        /// Name of the listener.
        pub name: String,
        /// `TCP`, `HTTP` and so on.
        pub protocol: String,
        /// The port it listens on.
        pub protocol_port: u16,
        /// Addresses that may connect; all if empty.
        pub allowed_cidrs: Vec<String>,
        /// Where its connections go.
        pub default_pool: Option<PoolTree>,
        /// Tags.
        pub tags: Vec<String>,
    }

    /// A pool of a new load balancer.
    pub struct PoolTree {
        /// Name of the pool.
        pub name: String,
        /// `TCP`, `HTTP` and so on.
        pub protocol: String,
        /// `ROUND_ROBIN` and so on.
        pub lb_algorithm: String,
        /// How members are checked.
        #[serde(rename = "healthmonitor")]
        pub health_monitor: Option<MonitorTree>,
        /// Tags.
        pub tags: Vec<String>,
    }

    /// A health monitor of a new load balancer.
    pub struct MonitorTree {
        /// Name of the monitor.
        pub name: String,
        /// `TCP`, `HTTP` and so on.
        #[serde(rename = "type")]
        pub kind: String,
        /// Seconds between checks.
        pub delay: u32,
        /// Seconds until a check has failed.
        pub timeout: u32,
        /// Good checks until a member is up.
        pub max_retries: u32,
        /// Bad checks until a member is down.
        pub max_retries_down: Option<u32>,
    }

    /// What can be changed of a load balancer.
    pub struct LoadBalancerChange {
        /// Name of the load balancer.
        pub name: Option<String>,
        /// Description of the load balancer.
        pub description: Option<String>,
        /// Words.
        pub tags: Option<Vec<String>>,
    }

    /// A new listener.
    pub struct NewListener {
        /// Name of the listener.
        pub name: String,
        /// Description of the listener.
        pub description: Option<String>,
        /// Load balancer of the listener.
        pub loadbalancer_id: Id<LoadBalancer>,
        /// `TCP`, ….
        pub protocol: String,
        /// The port.
        pub protocol_port: u16,
        /// Where it leads.
        pub default_pool_id: Option<Id<Pool>>,
        /// Who may come. Not with the provider `ovn`, and from API version 2.12 on.
        pub allowed_cidrs: Vec<String>,
        /// Words.
        pub tags: Vec<String>,
    }

    /// What can be changed of a listener.
    pub struct ListenerChange {
        /// Name of the listener.
        pub name: Option<String>,
        /// Who may come; an empty list lets everybody in.
        pub allowed_cidrs: Option<Vec<String>>,
        /// Words.
        pub tags: Option<Vec<String>>,
    }

    /// A new pool.
    pub struct NewPool {
        /// Name of the pool.
        pub name: String,
        /// Description of the pool.
        pub description: Option<String>,
        /// Its listener, whose default it becomes.
        pub listener_id: Option<Id<Listener>>,
        /// Its load balancer, without a listener.
        pub loadbalancer_id: Option<Id<LoadBalancer>>,
        /// `TCP`, ….
        pub protocol: String,
        /// `ROUND_ROBIN`, or `SOURCE_IP_PORT` with the provider `ovn`.
        pub lb_algorithm: String,
        /// Words.
        pub tags: Vec<String>,
    }

    /// What can be changed of a pool.
    pub struct PoolChange {
        /// Name of the pool.
        pub name: Option<String>,
        /// Words.
        pub tags: Option<Vec<String>>,
    }

    /// A new member.
    pub struct NewMember {
        /// Name of the member.
        pub name: String,
        /// IP address of the member.
        pub address: String,
        /// Port of the member.
        pub protocol_port: u16,
        /// The subnet it is reached by, where that is not the load balancer's.
        pub subnet_id: Option<Id<Subnet>>,
        /// Share of the connections; 1 if left out.
        pub weight: Option<u16>,
        /// Connections reach it only while no other member is up.
        pub backup: Option<bool>,
        /// Whether it takes part; it does if left out.
        pub admin_state_up: Option<bool>,
        /// The address that is checked, where that is another one.
        pub monitor_address: Option<String>,
        /// The port that is checked, where that is another one.
        pub monitor_port: Option<u16>,
        /// Words.
        pub tags: Vec<String>,
    }

    /// A new monitor.
    pub struct NewHealthMonitor {
        /// Name of the health monitor.
        pub name: String,
        /// Pool of the health monitor.
        pub pool_id: Id<Pool>,
        /// `TCP`, ….
        #[serde(rename = "type")]
        pub kind: String,
        /// Seconds between two looks.
        pub delay: u32,
        /// Seconds that a look may take.
        pub timeout: u32,
        /// So many good looks and the member is back.
        pub max_retries: u32,
        /// So many bad looks and the member is out.
        pub max_retries_down: Option<u32>,
    }

    /// What can be changed of a monitor.
    pub struct HealthMonitorChange {
        /// Seconds between two looks.
        pub delay: Option<u32>,
        /// Seconds that a look may take.
        pub timeout: Option<u32>,
        /// So many good looks and the member is back.
        pub max_retries: Option<u32>,
        /// So many bad looks and the member is out.
        pub max_retries_down: Option<u32>,
    }

    /// What load balancers and flavors can be narrowed by.
    pub struct LoadBalancerFilter {
        /// Name of the load balancer.
        pub name: Option<String>,
        /// IP address of the load balancer.
        pub vip_address: Option<String>,
        /// The port with its address.
        pub vip_port_id: Option<Id<Port>>,
        /// The network of its address.
        pub vip_network_id: Option<Id<Network>>,
        /// Whose it is. Another project's is refused.
        pub project_id: Option<String>,
        /// All of these words.
        pub tags: Vec<String>,
    }

    /// What the parts of load balancers can be narrowed by.
    pub struct PartFilter {
        /// Name of the resource.
        pub name: Option<String>,
        /// Load balancer of the resource.
        #[serde(rename = "loadbalancer_id")]
        pub load_balancer_id: Option<Id<LoadBalancer>>,
        /// Project of the resource.
        pub project_id: Option<String>,
    }

    /// What health monitors can be narrowed by.
    pub struct MonitorFilter {
        /// Name of the monitor.
        pub name: Option<String>,
        /// Project of the monitor.
        pub project_id: Option<String>,
    }

    /// What members and flavors can be narrowed by.
    pub struct NameFilter {
        /// Name to match.
        pub name: Option<String>,
    }
}

resources! {
    LoadBalancer: LoadBalancer "lbaas/loadbalancers" Some("loadbalancer"), "loadbalancers" by LoadBalancerFilter;
    Listener: LoadBalancer "lbaas/listeners" Some("listener"), "listeners" by PartFilter;
    Pool: LoadBalancer "lbaas/pools" Some("pool"), "pools" by PartFilter;
    HealthMonitor: LoadBalancer "lbaas/healthmonitors" Some("healthmonitor"), "healthmonitors" by MonitorFilter;
    LoadBalancerFlavor: LoadBalancer "lbaas/flavors" Some("flavor"), "flavors" by NameFilter;
}

verbs! {
    LoadBalancer: new NewLoadBalancer, change LoadBalancerChange;
    Listener: new NewListener, change ListenerChange, delete;
    Pool: new NewPool, change PoolChange, delete;
    HealthMonitor: new NewHealthMonitor, change HealthMonitorChange, delete;
    Member: new NewMember;
}

/// The path is below a pool: see the methods of [`Client`].
impl Resource for Member {
    const SERVICE: Service = Service::LoadBalancer;
    const PATH: &'static str = "members";
    const ONE: Option<&'static str> = Some("member");
}

impl List for Member {
    const MANY: &'static str = "members";
    type Filter = NameFilter;

    fn marker(&self) -> &str {
        self.id.as_str()
    }
}

model! {
    /// How many load balancers a project may have; Octavia does not report how many it has.
    pub struct LoadBalancerQuota {
        /// Load balancers; -1 is without a limit.
        pub load_balancer: Option<i64>,
    }
}

#[derive(Deserialize)]
struct Versions {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    id: String,
}

impl Client {
    /// Removes a load balancer; with `cascade` its parts too, without which it is refused if it has any. It is there for
    /// some seconds more.
    pub async fn delete_load_balancer(
        &self,
        id: &Id<LoadBalancer>,
        cascade: bool,
    ) -> Result<Deletion, Error> {
        let path = item(LoadBalancer::PATH, id);
        let mut call = Call::change(Service::LoadBalancer, Method::DELETE, path, Body::None);
        self.checked_id(id, &call)?;
        if cascade {
            call.query.push(("cascade".to_owned(), "true".to_owned()));
        }
        self.remove(&call).await
    }

    /// The members of a pool.
    pub async fn members(&self, pool: &Id<Pool>) -> Result<Vec<Member>, Error> {
        self.checked_id(pool, &Call::read(Service::LoadBalancer, Pool::PATH))?;
        self.list_at(&members_path(pool), &NameFilter::default()).await
    }

    /// Adds a member to a pool.
    pub async fn create_member(&self, pool: &Id<Pool>, new: &NewMember) -> Result<Member, Error> {
        self.checked_id(pool, &Call::read(Service::LoadBalancer, Pool::PATH))?;
        self.create_at(&members_path(pool), new).await
    }

    /// Removes a member from a pool.
    pub async fn delete_member(&self, pool: &Id<Pool>, member: &Id<Member>) -> Result<Deletion, Error> {
        let path = item(&members_path(pool), member);
        let call = Call::change(Service::LoadBalancer, Method::DELETE, path, Body::None);
        self.checked_id(pool, &call)?;
        self.checked_id(member, &call)?;
        self.remove(&call).await
    }

    /// Gives a pool these members in place of those it has, in one change.
    pub async fn set_members(&self, pool: &Id<Pool>, members: &[NewMember]) -> Result<(), Error> {
        let call =
            Call::change(Service::LoadBalancer, Method::PUT, members_path(pool), Body::None).idempotent();
        self.checked_id(pool, &call)?;
        self.send(&with_body(call, Some("members"), &members)?).await.map(drop)
    }

    /// How many load balancers a project may have. Members may ask about their own.
    pub async fn load_balancer_quota(&self, project: &str) -> Result<LoadBalancerQuota, Error> {
        let path = format!("lbaas/quotas/{}", encoded(project));
        self.read(&Call::read(Service::LoadBalancer, path), Some("quota")).await
    }

    /// Who carries load balancers out.
    pub async fn load_balancer_providers(&self) -> Result<Vec<Provider>, Error> {
        self.read(&Call::read(Service::LoadBalancer, "lbaas/providers"), Some("providers")).await
    }

    /// The newest version of the load balancer API, such as 2.27: what it can is known by that alone.
    pub async fn load_balancer_version(&self) -> Result<Option<Microversion>, Error> {
        let token = self.token().await?;
        let call = Call::read(Service::LoadBalancer, "");
        let base = self.endpoint(Service::LoadBalancer, &token).map_err(|kind| call.error(kind))?;
        let url = catalog::without_version(&base);
        let reply = self.send_with(&call, &url, Some(&token), None).await?;
        let versions: Versions = crate::client::open(&call, &reply, None)?;
        Ok(versions
            .versions
            .iter()
            .filter_map(|version| version.id.trim_start_matches('v').parse().ok())
            .max())
    }
}

fn members_path(pool: &Id<Pool>) -> String {
    format!("{}/members", item(Pool::PATH, pool))
}
