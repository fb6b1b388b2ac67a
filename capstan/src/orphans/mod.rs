//! `capstan orphans`: where records and reality differ. Looks, and removes nothing unless it is told to.
//!
//! ```text
//! Machines ──────────────── compared with ── Nodes of each workload cluster      (every provider)
//! CloudStackMachines, ───── compared with ── machines and marked networks        (CloudStack)
//! CloudStackIsolatedNetworks                 of each account that is used
//! ```

mod removal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use capstan_capi_kubeadm::secret::Secret;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_cloudstack_provider::{Clouds, OverNetwork, Removal, Survey, Thing};
use capstan_cloudstack_types::v1beta3::{
    CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{Access, ApiError, Client, Env, KindName, ListOptions, Remote, TcpDial};
use capstan_object::{Key, Object, Scope};
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::kinds::list;
use crate::output::{How, OutputArgs, Show, talk};
use crate::reach::{Management, Reach};
use removal::{Account, DeleteArgs, remove};

/// Arguments of `capstan orphans`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a cluster; without it, all clusters, and the clouds they are on
    cluster: Option<String>,
    #[command(flatten)]
    reach: Reach,
    /// Clusters of all namespaces
    #[arg(long, short = 'A', conflicts_with = "cluster")]
    all_namespaces: bool,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// How records and reality differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    /// It is there and in no record.
    Unrecorded,
    /// It is recorded and not there.
    Gone,
    /// It could not be looked at.
    Unknown,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Difference {
    how: Kind,
    /// `Kind/name` of what differs.
    what: String,
    /// Where it was looked for.
    place: String,
    /// A sentence about it.
    says: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Differences(Vec<Difference>);

impl Show for Differences {
    fn text(&self, _: &How) -> String {
        let word = |how| match how {
            Kind::Unrecorded => "in no record",
            Kind::Gone => "gone",
            Kind::Unknown => "not known",
        };
        self.0
            .iter()
            .map(|it| format!("{:13} {:12} {}: {}\n", word(it.how), it.place, it.what, it.says))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|it| it.what.clone()).collect()
    }
}

/// Compares, says what differs, and removes what nobody has recorded if that is asked for.
pub fn run(args: &Args) -> Result<Exit> {
    args.reach.run(async |mut management| {
        let mut clusters = match &args.cluster {
            Some(name) => vec![management.find::<Cluster>(name).await?],
            None => {
                if args.all_namespaces {
                    management.namespace = String::new();
                }
                management.client.list_all(&management.namespace, &ListOptions::default()).await?
            }
        };
        clusters.sort_by_key(Object::key);
        let clouds = Clouds::new(Arc::new(OverNetwork));
        let mut found = Vec::new();
        let mut accounts = Vec::new();
        for cluster in &clusters {
            found.extend(workload(&management.client, cluster).await?);
        }
        if args.cluster.is_none() {
            let (differences, unrecorded) = cloudstack(&management, &clouds).await?;
            found.extend(differences);
            accounts = unrecorded;
        }
        talk(&format!("{} clusters compared, {} differences", clusters.len(), found.len()));
        let exit = if found.is_empty() { Exit::Done } else { Exit::Differs };
        args.output.show(&Differences(found))?;
        if args.delete.delete { remove(&args.delete, &clouds, &accounts).await } else { Ok(exit) }
    })
}

/// Records of a cluster beside the Nodes it has.
async fn workload(client: &Client, cluster: &Cluster) -> Result<Vec<Difference>> {
    let key = cluster.key();
    let machines: Vec<Machine> = client.list_all(&key.namespace, &ListOptions::default()).await?;
    let machines: Vec<Machine> =
        machines.into_iter().filter(|machine| machine.spec.cluster_name == key.name).collect();
    let place = format!("cluster {}", key.name);
    match nodes(client, &key).await {
        Ok(Some(nodes)) => Ok(compare(&place, &machines, &nodes)),
        // Nothing runs yet, so nothing can differ.
        Ok(None) => Ok(Vec::new()),
        Err(error) => Ok(vec![Difference {
            how: Kind::Unknown,
            what: format!("Cluster/{}", key.name),
            says: format!("its nodes cannot be listed: {error:#}"),
            place,
        }]),
    }
}

/// The Nodes of a cluster; `None` if it has no kubeconfig yet.
async fn nodes(client: &Client, cluster: &Key) -> Result<Option<Vec<Value>>> {
    let key = Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name));
    let Some(secret) = client.get::<Secret>(&key).await? else { return Ok(None) };
    let access = Access::from_kubeconfig(secret.text("value")?.as_bytes())?;
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let kind = KindName { scope: Scope::Cluster, ..KindName::namespaced("", "v1", "Node", "nodes") };
    Ok(Some(list(&Client::new(Arc::new(remote), "capstan-cli"), &kind, "").await?))
}

fn compare(place: &str, machines: &[Machine], nodes: &[Value]) -> Vec<Difference> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ids: BTreeSet<&str> = machines.iter().map(|machine| machine.spec.provider_id.as_str()).collect();
    let recorded: BTreeSet<&str> = machines.iter().map(node_name).collect();
    let there: BTreeMap<String, String> = nodes
        .iter()
        .map(|node| (text(&node["metadata"]["name"]), text(&node["spec"]["providerID"])))
        .collect();
    let mut found = Vec::new();
    for (name, id) in &there {
        let known = recorded.contains(name.as_str()) || (!id.is_empty() && ids.contains(id.as_str()));
        if !known {
            found.push(Difference {
                how: Kind::Unrecorded,
                what: format!("Node/{name}"),
                place: place.to_owned(),
                says: format!(
                    "no Machine stands for it ({})",
                    if id.is_empty() { "no provider id" } else { id }
                ),
            });
        }
    }
    for machine in machines {
        let node = node_name(machine);
        let id = machine.spec.provider_id.as_str();
        if !node.is_empty()
            && !there.contains_key(node)
            && !there.values().any(|other| !id.is_empty() && other == id)
        {
            found.push(Difference {
                how: Kind::Gone,
                what: format!("Machine/{}", machine.metadata().name),
                place: place.to_owned(),
                says: format!("its node {node} is not in the cluster"),
            });
        }
    }
    found
}

fn node_name(machine: &Machine) -> &str {
    &machine.status.node_ref.name
}

/// Records beside the accounts that failure domains work with, and what of each account is in no record. Records of all
/// namespaces count: they can share an account.
async fn cloudstack(management: &Management, clouds: &Clouds) -> Result<(Vec<Difference>, Vec<Account>)> {
    let client = &management.client;
    let Some(domains) = served::<CloudStackFailureDomain>(client, &management.namespace).await? else {
        return Ok(Default::default());
    };
    let machines = served::<CloudStackMachine>(client, "").await?.unwrap_or_default();
    let networks = served::<CloudStackIsolatedNetwork>(client, "").await?.unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut accounts: Vec<Account> = Vec::new();
    let mut looked = BTreeSet::new();
    let mut present = Vec::new();
    for domain in &domains {
        let spec = &domain.spec;
        let secret = Key::new(&spec.acs_endpoint.namespace, &spec.acs_endpoint.name);
        if !looked.insert((secret.clone(), spec.account.clone(), spec.domain.clone(), spec.project.clone())) {
            continue;
        }
        let place = format!("cloudstack {}", secret.name);
        let survey = match client.get::<Secret>(&secret).await? {
            Some(keys) => match clouds.survey(spec, &keys).await {
                Ok(survey) => Ok((survey, keys)),
                Err(trouble) => Err(trouble.message),
            },
            None => Err(format!("there is no Secret {secret}")),
        };
        match survey {
            Ok((survey, keys)) => {
                let mut removal = unrecorded(&survey, &machines, &networks);
                found.extend(differences(&place, &removal));
                // Failure domains can share an account: nothing is removed twice.
                for other in &accounts {
                    removal.machines.retain(|thing| !other.removal.machines.contains(thing));
                    removal.networks.retain(|thing| !other.removal.networks.contains(thing));
                }
                accounts.push(Account { domain: spec.clone(), keys, removal });
                present.push(survey.present);
            }
            Err(why) => {
                let what = format!("CloudStackFailureDomain/{}", spec.name);
                found.insert(Difference {
                    how: Kind::Unknown,
                    what,
                    place,
                    says: format!("its account cannot be looked at: {why}"),
                });
            }
        }
    }
    let unknown = found.iter().any(|difference| difference.how == Kind::Unknown);
    // What an account that could not be looked at has is not gone.
    if !unknown {
        found.extend(gone(&present, &machines, &management.namespace));
    }
    Ok((found.into_iter().collect(), accounts))
}

/// What carries the mark and is in no record, neither by its id nor, if that is not known yet, by its name: what is just
/// being made has a record without an id.
fn unrecorded(
    survey: &Survey,
    machines: &[CloudStackMachine],
    networks: &[CloudStackIsolatedNetwork],
) -> Removal {
    let record = |thing: &Thing, id: &str, name: &str| {
        if id.is_empty() { thing.name == name } else { thing.id == id }
    };
    let of_machine = |thing: &Thing| {
        machines.iter().any(|machine| {
            record(thing, machine.spec.instance_id.as_deref().unwrap_or_default(), &machine.metadata.name)
        })
    };
    let of_network =
        |thing: &Thing| networks.iter().any(|network| record(thing, &network.spec.id, &network.spec.name));
    Removal {
        machines: survey.machines.iter().filter(|thing| !of_machine(thing)).cloned().collect(),
        networks: survey.networks.iter().filter(|thing| !of_network(thing)).cloned().collect(),
    }
}

fn differences(place: &str, found: &Removal) -> Vec<Difference> {
    let difference = |kind: &str, thing: &Thing| Difference {
        how: Kind::Unrecorded,
        what: format!("{kind}/{}", thing.name),
        place: place.to_owned(),
        says: format!("{}; another management plane may have it", thing.id),
    };
    let machines = found.machines.iter().map(|thing| difference("VirtualMachine", thing));
    machines.chain(found.networks.iter().map(|thing| difference("Network", thing))).collect()
}

/// What is recorded and in no account.
fn gone(present: &[BTreeSet<String>], machines: &[CloudStackMachine], namespace: &str) -> Vec<Difference> {
    let mine = machines.iter().filter(|it| namespace.is_empty() || it.metadata().namespace == namespace);
    mine.filter_map(|machine| {
        let id = machine.spec.instance_id.as_deref()?;
        (!present.iter().any(|account| account.contains(id))).then(|| Difference {
            how: Kind::Gone,
            what: format!("CloudStackMachine/{}", machine.metadata().name),
            place: "cloudstack".to_owned(),
            says: format!("its virtual machine {id} is not in the cloud"),
        })
    })
    .collect()
}

/// All objects of a kind; `None` if the server does not have the kind.
async fn served<T: Object>(client: &Client, namespace: &str) -> Result<Option<Vec<T>>, ApiError> {
    match client.list_all(namespace, &ListOptions::default()).await {
        Ok(all) => Ok(Some(all)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(name: &str, node: &str, id: &str) -> Machine {
        let mut value =
            json!({"metadata": {"name": name}, "spec": {"clusterName": "c", "providerID": id}, "status": {}});
        if !node.is_empty() {
            value["status"]["nodeRef"] = json!({"name": node});
        }
        serde_json::from_value(value).expect("a machine")
    }

    fn node(name: &str, id: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"providerID": id}})
    }

    #[test]
    fn nodes_without_machines_and_machines_without_nodes_are_told_apart() {
        let machines = [machine("a", "a", "p://1"), machine("b", "b", "p://2"), machine("new", "", "")];
        let said = |nodes: &[Value]| -> Vec<(Kind, String)> {
            compare("cluster c", &machines, nodes).into_iter().map(|it| (it.how, it.what)).collect()
        };
        assert_eq!(said(&[node("a", "p://1"), node("b", "p://2")]), []);
        assert_eq!(said(&[node("a", "p://1"), node("renamed", "p://2")]), [], "known by its provider id");
        assert_eq!(said(&[node("a", "p://1")]), [(Kind::Gone, "Machine/b".to_owned())]);
        assert_eq!(
            said(&[node("a", "p://1"), node("b", "p://2"), node("c", "p://3")]),
            [(Kind::Unrecorded, "Node/c".to_owned())]
        );
    }

    #[test]
    fn only_what_is_marked_is_called_unrecorded_and_only_what_is_recorded_gone() {
        let thing = |id: &str| Thing { id: id.to_owned(), name: format!("n{id}") };
        let survey = Survey {
            networks: vec![thing("net-1"), thing("net-2")],
            machines: vec![thing("1"), thing("2"), thing("4")],
            present: ["1", "2", "9"].map(str::to_owned).into(),
        };
        let recorded = |id: &str| {
            let mut machine = CloudStackMachine::default();
            machine.metadata.name = format!("m{id}");
            machine.spec.instance_id = Some(id.to_owned()).filter(|id| !id.is_empty());
            machine
        };
        let mut network = CloudStackIsolatedNetwork::default();
        network.spec.id = "net-1".to_owned();
        let mut being_made = recorded("");
        being_made.metadata.name = "n4".to_owned();
        let machines = [recorded("1"), recorded("3"), being_made];
        let what = |found: Vec<Difference>| -> Vec<String> { found.into_iter().map(|it| it.what).collect() };
        assert_eq!(
            what(differences("cloudstack", &unrecorded(&survey, &machines, &[network]))),
            ["VirtualMachine/n2", "Network/nnet-2"]
        );
        assert_eq!(what(gone(&[survey.present], &machines, "")), ["CloudStackMachine/m3"]);
    }
}
