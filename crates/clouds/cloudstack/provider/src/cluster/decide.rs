//! What is done about a CloudStackCluster.

use std::sync::Arc;

use capstan_capi_core::conditions::{ConditionState, set_state, shortened};
use capstan_capi_types::core::{FailureDomain, condition, label, reason};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::names::finalizer::{CKS_CLUSTER, CLUSTER as FINALIZER};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackFailureDomainSpec};
use capstan_controller::{Effect, Look, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Condition, ObjectMeta, OwnerReference};
use capstan_provider_kit::decide_cluster;

use super::{CloudStackClusters, mirror};
use crate::failure_domain::in_use;

pub(super) type Decision = capstan_controller::Decision<CloudStackClusters>;

/// Port of the API where the manifest names none.
pub(crate) const API_PORT: i32 = 6443;

/// Names shown of things that are waited for.
const SHOWN: usize = 3;

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<CloudStackClusters>) -> Decision {
    let owned = look.seen.cluster.is_some();
    decide_cluster(look, |object| &mut object.status.conditions, delete, owned.then_some(keep))
}

fn ready(look: &Look<CloudStackClusters>, decision: &mut Decision, verdict: ConditionState) {
    decision.object.status.ready = verdict.status == True;
    decision.object.status.observed_generation = look.object.metadata.generation;
    set_state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn waiting(look: &Look<CloudStackClusters>, decision: &mut Decision, reason: &str, what: String) {
    decision.wait(Wait::on(reason, what.as_str()));
    ready(look, decision, ConditionState::new(False, reason, what));
}

fn keep(look: &Look<CloudStackClusters>, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let Some(cluster) = look.seen.cluster.as_ref().map(|cluster| cluster.metadata.name.as_str()) else {
        return;
    };
    let wanted = &look.object.spec.failure_domains;
    for domain in wanted.iter().filter(|domain| object_of(look, domain, cluster).is_none()) {
        // Required: a network passes from a failure domain that goes to one that is there, and goes with it otherwise.
        decision.then(Effect::create(&new_object(look, domain, cluster)));
    }
    let refused = look.seen.domains.iter().find(|object| must_stay(look, object));
    for object in &look.seen.domains {
        let stays = wanted.iter().any(|domain| domain.name == object.spec.name && !corrected(domain, object));
        if !stays && !object.metadata.is_deleting() && !must_stay(look, object) {
            decision.best_effort(Effect::delete(&**object));
        }
    }
    record_domains(look, cluster, decision);
    let unready = wanted.iter().find_map(|domain| match object_of(look, domain, cluster) {
        None => Some((domain, "it is being created".to_owned())),
        Some(object) if object.status.ready => None,
        Some(object) => Some((domain, said(&object.status.conditions))),
    });
    if let Some((domain, why)) = unready {
        let what = format!("failure domain {} is not ready: {why}", domain.name);
        return waiting(look, decision, "WaitingForFailureDomains", what);
    }
    let endpoint = &mut decision.object.spec.control_plane_endpoint;
    if endpoint.host.is_empty() {
        let Some(found) = &look.seen.endpoint else {
            let what = "spec.controlPlaneEndpoint.host is empty and no network is isolated: \
                        set it to a free address of the shared network"
                .to_owned();
            return waiting(look, decision, "EndpointMissing", what);
        };
        *endpoint = found.clone();
    }
    if endpoint.port == 0 {
        endpoint.port = API_PORT;
    }
    record_domains(look, cluster, decision);
    decision.object.status.initialization.provisioned = Some(true);
    match refused {
        None => ready(look, decision, ConditionState::new(True, reason::PROVISIONED, "")),
        Some(domain) => {
            let cause = in_use(domain, &look.object);
            decision.wait(Wait::on(cause.reason, cause.message.as_str()).code(cause.code));
            ready(look, decision, ConditionState::new(False, cause.reason, cause.text()));
        }
    }
    mirror::keep(look, cluster, decision);
}

/// The manifest names a failure domain no longer whose network alone has the endpoint.
fn must_stay(look: &Look<CloudStackClusters>, object: &CloudStackFailureDomain) -> bool {
    let is_named = |name: &str| look.object.spec.failure_domains.iter().any(|domain| domain.name == name);
    let serves_too = |other: &&Arc<CloudStackFailureDomain>| {
        look.seen.serving.contains(&other.metadata.name) && is_named(&other.spec.name)
    };
    look.seen.serving.contains(&object.metadata.name)
        && !is_named(&object.spec.name)
        && !look.seen.domains.iter().any(|other| serves_too(&other))
}

/// Whether the manifest was corrected before the failure domain was of use: the object is made again.
fn corrected(domain: &CloudStackFailureDomainSpec, object: &CloudStackFailureDomain) -> bool {
    let (seen, status) = (&object.spec, &object.status);
    if status.ready || status.initialization.provisioned == Some(true) {
        return false;
    }
    // Ids and names that the manifest leaves open are filled in as the cloud writes them.
    let differs = |wanted: &str, seen: &str| !wanted.is_empty() && !wanted.eq_ignore_ascii_case(seen);
    let (zone, network) = (&domain.zone, &domain.zone.network);
    let (seen_zone, seen_network) = (&seen.zone, &seen.zone.network);
    (&domain.acs_endpoint, &domain.account, &domain.domain, &domain.project)
        != (&seen.acs_endpoint, &seen.account, &seen.domain, &seen.project)
        || differs(&zone.id, &seen_zone.id)
        || differs(&zone.name, &seen_zone.name)
        || differs(&network.id, &seen_network.id)
        || differs(&network.name, &seen_network.name)
        || network.offering != seen_network.offering
        || network.vpc.as_ref().is_some_and(|vpc| {
            let seen = seen_network.vpc.clone().unwrap_or_default();
            differs(&vpc.id, &seen.id)
                || differs(&vpc.name, &seen.name)
                || differs(&vpc.cidr, &seen.cidr)
                || differs(&vpc.offering, &seen.offering)
        })
        // A VPC that was taken out of the manifest. One with an id is the cloud's, and was filled in.
        || (network.vpc.is_none() && seen_network.vpc.as_ref().is_some_and(|vpc| vpc.id.is_empty()))
        // An id that was taken out of the manifest was not the cloud's if nothing was found by it.
        || (network.id.is_empty() && !seen_network.id.is_empty() && status_is_not_found(object))
}

fn status_is_not_found(object: &CloudStackFailureDomain) -> bool {
    let ready = object.status.conditions.iter().find(|one| one.kind == condition::READY);
    ready.is_some_and(|ready| ready.reason.ends_with("NotFound"))
}

/// The failure domains, for whoever places machines. The load balancer of an isolated network reaches machines of that
/// network alone, so control planes have to live there: elsewhere they would not be behind the endpoint. An endpoint
/// that is no network's own, such as one of kube-vip, is served from everywhere.
fn record_domains(look: &Look<CloudStackClusters>, cluster: &str, decision: &mut Decision) {
    let host = &decision.object.spec.control_plane_endpoint.host;
    let serving: Vec<&str> = look
        .seen
        .networks
        .iter()
        .filter(|(_, served)| served == host)
        .map(|(network, _)| network.as_str())
        .collect();
    let domain = |domain: &CloudStackFailureDomainSpec| {
        let resolved = object_of(look, domain, cluster).map_or(&domain.zone, |object| &object.spec.zone);
        let own = names::isolated_network_object_of(cluster, &resolved.network.name, &domain.name);
        let plain = names::isolated_network_object(cluster, &resolved.network.name);
        let has_own = look.seen.networks.iter().any(|(network, _)| *network == own);
        let network = if has_own { own } else { plain };
        FailureDomain {
            name: domain.name.clone(),
            control_plane: Some(serving.is_empty() || serving.contains(&network.as_str())),
            attributes: [("MetaHashName".to_owned(), names::failure_domain_object(&domain.name, cluster))]
                .into(),
        }
    };
    // One that cannot be removed goes on taking control planes.
    let kept = look.seen.domains.iter().filter(|object| must_stay(look, object)).map(|object| &object.spec);
    decision.object.status.failure_domains.0 =
        look.object.spec.failure_domains.iter().chain(kept).map(domain).collect();
}

/// What an object says about itself.
fn said(conditions: &[Condition]) -> String {
    match conditions.iter().find(|one| one.kind == condition::READY) {
        Some(ready) if !ready.message.is_empty() => ready.message.clone(),
        Some(ready) => ready.reason.clone(),
        None => "it has not been reconciled yet".to_owned(),
    }
}

fn object_of<'a>(
    look: &'a Look<CloudStackClusters>,
    domain: &CloudStackFailureDomainSpec,
    cluster: &str,
) -> Option<&'a CloudStackFailureDomain> {
    let name = names::failure_domain_object(&domain.name, cluster);
    look.seen.domains.iter().map(|object| &**object).find(|object| object.metadata.name == name)
}

fn new_object(
    look: &Look<CloudStackClusters>,
    domain: &CloudStackFailureDomainSpec,
    cluster: &str,
) -> CloudStackFailureDomain {
    let own = &look.object.metadata;
    let name = names::failure_domain_object(&domain.name, cluster);
    let mut metadata = ObjectMeta::named(own.namespace.as_str(), name);
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.to_owned());
    metadata.owner_references.push(OwnerReference::controlled_by(&*look.object));
    CloudStackFailureDomain { metadata, spec: domain.clone(), ..CloudStackFailureDomain::default() }
}

fn delete(look: &Look<CloudStackClusters>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    let machines = &look.seen.machines;
    if !machines.is_empty() {
        let what = format!("these machines are still there: {}", shortened(machines, SHOWN));
        return waiting(look, decision, reason::DELETING, what);
    }
    if mirror::delete(look, decision) {
        return waiting(
            look,
            decision,
            reason::DELETING,
            "the entry in CloudStack's list of clusters".to_owned(),
        );
    }
    decision.remove_finalizer(CKS_CLUSTER);
    for domain in look.seen.domains.iter().filter(|domain| !domain.metadata.is_deleting()) {
        decision.best_effort(Effect::delete(&**domain));
    }
    match look.seen.domains.first() {
        Some(domain) => {
            let what = format!("failure domain {}: {}", domain.spec.name, said(&domain.status.conditions));
            waiting(look, decision, reason::DELETING, what);
        }
        None => {
            decision.remove_finalizer(FINALIZER);
        }
    }
}
