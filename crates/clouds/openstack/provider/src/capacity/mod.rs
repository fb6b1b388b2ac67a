//! Whether OpenStack has what a plan takes: quotas of projects, and flavors, images, networks and zones that machines and
//! clusters name. Looks and changes nothing.

mod fits;
mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_object::Key;
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool};
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackIdentityReference, OpenStackMachineSpec};
use capstan_provider_kit::{
    Capacity, CapacityAnswer, CapacityQuestion, Left, PlannedMachine, Quota, Refusal, Size, within_patience,
};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clouds::Namespace;
use crate::cluster::{Needs, missing, needs};
use crate::code;
use crate::error::CloudError;
use crate::plugin::OpenStack;
use crate::project::Access;
use fits::judge;
use limits::{Taken, limits};

impl Capacity for OpenStack {
    fn answer<'a>(&'a self, question: CapacityQuestion<'a>) -> BoxFuture<'a, CapacityAnswer> {
        Box::pin(self.ask(question))
    }
}

/// Machine and cluster of a plan, with their specs.
#[derive(Default)]
struct Order<'a> {
    clusters: Vec<(Key, OpenStackCluster)>,
    machines: Vec<(&'a PlannedMachine, OpenStackMachineSpec)>,
}

/// What is ordered from a project.
struct ProjectOrders<'a> {
    access: Access,
    scope: String,
    order: Order<'a>,
}

/// Whose credentials: namespace of the object, and its reference.
type Credentials = (String, [String; 4]);

impl OpenStack {
    /// Asks the projects in which clusters of the plan grow.
    async fn ask(&self, question: CapacityQuestion<'_>) -> CapacityAnswer {
        let mut answer = CapacityAnswer::default();
        let mut places: Vec<ProjectOrders<'_>> = Vec::new();
        for (reference, namespace, order) in orders(&question) {
            let unknown = |why: String| {
                let scope = format!("OpenStack (cloud {} of {})", reference.cloud_name, reference.name);
                quota(scope, &order, Err(why))
            };
            let opened = within_patience("Keystone", self.project(&question, &reference, &namespace)).await;
            let (access, name) = match opened {
                Ok(Ok(reached)) => reached,
                Ok(Err(error)) => {
                    // From here it may not be reachable, and yet be from where the plane runs.
                    if error.code != code::UNREACHABLE {
                        answer.warnings.push(error.text());
                    }
                    answer.quotas.push(unknown(error.text()));
                    continue;
                }
                Err(late) => {
                    answer.quotas.push(unknown(late));
                    continue;
                }
            };
            // Several references may lead to one project, whose limits they share.
            match places.iter_mut().find(|place| Arc::ptr_eq(&place.access.project, &access.project)) {
                Some(place) => {
                    place.order.clusters.extend(order.clusters);
                    place.order.machines.extend(order.machines);
                }
                None => {
                    places.push(ProjectOrders { access, scope: format!("OpenStack project {name}"), order })
                }
            }
        }
        for place in places {
            match within_patience("OpenStack", place.answer(&question)).await {
                Ok(more) => {
                    answer.quotas.extend(more.quotas);
                    answer.sizes.extend(more.sizes);
                    answer.refusals.extend(more.refusals);
                    answer.warnings.extend(more.warnings);
                }
                Err(late) => answer.quotas.push(quota(place.scope.clone(), &place.order, Err(late))),
            }
        }
        answer
    }

    /// The project of a reference, and its name.
    async fn project(
        &self,
        question: &CapacityQuestion<'_>,
        reference: &OpenStackIdentityReference,
        namespace: &str,
    ) -> Result<(Access, String), CloudError> {
        let secret = secret_of(question, reference, namespace).await?;
        let unreadable = |error: capstan_controller::ApiError| {
            let message = format!("Secret {secret} cannot be read: {error}");
            CloudError::new(code::SECRET, "SecretUnreadable", message)
        };
        let content = question.secret(&secret).await.map_err(unreadable)?.ok_or_else(|| {
            let message = format!("there is no Secret {secret}: create it with the key clouds.yaml");
            CloudError::new(code::SECRET, "SecretMissing", message)
        })?;
        let access = self.clouds().open(reference, &secret, &content).await?;
        let token = access.client.token().await?;
        let name = token.project().map(|project| project.name.clone()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| access.project.id.clone());
        Ok((access, name))
    }
}

/// The Secret of a reference, if the namespace may use it.
async fn secret_of(
    question: &CapacityQuestion<'_>,
    reference: &OpenStackIdentityReference,
    namespace: &str,
) -> Result<Key, CloudError> {
    if reference.kind != "ClusterIdentity" {
        return Ok(Key::new(namespace, reference.name.as_str()));
    }
    let name = &reference.name;
    let wrong = |message: String| CloudError::new(code::IDENTITY, "IdentityNotAllowed", message);
    let is_it = |object: &&Value| {
        object["kind"] == "OpenStackClusterIdentity" && object["metadata"]["name"] == name.as_str()
    };
    let identity = question.objects.iter().find(is_it).and_then(parsed::<OpenStackClusterIdentity>);
    let identity =
        identity.ok_or_else(|| wrong(format!("there is no OpenStackClusterIdentity {name}: create it")))?;
    if let Some(selector) = &identity.spec.namespace_selector {
        let held = question.client.get::<Namespace>(&Key::new("", namespace)).await;
        let labels = held.ok().flatten().map(|held| held.metadata.labels).unwrap_or_default();
        if !selector.matches(&labels).unwrap_or(false) {
            return Err(wrong(format!(
                "OpenStackClusterIdentity {name} does not allow namespace {namespace}: change its namespaceSelector or the \
                 labels of the namespace"
            )));
        }
    }
    let secret = &identity.spec.secret_ref;
    Ok(Key::new(secret.namespace.as_str(), secret.name.as_str()))
}

fn parsed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    serde_json::from_value(object.clone()).ok()
}

/// The OpenStackCluster of a cluster.
fn infrastructure(question: &CapacityQuestion<'_>, cluster: &Key) -> Option<OpenStackCluster> {
    let reference = &question.object("Cluster", cluster)?["spec"]["infrastructureRef"];
    if reference["kind"] != "OpenStackCluster" {
        return None;
    }
    let key = Key::new(cluster.namespace.as_str(), reference["name"].as_str()?);
    parsed(question.object("OpenStackCluster", &key)?)
}

/// What clusters that grow take, by the credentials it is ordered with.
fn orders<'a>(question: &CapacityQuestion<'a>) -> Vec<(OpenStackIdentityReference, String, Order<'a>)> {
    let mut all: BTreeMap<Credentials, (OpenStackIdentityReference, Order<'a>)> = BTreeMap::new();
    for cluster in question.growing() {
        let Some(object) = infrastructure(question, &cluster) else { continue };
        let namespace = &cluster.namespace;
        let of_cluster = object.spec.identity_ref.clone();
        let mine = question.machines.iter().filter(|machine| {
            machine.key.namespace == *namespace
                && machine.cluster == cluster.name
                && machine.is_of("OpenStackMachine")
        });
        for machine in mine {
            let spec = &machine.infrastructure["spec"];
            let Some(spec) = parsed::<OpenStackMachineSpec>(spec) else { continue };
            let reference = spec.identity_ref.clone().unwrap_or_else(|| of_cluster.clone());
            entry(&mut all, namespace, &reference).machines.push((machine, spec));
        }
        entry(&mut all, namespace, &of_cluster).clusters.push((cluster.clone(), object));
    }
    all.into_iter().map(|((namespace, _), (reference, order))| (reference, namespace, order)).collect()
}

fn entry<'m, 'a>(
    all: &'m mut BTreeMap<Credentials, (OpenStackIdentityReference, Order<'a>)>,
    namespace: &str,
    reference: &OpenStackIdentityReference,
) -> &'m mut Order<'a> {
    let of = [&reference.kind, &reference.name, &reference.cloud_name, &reference.region].map(Clone::clone);
    let held = all.entry((namespace.to_owned(), of));
    &mut held.or_insert_with(|| (reference.clone(), Order::default())).1
}

fn quota(scope: String, order: &Order<'_>, left: Result<Left, String>) -> Quota {
    let machines = order.machines.iter().map(|(machine, _)| machine.key.clone()).collect();
    Quota { scope, machines, left, others: Vec::new(), exceeded: code::QUOTA }
}

impl ProjectOrders<'_> {
    async fn answer(&self, question: &CapacityQuestion<'_>) -> CapacityAnswer {
        let mut answer = CapacityAnswer::default();
        let mut clusters = Needs::default();
        for (key, object) in &self.order.clusters {
            clusters.add(needs(object));
            for error in missing(object, &self.access).await {
                hear(&mut answer, key, &format!("OpenStackCluster/{}", object.metadata.name), &error);
            }
        }
        self.judge_machines(&mut answer).await;
        let machines = self.order.machines.iter().map(|(machine, spec)| (machine.key.clone(), spec.clone()));
        let taken = Taken { machines: machines.collect(), clusters, pooled: self.pooled(question) };
        let limits = limits(&taken, &self.access).await;
        let of = |why: String| format!("{}: {why}", self.scope);
        answer.warnings.extend(limits.unknown.into_iter().map(of));
        let known = quota(self.scope.clone(), &self.order, limits.left);
        answer.quotas.push(Quota { others: limits.others, ..known });
        answer
    }

    /// Sizes of all machines, and why new ones cannot be created; each order once.
    async fn judge_machines(&self, answer: &mut CapacityAnswer) {
        let mut sizes: BTreeMap<String, Option<Size>> = BTreeMap::new();
        let mut heard = BTreeSet::new();
        // New machines first: they are judged, existing ones are only measured.
        for new in [true, false] {
            for (machine, spec) in self.order.machines.iter().filter(|(machine, _)| machine.new == new) {
                let asked = &machine.infrastructure["spec"];
                let flavor = asked["flavor"].to_string();
                let order = format!("{} {} {} {asked}", machine.of, machine.version, machine.failure_domain);
                if (new && heard.insert(order)) || !sizes.contains_key(&flavor) {
                    let verdict = judge(spec, &machine.version, &machine.failure_domain, &self.access).await;
                    sizes.insert(flavor.clone(), verdict.size);
                    let cluster = Key::new(machine.key.namespace.as_str(), machine.cluster.as_str());
                    for error in verdict.errors.iter().filter(|_| new) {
                        hear(answer, &cluster, &machine.of, error);
                    }
                }
                if let Some(Some(size)) = sizes.get(&flavor) {
                    answer.sizes.insert(machine.key.clone(), *size);
                }
            }
        }
    }

    /// Floating IPs that are free in the pools of the machines.
    fn pooled(&self, question: &CapacityQuestion<'_>) -> u64 {
        let pools: BTreeSet<Key> = self
            .order
            .machines
            .iter()
            .filter_map(|(machine, spec)| {
                let reference = spec.floating_ip_pool_ref.as_ref()?;
                let ours = reference.kind == "OpenStackFloatingIPPool";
                ours.then(|| Key::new(machine.key.namespace.as_str(), reference.name.as_str()))
            })
            .collect();
        let free = pools.iter().filter_map(|key| {
            let pool = question.object("OpenStackFloatingIPPool", key)?;
            u64::try_from(parsed::<OpenStackFloatingIPPool>(pool)?.status.available_ips.len()).ok()
        });
        free.fold(0, u64::saturating_add)
    }
}

/// Takes note of why something cannot be created.
fn hear(answer: &mut CapacityAnswer, cluster: &Key, of: &str, error: &CloudError) {
    let why = format!("{of}: {}", error.text());
    // What could not be looked up may be there.
    let unknown = [code::UNREACHABLE, code::PERMISSION, code::FAILED, code::BUSY].contains(&error.code);
    match unknown {
        true => answer.warnings.push(why),
        false => answer.refusals.push(Refusal { cluster: cluster.clone(), why }),
    }
}
