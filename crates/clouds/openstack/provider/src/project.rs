//! What a project has, shared by all objects whose credentials lead to it: one list per kind for all clusters, not one per
//! object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use capstan_openstack_client::block_storage::{Volume, VolumeFilter};
use capstan_openstack_client::compute::{
    Flavor, FlavorFilter, Server, ServerFilter, ServerGroup, ServerGroupFilter,
};
use capstan_openstack_client::identity::ApplicationCredential;
use capstan_openstack_client::image::{Image, ImageFilter};
use capstan_openstack_client::load_balancer::{
    HealthMonitor, Listener, LoadBalancer, LoadBalancerFilter, Member, MonitorFilter, PartFilter, Pool,
};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpFilter, Network, NetworkFilter, Port, PortFilter, Router, RouterFilter,
    SecurityGroup, SecurityGroupFilter, Subnet, SubnetFilter, Trunk, TrunkFilter,
};
use capstan_openstack_client::{Client, Error, List, Time};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::listing::Listing;

/// Age at which lists are repeated while nothing is expected to change: such a list is of this round, see
/// [`Access::next_round`].
pub(crate) const SETTLED: Duration = Duration::from_secs(60);
/// Requeue interval of objects whose resources are not expected to change, where the next round is not known.
pub(crate) const LOOK_AGAIN: Duration = SETTLED;
/// Age at which a list is repeated while something in it is being built or removed.
pub(crate) const PENDING: Duration = Duration::from_millis(4500);
/// Requeue interval of objects that wait for the cloud.
pub(crate) const POLL: Duration = Duration::from_secs(5);
/// Age of what hardly changes: flavors, images, zones, external networks.
pub(crate) const CATALOG: Duration = Duration::from_secs(600);

/// A project in a region of a cloud.
pub(crate) struct Project {
    /// Id in Keystone.
    pub id: String,
    /// When its first round began.
    since: Instant,
    networks: Listing<Network>,
    subnets: Listing<Subnet>,
    routers: Listing<Router>,
    ports: Listing<Port>,
    trunks: Listing<Trunk>,
    groups: Listing<SecurityGroup>,
    addresses: Listing<FloatingIp>,
    balancers: Listing<LoadBalancer>,
    listeners: Listing<Listener>,
    pools: Listing<Pool>,
    monitors: Listing<HealthMonitor>,
    servers: Listing<Server>,
    server_groups: Listing<ServerGroup>,
    volumes: Listing<Volume>,
    flavors: Listing<Flavor>,
    /// All that the project sees: members cannot list the public ones apart.
    images: Listing<Image>,
    external: Listing<Network>,
    zones: Listing<String>,
    /// Members by pool; read again when the pool lists others.
    members: Mutex<BTreeMap<String, Vec<Member>>>,
    /// When each load balancer had been changed last, as of the last list of listeners and pools.
    parts: Mutex<BTreeMap<String, Time>>,
    /// Application credentials by user: unlike everything else they are not the project's.
    credentials: Mutex<BTreeMap<String, Arc<Listing<ApplicationCredential>>>>,
    /// Answers to filters of manifests, by question.
    lookups: Mutex<BTreeMap<String, Lookup>>,
}

/// Listeners, pools and monitors of all load balancers of a project.
type Parts = (Arc<Vec<Listener>>, Arc<Vec<Pool>>, Arc<Vec<HealthMonitor>>);

/// Ids that answer a question, and when they were read.
type Lookup = (Instant, Arc<Vec<String>>);

/// A kind that is listed per project.
pub(crate) trait Listed: List + Clone + Sync {
    fn listing(project: &Project) -> &Listing<Self>;

    /// Administrators see other projects' things too, unless they name theirs.
    fn of_project(id: &str) -> Self::Filter;
}

macro_rules! listed {
    ($($kind:ty: $field:ident, $id:ident => $filter:expr;)*) => {$(
        impl Listed for $kind {
            fn listing(project: &Project) -> &Listing<Self> {
                &project.$field
            }

            fn of_project($id: &str) -> Self::Filter {
                $filter
            }
        }
    )*};
}

listed! {
    Network: networks, id => NetworkFilter { project_id: Some(id.to_owned()), ..NetworkFilter::default() };
    Subnet: subnets, id => SubnetFilter { project_id: Some(id.to_owned()), ..SubnetFilter::default() };
    Router: routers, id => RouterFilter { project_id: Some(id.to_owned()), ..RouterFilter::default() };
    Port: ports, id => PortFilter { project_id: Some(id.to_owned()), ..PortFilter::default() };
    Trunk: trunks, _id => TrunkFilter::default();
    SecurityGroup: groups, id => SecurityGroupFilter { project_id: Some(id.to_owned()), ..SecurityGroupFilter::default() };
    FloatingIp: addresses, id => FloatingIpFilter { project_id: Some(id.to_owned()), ..FloatingIpFilter::default() };
    LoadBalancer: balancers, id => LoadBalancerFilter { project_id: Some(id.to_owned()), ..LoadBalancerFilter::default() };
    Listener: listeners, id => PartFilter { project_id: Some(id.to_owned()), ..PartFilter::default() };
    Pool: pools, id => PartFilter { project_id: Some(id.to_owned()), ..PartFilter::default() };
    HealthMonitor: monitors, id => MonitorFilter { project_id: Some(id.to_owned()), ..MonitorFilter::default() };
    Server: servers, _id => ServerFilter::default();
    ServerGroup: server_groups, _id => ServerGroupFilter::default();
    Volume: volumes, _id => VolumeFilter::default();
    Flavor: flavors, _id => FlavorFilter::default();
    Image: images, _id => ImageFilter::default();
}

impl Project {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            since: Instant::now(),
            networks: Listing::default(),
            subnets: Listing::default(),
            routers: Listing::default(),
            ports: Listing::default(),
            trunks: Listing::default(),
            groups: Listing::default(),
            addresses: Listing::default(),
            balancers: Listing::default(),
            listeners: Listing::default(),
            pools: Listing::default(),
            monitors: Listing::default(),
            servers: Listing::default(),
            server_groups: Listing::default(),
            volumes: Listing::default(),
            flavors: Listing::default(),
            images: Listing::default(),
            external: Listing::default(),
            zones: Listing::default(),
            members: Mutex::default(),
            parts: Mutex::default(),
            credentials: Mutex::default(),
            lookups: Mutex::default(),
        }
    }

    /// How long this round lasts already.
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(
            (self.since.elapsed().as_nanos() % SETTLED.as_nanos()).try_into().unwrap_or_default(),
        )
    }

    /// The age of lists that are at most `age` old; with [`SETTLED`], of those of this round.
    pub(crate) fn age(&self, age: Duration) -> Duration {
        // A list of the moment in which the round began is of this round.
        if age == SETTLED { self.elapsed() + Duration::from_nanos(1) } else { age }
    }

    /// The list of a user's application credentials.
    pub(crate) fn application_credentials(&self, user: &str) -> Arc<Listing<ApplicationCredential>> {
        self.credentials.lock().entry(user.to_owned()).or_default().clone()
    }
}

/// The cloud, as one object's credentials reach it.
#[derive(Clone)]
pub(crate) struct Access {
    pub client: Client,
    pub project: Arc<Project>,
}

impl Access {
    /// The project's things of a kind, not older than `age`.
    pub(crate) async fn all<R: Listed>(&self, age: Duration) -> Result<Arc<Vec<R>>, Error> {
        let filter = R::of_project(&self.project.id);
        R::listing(&self.project).read(self.project.age(age), self.client.list::<R>(&filter)).await
    }

    /// How long until settled lists are read again. Lists last for a round, the same for all kinds and objects of the
    /// project, and everything is looked at when the next one begins: if ages of lists and waits of objects counted from
    /// their own moments, they would add up, and drift would be seen two minutes late.
    pub(crate) fn next_round(&self) -> Duration {
        SETTLED.saturating_sub(self.project.elapsed())
    }

    /// Takes over the answer of a call that created or changed a thing.
    pub(crate) async fn put<R: Listed>(&self, item: &R) {
        R::listing(&self.project).put(item).await;
    }

    pub(crate) async fn change<R: Listed>(&self, id: &str, change: impl FnOnce(&mut R)) {
        R::listing(&self.project).change(id, change).await;
    }

    /// Drops a thing that a call of ours removed.
    pub(crate) async fn remove<R: Listed>(&self, id: &str) {
        R::listing(&self.project).remove(id).await;
    }

    /// Nothing that is known of a kind counts any more.
    pub(crate) async fn forget<R: Listed>(&self) {
        R::listing(&self.project).forget().await;
    }

    /// Networks that lead out of the cloud, whoever owns them.
    pub(crate) async fn external_networks(&self) -> Result<Arc<Vec<Network>>, Error> {
        let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
        self.project.external.read(CATALOG, self.client.list::<Network>(&filter)).await
    }

    /// Names of Nova's zones that take servers.
    pub(crate) async fn zones(&self) -> Result<Arc<Vec<String>>, Error> {
        let list = async {
            let mut zones: Vec<String> = self
                .client
                .compute_zones()
                .await?
                .into_iter()
                .filter(|zone| zone.state.available)
                .map(|zone| zone.name)
                .collect();
            zones.sort();
            Ok(zones)
        };
        self.project.zones.read(CATALOG, list).await
    }

    /// Listeners, pools and monitors of the project. Octavia changes `updated_at` of a load balancer with every change of what
    /// belongs to it, so they are listed again only if that of `balancer` is another than at the last list.
    pub(crate) async fn parts(&self, balancer: &LoadBalancer) -> Result<Parts, Error> {
        let known = self.project.parts.lock().get(balancer.id.as_str()).copied();
        if known.is_none() || known != balancer.updated_at {
            // Listed after the load balancers: what is recorded is never newer than what is listed.
            let balancers = self.all::<LoadBalancer>(SETTLED).await?;
            self.forget::<Listener>().await;
            self.forget::<Pool>().await;
            self.forget::<HealthMonitor>().await;
            let parts: Parts = (self.all(SETTLED).await?, self.all(SETTLED).await?, self.all(SETTLED).await?);
            self.record(&balancers, &parts.1);
            return Ok(parts);
        }
        Ok((self.all(CATALOG).await?, self.all(CATALOG).await?, self.all(CATALOG).await?))
    }

    /// Records when load balancers were changed last, and drops the members of those that were changed since.
    fn record(&self, balancers: &[LoadBalancer], pools: &[Pool]) {
        let changed = |held: &LoadBalancer| Some((held.id.to_string(), held.updated_at?));
        let now: BTreeMap<String, Time> = balancers.iter().filter_map(changed).collect();
        let before = std::mem::replace(&mut *self.project.parts.lock(), now.clone());
        let is_same = |of: &str| before.get(of).is_some_and(|at| now.get(of) == Some(at));
        let stays = |pool: &Pool| pool.loadbalancers.iter().all(|of| is_same(of.id.as_str()));
        let stay: BTreeSet<&str> = pools.iter().filter(|it| stays(it)).map(|it| it.id.as_str()).collect();
        self.project.members.lock().retain(|pool, _| stay.contains(pool.as_str()));
    }

    /// Members of a pool. They are read only if the load balancer was changed, or the pool lists others than are known.
    pub(crate) async fn members(&self, pool: &Pool) -> Result<Vec<Member>, Error> {
        let known = self.project.members.lock().get(pool.id.as_str()).cloned();
        if let Some(known) = known {
            let same = known.len() == pool.members.len()
                && known.iter().all(|member| pool.members.iter().any(|listed| listed.id == member.id));
            if same {
                return Ok(known);
            }
        }
        let members =
            if pool.members.is_empty() { Vec::new() } else { self.client.members(&pool.id).await? };
        self.project.members.lock().insert(pool.id.to_string(), members.clone());
        Ok(members)
    }

    /// The ids that a filter of a manifest matches, kept for a while.
    pub(crate) async fn lookup(
        &self,
        question: &str,
        ask: impl Future<Output = Result<Vec<String>, Error>>,
    ) -> Result<Arc<Vec<String>>, Error> {
        let known = self.project.lookups.lock().get(question).cloned();
        // What was not found may have been added since.
        if let Some((at, found)) = known
            && at.elapsed() < if found.len() == 1 { CATALOG } else { PENDING }
        {
            return Ok(found);
        }
        let (at, found) = (Instant::now(), Arc::new(ask.await?));
        let mut lookups = self.project.lookups.lock();
        lookups.retain(|_, (at, _)| at.elapsed() < CATALOG);
        lookups.insert(question.to_owned(), (at, found.clone()));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_settled_list_is_of_this_round() {
        tokio::time::advance(Duration::from_secs(7)).await;
        let project = Project::new("p".to_owned());
        let just = Duration::from_nanos(1);
        for (advance, age) in [(0, 0), (20, 20), (39, 59), (1, 0), (61, 1)] {
            tokio::time::advance(Duration::from_secs(advance)).await;
            assert_eq!(project.age(SETTLED), Duration::from_secs(age) + just);
            assert_eq!(project.age(CATALOG), CATALOG);
        }
    }
}
