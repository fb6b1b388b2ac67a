//! Whether CloudStack has what a plan takes: what it would say to the plan's orders, and how much is left of its limits.

use std::collections::{BTreeMap, BTreeSet};

use capstan_cloudstack_client::model;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomainSpec, CloudStackMachineSpec,
};
use capstan_object::Key;
use capstan_provider_kit::{
    Amount, Capacity, CapacityAnswer, CapacityQuestion, Left, PlannedMachine, Quota, Refusal, Secret, Size,
    within_patience,
};
use futures::future::BoxFuture;

use crate::clouds::{Tenancy, secret_of};
use crate::code;
use crate::outlook::{Outlook, Prospect};
use crate::plugin::CloudStack;

impl Capacity for CloudStack {
    fn answer<'a>(&'a self, question: CapacityQuestion<'a>) -> BoxFuture<'a, CapacityAnswer> {
        Box::pin(self.ask(question))
    }
}

/// Whose limits hold: the Secret with the keys, and for whom they are used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Account {
    secret: Key,
    tenancy: Tenancy,
}

/// A failure domain of a cluster that gets machines.
struct Target {
    cluster: Key,
    spec: CloudStackFailureDomainSpec,
}

/// What is ordered for one or more machines.
struct Order {
    prospect: Prospect,
    /// Orders of the same key are the same to the cloud.
    key: String,
    /// What the machine is a replica of, if it is yet to be made.
    of: Option<String>,
}

impl CloudStack {
    /// Asks the clouds that new machines are ordered from.
    async fn ask(&self, question: CapacityQuestion<'_>) -> CapacityAnswer {
        let mut answer = CapacityAnswer::default();
        let mut sizes = BTreeMap::new();
        for (account, places) in accounts(&question) {
            let keys = match keys(&question, &account.secret).await {
                Ok(keys) => keys,
                Err(why) => {
                    answer.warnings.push(why.clone());
                    answer.quotas.push(account.quota(BTreeSet::new(), Err(why)));
                    continue;
                }
            };
            let mut left = Err("no account was asked".to_owned());
            for place in &places {
                let orders = orders(question.machines, place);
                let prospects: Vec<Prospect> = orders.iter().map(|order| order.prospect.clone()).collect();
                let asked = self.clouds().outlook(&place.spec, &keys, &prospects);
                left = match within_patience("it", asked).await {
                    Ok(Ok(outlook)) => {
                        hear(&orders, &outlook, &place.cluster, &mut sizes, &mut answer);
                        outlook.left.map(|quota| remaining(&quota))
                    }
                    Ok(Err(error)) => {
                        // From here it may not be reachable, and yet be from where the plane runs.
                        if error.code != code::UNREACHABLE {
                            answer.warnings.push(error.text());
                        }
                        Err(error.text())
                    }
                    Err(late) => Err(late),
                };
            }
            let machines = question.machines.iter();
            let machines = machines.filter(|machine| places.iter().any(|place| place.takes(machine)));
            answer.quotas.push(account.quota(machines.map(|machine| machine.key.clone()).collect(), left));
        }
        let sized = question.machines.iter().filter_map(|machine| {
            let order = Order::of(machine)?;
            Some((machine.key.clone(), *sizes.get(&order.key)?))
        });
        answer.sizes = sized.collect();
        answer
    }
}

/// Takes note of what the cloud says to orders.
fn hear(
    orders: &[Order],
    outlook: &Outlook,
    cluster: &Key,
    sizes: &mut BTreeMap<String, Size>,
    answer: &mut CapacityAnswer,
) {
    for (order, verdict) in orders.iter().zip(&outlook.verdicts) {
        if let Some(size) = verdict.size {
            sizes.insert(order.key.clone(), size);
        }
        if let (Some(of), Some(error)) = (&order.of, &verdict.error) {
            let why = format!("{of}: {}", error.text());
            match error.code == code::UNREACHABLE {
                true => answer.warnings.push(why),
                false => answer.refusals.push(Refusal { cluster: cluster.clone(), why }),
            }
        }
    }
}

pub(crate) fn remaining(quota: &model::Quota) -> Left {
    let amount = |amount: Option<model::Amount>| {
        amount.map(|amount| match amount {
            model::Amount::Limited(most) => Amount::Limited(most),
            model::Amount::Unlimited => Amount::Unlimited,
        })
    };
    Left {
        machines: amount(quota.vmavailable),
        cpus: amount(quota.cpuavailable),
        memory_mib: amount(quota.memoryavailable),
    }
}

impl Order {
    /// What is ordered for a machine, if CloudStack shall make it.
    fn of(machine: &PlannedMachine) -> Option<Self> {
        if !machine.is_of("CloudStackMachine") {
            return None;
        }
        let object = &machine.infrastructure;
        let spec: CloudStackMachineSpec = serde_json::from_value(object["spec"].clone()).ok()?;
        let asked = ["offering", "template", "details"].map(|field| object["spec"][field].to_string());
        let key = format!("{} {}", machine.version, asked.join(" "));
        let of = machine.new.then(|| machine.of.clone());
        Some(Self { prospect: Prospect { spec, version: machine.version.clone() }, key, of })
    }
}

impl Target {
    /// Whether a machine is made here; one that names no failure domain may be.
    fn takes(&self, machine: &PlannedMachine) -> bool {
        machine.key.namespace == self.cluster.namespace
            && machine.cluster == self.cluster.name
            && (machine.failure_domain.is_empty() || machine.failure_domain == self.spec.name)
    }
}

impl Account {
    fn quota(&self, machines: BTreeSet<Key>, left: Result<Left, String>) -> Quota {
        Quota { scope: self.to_string(), machines, left, others: Vec::new(), exceeded: code::QUOTA }
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.tenancy.project.as_str(), self.tenancy.account.as_str()) {
            ("", "") => write!(f, "the CloudStack account of Secret {}", self.secret),
            ("", account) => write!(f, "CloudStack account {account}"),
            (project, _) => write!(f, "CloudStack project {project}"),
        }
    }
}

/// Every order at a place once: those yet to be made, and those of machines that are there, for their sizes.
fn orders(machines: &[PlannedMachine], place: &Target) -> Vec<Order> {
    let new = machines.iter().filter(|machine| machine.new);
    let there = machines.iter().filter(|machine| !machine.new);
    let mut known = BTreeSet::new();
    let all = new.chain(there).filter(|machine| place.takes(machine)).filter_map(Order::of);
    all.filter(|order| known.insert(order.key.clone())).collect()
}

/// The failure domains of clusters that get machines, by whose limits hold there.
fn accounts(question: &CapacityQuestion<'_>) -> BTreeMap<Account, Vec<Target>> {
    let mut all: BTreeMap<Account, Vec<Target>> = BTreeMap::new();
    for cluster in question.growing() {
        for spec in failure_domains(question, &cluster) {
            let account = Account { secret: secret_of(&spec.acs_endpoint), tenancy: Tenancy::of(&spec) };
            all.entry(account).or_default().push(Target { cluster: cluster.clone(), spec });
        }
    }
    all
}

fn failure_domains(question: &CapacityQuestion<'_>, cluster: &Key) -> Vec<CloudStackFailureDomainSpec> {
    let reference = question.object("Cluster", cluster).map(|cluster| &cluster["spec"]["infrastructureRef"]);
    let named = reference.filter(|reference| reference["kind"] == "CloudStackCluster");
    let found = named.and_then(|reference| {
        let key = Key::new(cluster.namespace.as_str(), reference["name"].as_str()?);
        question.object("CloudStackCluster", &key)
    });
    let parsed = found.and_then(|object| serde_json::from_value::<CloudStackCluster>(object.clone()).ok());
    parsed.map(|cluster| cluster.spec.failure_domains).unwrap_or_default()
}

/// The keys that a failure domain names.
async fn keys(question: &CapacityQuestion<'_>, secret: &Key) -> Result<Secret, String> {
    match question.secret(secret).await {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Err(format!(
            "{}: there is no Secret {secret} with the keys of CloudStack: make it, or correct acsEndpoint",
            code::SECRET
        )),
        Err(error) => Err(format!("Secret {secret} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_project_or_else_of_the_account_or_else_of_the_keys() {
        let scope = |project: &str, account: &str| {
            let tenancy = Tenancy { project: project.into(), account: account.into(), domain: String::new() };
            Account { secret: Key::new("default", "keys"), tenancy }.to_string()
        };
        assert_eq!(scope("", ""), "the CloudStack account of Secret default/keys");
        assert_eq!(scope("", "ada"), "CloudStack account ada");
        assert_eq!(scope("demo", "ada"), "CloudStack project demo");
    }
}
