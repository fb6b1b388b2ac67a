//! What a decision about a CloudStackMachine depends on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_cloudstack_client::commands::{ListLoadBalancerRuleInstances, ListLoadBalancerRules};
use capstan_cloudstack_client::model::{MachineState, VirtualMachine};
use capstan_cloudstack_client::{Code, JobId, LoadBalancerRuleId, VirtualMachineId, VolumeId};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
    CloudStackMachine,
};
use capstan_controller::{ObserveError, View};
use capstan_object::{Conditions, Key};
use capstan_provider_kit::{BootData, BootDataError};

use super::catalog::Catalog;
use super::namesake::NAME_TAKEN;
use super::placement::Placements;
use super::reason::{ATTACH_FAILED, ORDER_FAILED};
use super::resolve::Sign;
use super::ssh::SshRules;
use super::teardown::{self, Teardown};
use super::{
    ATTACHED, Answers, Namesake, Order, balancer_rule, forwarding, namesake, naming, placement,
    prerequisites, ssh,
};
use crate::account_cache::{MOVING, SETTLED};
use crate::annotation;
use crate::balancers::Balancer;
use crate::clouds::{Access, Clouds};
use crate::cluster::infrastructure_of;
use crate::deployments::Deployment;
use crate::error::CloudError;
use crate::isolated_network::{self, Made};
use crate::quota::Headroom;

/// What the cloud says about the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Instance {
    /// Nobody asked: none was ordered.
    #[default]
    None,
    /// It was ordered and is not there yet; worth a look after so long.
    Deploying(Duration),
    /// It did not come up; what CloudStack says.
    Failed(String),
    There {
        machine: Arc<VirtualMachine>,
        /// How old the look is.
        age: Duration,
    },
    /// There is none of that id any more.
    Gone,
    /// The cloud cannot be asked.
    Unknown(CloudError),
}

/// What was seen beside the CloudStackMachine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Machine that owns it.
    pub machine: Option<Arc<Machine>>,
    pub cluster: Option<Arc<Cluster>>,
    pub infrastructure: Option<Arc<CloudStackCluster>>,
    /// Machines of the same owner in each failure domain.
    pub placed: BTreeMap<String, usize>,
    pub domain: Option<Arc<CloudStackFailureDomain>>,
    /// Its network, if that has a load balancer.
    pub network: Option<Arc<CloudStackIsolatedNetwork>>,
    /// The affinity group it asks for.
    pub group: Option<Arc<CloudStackAffinityGroup>>,
    /// The machine in the cloud.
    pub instance: Instance,
    /// Who has the name of the order; asked if CloudStack said that the name is taken, and before an object without a
    /// machine on record goes.
    pub namesake: Option<Result<Namesake, CloudError>>,
    /// Load balancers of a cluster that goes, on a network that stays, as far as they lead to this machine.
    pub balancers: Vec<Balancer>,
    /// What an order is chosen from; `None` while none is to be made.
    pub catalog: Option<Result<Catalog, CloudError>>,
    /// What the machine is to boot with; `None` while none is to be ordered.
    pub boot_data: Option<Result<BootData, BootDataError>>,
    /// What the limits of the account leave for it; `None` while none is to be ordered.
    pub headroom: Option<Headroom>,
    /// It is a member of the load balancer. Asked only after it could not be added, as members cannot be added twice, where
    /// it ran before this was recorded, and when somebody took members out of rules of the account.
    pub is_member: Option<bool>,
    /// Time until it is known whether somebody took it out of the load balancer.
    pub next_poll: Option<Duration>,
    /// Rules for SSH; `None` if nothing is to be done about them.
    pub ssh: Option<Result<SshRules, CloudError>>,
    /// Data disks that the machine came with; `None` if they are on record, or there are none.
    pub disks: Option<Vec<VolumeId>>,
    /// How the machine would be destroyed; `None` if it stays.
    pub teardown: Option<Result<Teardown, CloudError>>,
}

/// The cluster that an object belongs to, by its Machine or, without one, by its label.
pub(super) fn cluster_of(
    object: &CloudStackMachine,
    view: &View,
) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let machine = owners::of::<Machine>(&object.metadata, view)?;
    let label = object.metadata.labels.get(label::CLUSTER_NAME);
    let Some(name) = machine.as_ref().map(|machine| &machine.spec.cluster_name).or(label) else {
        return Ok(None);
    };
    view.get(&Key::new(object.metadata.namespace.as_str(), name.as_str()))
}

pub(super) async fn observe(
    object: &CloudStackMachine,
    view: &View,
    clouds: &Clouds,
    answers: &Answers,
) -> Result<Seen, ObserveError> {
    let mut seen = surroundings(object, view, &answers.placements)?;
    let Some(domain) = seen.domain.clone() else { return Ok(seen) };
    let ordered = object.spec.instance_id.as_deref();
    let forgotten = ordered.is_none()
        && object.metadata.is_deleting()
        && naming::may_have_one(&object.metadata, seen.machine.as_deref());
    if ordered.is_none() && !forgotten && !prerequisites::may_order(object, &seen, view.now()) {
        return Ok(seen);
    }
    match (clouds.access(&domain.spec, view).await, ordered) {
        (Ok(access), None) if forgotten => {
            seen.namesake = Some(namesake(object, None, &access, view).await?);
        }
        (Err(cause), None) if forgotten => seen.namesake = Some(Err(cause)),
        (Ok(access), Some(id)) => existing(object, &id.into(), &mut seen, &access, view, answers).await?,
        (Ok(access), None) => {
            let reported = object.status.conditions.condition(condition::READY);
            let refused = reported.is_some_and(|reported| reported.reason == ORDER_FAILED);
            seen.catalog = Some(Catalog::look_up(&object.spec, &domain.spec, refused, &access).await);
            let machine = seen.machine.as_ref();
            let secret = machine.and_then(|machine| machine.spec.bootstrap.data_secret_name.clone());
            let secret = Key::new(object.metadata.namespace.as_str(), secret.unwrap_or_default());
            seen.boot_data = Some(BootData::observe(&secret, view).await);
            if refused && reported.is_some_and(|reported| reported.message.contains(NAME_TAKEN)) {
                let order = Order::of(object, &seen).and_then(Result::ok);
                seen.namesake = Some(namesake(object, order.as_ref(), &access, view).await?);
            }
            if let Some(Ok(order)) = Order::of(object, &seen) {
                let amounts = order.amounts();
                seen.headroom =
                    Some(access.headroom(&object.metadata.key().to_string(), &amounts, &amounts).await);
            }
        }
        (Err(cause), Some(_)) => seen.instance = Instance::Unknown(cause),
        (Err(cause), None) => seen.catalog = Some(Err(cause)),
    }
    Ok(seen)
}

/// Who has the name of the order that is under way or next.
async fn namesake(
    object: &CloudStackMachine,
    order: Option<&Order>,
    access: &Access,
    view: &View,
) -> Result<Result<Namesake, CloudError>, ObserveError> {
    let sign = Sign::of(order, object, view).await?;
    let networks = order.map(Order::network_ids).unwrap_or_default();
    let found = namesake::look_up(&naming::current(&object.metadata), &sign, &networks, access).await;
    Ok(found.map_err(|error| access.explain(&error)))
}

/// What the cloud says about a machine that was ordered.
async fn existing(
    object: &CloudStackMachine,
    id: &VirtualMachineId,
    seen: &mut Seen,
    access: &Access,
    view: &View,
    answers: &Answers,
) -> Result<(), ObserveError> {
    let ran = naming::ran(object, seen.machine.as_deref());
    seen.instance = match instance(object, id, ran, access).await {
        Ok(instance) => instance,
        Err(cause) => Instance::Unknown(cause),
    };
    if let Some(id) = balanced(object, seen) {
        seen.balancers =
            balancers(id, access).await.map_err(|cause| ObserveError::outside(cause.code, cause.message))?;
    }
    if let Some(due) = teardown::due(object, seen) {
        seen.teardown = Some(teardown::observe(due, object, &seen.instance, access, &answers.disks).await);
    }
    let Instance::There { machine: vm, .. } = &seen.instance else { return Ok(()) };
    let unknown = teardown::has_disk(object) && teardown::recorded(object).is_none();
    if unknown && vm.state == Some(MachineState::Running) && !object.metadata.is_deleting() {
        // Without an answer it is asked again at the next look.
        seen.disks = teardown::disks(&vm.id, access, &answers.disks).await.ok();
    }
    let reported = object.status.conditions.condition(ATTACHED);
    // A Machine that has its provider id before anything of this was recorded was moved here: it is a member already. That
    // of a new one gets its id later.
    let was_moved = seen.machine.as_ref().is_some_and(|machine| !machine.spec.provider_id.is_empty());
    let came_with_it = reported.is_none() && was_moved;
    if let Some(rule) = balancer_rule::of(object, seen)
        && (came_with_it || reported.is_some_and(|reported| reported.reason == ATTACH_FAILED))
    {
        let members = ListLoadBalancerRuleInstances { id: rule.into(), applied: None };
        let members = access.client.list(&members).await.ok();
        seen.is_member = members.map(|members| members.iter().any(|member| member.id == vm.id));
    }
    let runs = vm.state == Some(MachineState::Running) && !object.metadata.is_deleting();
    if let Some(rule) = balancer_rule::of(object, seen)
        && runs
        && reported.is_some_and(|reported| reported.is_true() && reported.message == rule)
    {
        let rule: LoadBalancerRuleId = rule.into();
        // Without an answer it is asked again at the next look.
        let asked = access.cache.is_member(&access.client, &access.scope(), (&rule, &vm.id)).await.ok();
        (seen.is_member, seen.next_poll) = asked.map(|(is, next)| (is, Some(next))).unwrap_or_default();
    }
    if let Some(question) = ssh::question(object, seen, vm) {
        let before = before(object, view)?;
        let rules = forwarding::observe(&question, access, &answers.rules).await;
        let rules = rules.map_err(|error| access.explain(&error));
        seen.ssh = Some(rules.map(|rules| SshRules { rules, before }));
    }
    Ok(())
}

/// Machines of the same cluster and failure domain whose names come before that of an object.
fn before(object: &CloudStackMachine, view: &View) -> Result<Vec<String>, ObserveError> {
    let meta = &object.metadata;
    let Some(cluster) = meta.labels.get(label::CLUSTER_NAME) else { return Ok(Vec::new()) };
    let all = view.labelled::<CloudStackMachine>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
    let beside = all.iter().filter(|other| {
        other.metadata.name < meta.name
            && other.spec.failure_domain_name == object.spec.failure_domain_name
            && !other.metadata.is_deleting()
    });
    Ok(beside.filter_map(|other| other.spec.instance_id.clone()).collect())
}

/// The machine, if something may lead to it that nobody else removes or reports: the cluster is deleted and its network
/// stays.
fn balanced(object: &CloudStackMachine, seen: &Seen) -> Option<VirtualMachineId> {
    let Instance::There { machine, .. } = &seen.instance else { return None };
    let going = matches!(machine.state, Some(MachineState::Destroyed | MachineState::Expunging));
    let cluster = seen.cluster.as_ref().filter(|cluster| cluster.metadata.is_deleting());
    let network = seen.network.as_ref().filter(|network| Made::of(&network.metadata).network.is_none());
    let asked = object.metadata.is_deleting() && cluster.is_some() && network.is_some() && !going;
    asked.then(|| machine.id.clone())
}

async fn balancers(id: VirtualMachineId, access: &Access) -> Result<Vec<Balancer>, CloudError> {
    let question = ListLoadBalancerRules {
        virtualmachineid: Some(id),
        scope: access.scope(),
        ..ListLoadBalancerRules::default()
    };
    let found = access.client.list(&question).await.map_err(|error| access.explain(&error))?;
    Ok(found.iter().filter_map(Balancer::of).collect())
}

/// The failure domain that a machine was placed in.
pub(super) fn domain_of(
    object: &CloudStackMachine,
    view: &View,
) -> Result<Option<Arc<CloudStackFailureDomain>>, ObserveError> {
    let Some(cluster) = cluster_of(object, view)? else { return Ok(None) };
    let machine = owners::of::<Machine>(&object.metadata, view)?;
    let named = machine.as_ref().map_or("", |machine| machine.spec.failure_domain.as_str());
    let own = Some(object.spec.failure_domain_name.as_str()).filter(|own| !own.is_empty());
    domain(own.unwrap_or(named), &cluster, view)
}

/// Everything but the cloud.
fn surroundings(
    object: &CloudStackMachine,
    view: &View,
    placements: &Placements,
) -> Result<Seen, ObserveError> {
    let meta = &object.metadata;
    let mut seen = Seen {
        machine: owners::of::<Machine>(meta, view)?,
        cluster: cluster_of(object, view)?,
        ..Seen::default()
    };
    let Some(cluster) = &seen.cluster else { return Ok(seen) };
    if let Some(key) = infrastructure_of(cluster) {
        seen.infrastructure = view.get::<CloudStackCluster>(&key)?;
    }
    let (Some(machine), Some(infrastructure)) = (&seen.machine, &seen.infrastructure) else {
        seen.domain = domain(&object.spec.failure_domain_name, cluster, view)?;
        return Ok(seen);
    };
    if object.spec.failure_domain_name.is_empty() && machine.spec.failure_domain.is_empty() {
        let owner = machine.metadata.controller().map_or("", |owner| owner.uid.as_str());
        let (mut counts, recorded) = placed(object, machine, cluster, view)?;
        placements.choose((&meta.key(), owner), &mut counts, &recorded, |counts| {
            placement::failure_domain(object, machine, infrastructure, counts)
        });
        seen.placed = counts;
    } else {
        placements.forget(&meta.key());
    }
    let place = placement::failure_domain(object, machine, infrastructure, &seen.placed);
    let Some(place) = place else { return Ok(seen) };
    seen.domain = domain(place, cluster, view)?;
    if let Some(domain) = &seen.domain {
        seen.network = isolated_network::of_domain(domain, &cluster.metadata.name, view)?;
        if let Some(group) = placement::group(object, machine, cluster, domain) {
            seen.group = view.get(&group.metadata.key())?;
        }
    }
    Ok(seen)
}

/// How many machines of the same owner are in each failure domain by their record, and which have one.
fn placed(
    object: &CloudStackMachine,
    machine: &Machine,
    cluster: &Cluster,
    view: &View,
) -> Result<(BTreeMap<String, usize>, Vec<Key>), ObserveError> {
    let (own, cluster) = (&object.metadata, &cluster.metadata.name);
    let owner = machine.metadata.controller().map(|owner| owner.uid.as_str());
    let (mut placed, mut recorded) = (BTreeMap::new(), Vec::new());
    for other in view.labelled::<CloudStackMachine>(&own.namespace, label::CLUSTER_NAME, cluster)? {
        let theirs = owners::of::<Machine>(&other.metadata, view)?;
        let theirs = theirs.as_ref().and_then(|machine| machine.metadata.controller());
        let is_placed = !other.spec.failure_domain_name.is_empty();
        if is_placed && other.metadata.uid != own.uid && theirs.map(|owner| owner.uid.as_str()) == owner {
            recorded.push(other.metadata.key());
            *placed.entry(other.spec.failure_domain_name.clone()).or_default() += 1;
        }
    }
    Ok((placed, recorded))
}

fn domain(
    name: &str,
    cluster: &Cluster,
    view: &View,
) -> Result<Option<Arc<CloudStackFailureDomain>>, ObserveError> {
    let object = names::failure_domain_object(name, &cluster.metadata.name);
    view.get(&Key::new(cluster.metadata.namespace.as_str(), object))
}

async fn instance(
    object: &CloudStackMachine,
    id: &VirtualMachineId,
    ran: bool,
    access: &Access,
) -> Result<Instance, CloudError> {
    let explain = |error: capstan_cloudstack_client::Error| access.explain(&error);
    let deleting = object.metadata.is_deleting();
    if let Some(job) = object.metadata.annotations.get(annotation::DEPLOY_JOB).filter(|_| !deleting) {
        let job: JobId = job.as_str().into();
        match access.cache.deployment(&access.client, &access.scope(), &job, id).await {
            Ok(Deployment::Running(next)) => return Ok(Instance::Deploying(next)),
            Ok(Deployment::Done(machine)) => return Ok(Instance::There { machine, age: Duration::ZERO }),
            Ok(Deployment::Failed(why)) => return Ok(Instance::Failed(why)),
            // A job that is not known, or not to these keys, leaves the machine to look at.
            Err(error) if matches!(error.code(), Some(Code::Parameter | Code::Account)) => {}
            Err(error) => return Err(explain(error)),
        }
    }
    let most = if ran && !deleting { SETTLED } else { MOVING };
    let snapshot = access.cache.machine(&access.client, &access.scope(), id, most).await.map_err(explain)?;
    Ok(match snapshot.machine {
        Some(machine) => Instance::There { machine, age: snapshot.age },
        None => Instance::Gone,
    })
}
