//! What CloudStack has beside what is recorded: the machines, marked networks, VPCs and addresses, affinity groups, ways in by
//! SSH, rules for API servers and detached data disks of every account that failure domains work with.

use std::collections::BTreeSet;

use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackFailureDomain, CloudStackFailureDomainSpec, CloudStackIsolatedNetwork,
    CloudStackMachine,
};
use capstan_controller::Client;
use capstan_object::Object as _;
use capstan_provider_kit::{
    Counted, Difference, DifferenceKind, Drift, Inventory, Kept, ProviderError, Removed, Secret, Unrecorded,
    served,
};
use futures::future::BoxFuture;

use crate::clouds::{Clouds, Tenancy, secret_of};
use crate::isolated_network::Made;
use crate::machine::{naming, recorded_disks};
use crate::plugin::CloudStack;
use crate::removal::Removal;
use crate::survey::{Leftover, LeftoverKind, Survey, Thing};

impl Inventory for CloudStack {
    fn compare<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Drift, ProviderError>> {
        Box::pin(compare(self.clouds(), client, namespace))
    }
}

/// What of an account is in no record, and how the account is reached.
struct Account {
    clouds: Clouds,
    /// A failure domain that works there.
    domain: CloudStackFailureDomainSpec,
    keys: Secret,
    removal: Removal,
}

impl Unrecorded for Account {
    fn counts(&self) -> Counted {
        let removal = &self.removal;
        let others = removal.others.iter().map(|other| other.kind);
        // What is never removed is not announced.
        let others = others.filter(|kind| kind.kept().is_none());
        counted(removal.machines.len(), removal.networks.len(), others)
    }

    fn remove(&self) -> BoxFuture<'_, Result<Removed, ProviderError>> {
        Box::pin(async {
            let removed = self.clouds.remove(&self.domain, &self.keys, &self.removal).await;
            let removed = removed.map_err(|error| ProviderError::new(error.message))?;
            let kept = removed.kept.into_iter();
            let kept = kept.map(|(thing, why)| Kept { what: format!("{} ({})", thing.name, thing.id), why });
            let gone = counted(removed.machines, removed.networks, removed.others.into_iter());
            Ok(Removed { gone, kept: kept.collect() })
        })
    }
}

fn counted(machines: usize, networks: usize, others: impl Iterator<Item = LeftoverKind>) -> Counted {
    let mut counted: Counted = [("virtual machine", machines), ("network", networks)].into();
    for kind in others {
        counted.add(kind.noun(), 1);
    }
    counted
}

/// Records beside the accounts that failure domains work with, and what of each account is in no record. Records of all
/// namespaces count: they can share an account.
async fn compare(clouds: &Clouds, client: &Client, namespace: &str) -> Result<Drift, ProviderError> {
    let Some(domains) = served::<CloudStackFailureDomain>(client, namespace).await? else {
        return Ok(Drift::default());
    };
    let machines = served::<CloudStackMachine>(client, "").await?.unwrap_or_default();
    let networks = served::<CloudStackIsolatedNetwork>(client, "").await?.unwrap_or_default();
    let groups = served::<CloudStackAffinityGroup>(client, "").await?.unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut accounts: Vec<Account> = Vec::new();
    let mut looked = BTreeSet::new();
    let mut present = Vec::new();
    for domain in &domains {
        let spec = &domain.spec;
        let secret = secret_of(&spec.acs_endpoint);
        if !looked.insert((secret.clone(), Tenancy::of(spec))) {
            continue;
        }
        let place = format!("cloudstack {}", secret.name);
        let survey = match client.get::<Secret>(&secret).await? {
            Some(keys) => match clouds.survey(spec, &keys).await {
                Ok(survey) => Ok((survey, keys)),
                Err(error) => Err(error.message),
            },
            None => Err(format!("there is no Secret {secret}")),
        };
        match survey {
            Ok((survey, keys)) => {
                let mut removal = unrecorded(&survey, (&machines, &networks, &groups));
                found.extend(differences(&place, &removal));
                // Failure domains can share an account: nothing is removed twice.
                for other in &accounts {
                    removal.machines.retain(|thing| !other.removal.machines.contains(thing));
                    removal.networks.retain(|thing| !other.removal.networks.contains(thing));
                    removal.others.retain(|thing| !other.removal.others.contains(thing));
                }
                accounts.push(Account { clouds: clouds.clone(), domain: spec.clone(), keys, removal });
                present.push(survey.present);
            }
            Err(why) => {
                let what = format!("CloudStackFailureDomain/{}", spec.name);
                found.insert(Difference {
                    how: DifferenceKind::Unknown,
                    what,
                    place,
                    says: format!("its account cannot be read: {why}"),
                });
            }
        }
    }
    let unknown = found.iter().any(|difference| difference.how == DifferenceKind::Unknown);
    // What an account that could not be looked at has is not gone.
    if !unknown {
        found.extend(gone(&present, &machines, namespace));
    }
    let unrecorded = accounts.into_iter().map(|account| Box::new(account) as Box<dyn Unrecorded>);
    Ok(Drift { differences: found.into_iter().collect(), unrecorded: unrecorded.collect() })
}

/// What carries the mark and is in no record, neither by its id nor, if that is not known yet, by its name: what is just
/// being made has a record without an id.
fn unrecorded(
    survey: &Survey,
    (machines, networks, groups): (
        &[CloudStackMachine],
        &[CloudStackIsolatedNetwork],
        &[CloudStackAffinityGroup],
    ),
) -> Removal {
    let record = |thing: &Thing, id: &str, name: &str| {
        if id.is_empty() { thing.name == name } else { thing.id == id }
    };
    let of_machine = |thing: &Thing| {
        machines.iter().any(|machine| match machine.spec.instance_id.as_deref().unwrap_or_default() {
            "" => naming::is_of(&machine.metadata, &thing.name),
            id => thing.id == id,
        })
    };
    let of_network =
        |thing: &Thing| networks.iter().any(|network| record(thing, &network.spec.id, &network.spec.name));
    let is_recorded = |other: &Leftover| {
        let thing = &other.thing;
        match other.kind {
            LeftoverKind::Address => networks.iter().any(|network| {
                network.status.public_ip_id == thing.id
                    || Made::of(&network.metadata).address.as_ref() == Some(&thing.id)
                    || network.spec.control_plane_endpoint.host == thing.name
            }),
            LeftoverKind::AffinityGroup => {
                groups.iter().any(|group| record(thing, &group.spec.id, &group.spec.name))
            }
            LeftoverKind::Vpc => networks.iter().any(|network| {
                Made::of(&network.metadata).vpc.as_ref() == Some(&thing.id)
                    || network.spec.vpc.as_ref().is_some_and(|vpc| record(thing, &vpc.id, &vpc.name))
            }),
            LeftoverKind::ApiRule => networks.iter().any(|network| {
                network.status.load_balancer_rule_id == thing.id
                    || Made::of(&network.metadata).rule.as_ref() == Some(&thing.id)
            }),
            LeftoverKind::SshRule | LeftoverKind::SshRuleElsewhere => machines.iter().any(|machine| {
                machine.spec.instance_id.is_some() && machine.spec.instance_id == other.machine
            }),
            LeftoverKind::Volume => machines.iter().any(|machine| {
                let disks = recorded_disks(machine).unwrap_or_default();
                disks.iter().any(|disk| disk.as_str() == thing.id)
            }),
        }
    };
    Removal {
        others: survey.others.iter().filter(|other| !is_recorded(other)).cloned().collect(),
        machines: survey.machines.iter().filter(|thing| !of_machine(thing)).cloned().collect(),
        networks: survey.networks.iter().filter(|thing| !of_network(thing)).cloned().collect(),
    }
}

fn differences(place: &str, found: &Removal) -> Vec<Difference> {
    let difference = |kind: &str, thing: &Thing| Difference {
        how: DifferenceKind::Unrecorded,
        what: format!("{kind}/{}", thing.name),
        place: place.to_owned(),
        says: format!("{}; another management plane may have it", thing.id),
    };
    let machines = found.machines.iter().map(|thing| difference("VirtualMachine", thing));
    let networks = found.networks.iter().map(|thing| difference("Network", thing));
    let others = found.others.iter().map(|other| match other.kind {
        LeftoverKind::Volume => Difference {
            says: format!(
                "{}; data disk of a virtual machine that is gone, of a cluster or of another owner: it is never removed here",
                other.thing.id
            ),
            ..difference(other.kind.name(), &other.thing)
        },
        LeftoverKind::ApiRule | LeftoverKind::SshRuleElsewhere => Difference {
            says: format!(
                "{}; on a network that was not created here, of a cluster or of another owner: it is never removed here",
                other.thing.id
            ),
            ..difference(other.kind.name(), &other.thing)
        },
        kind => difference(kind.name(), &other.thing),
    });
    machines.chain(networks).chain(others).collect()
}

/// What is recorded and in no account.
fn gone(present: &[BTreeSet<String>], machines: &[CloudStackMachine], namespace: &str) -> Vec<Difference> {
    let mine = machines.iter().filter(|it| namespace.is_empty() || it.metadata().namespace == namespace);
    mine.filter_map(|machine| {
        let id = machine.spec.instance_id.as_deref()?;
        (!present.iter().any(|account| account.contains(id))).then(|| Difference {
            how: DifferenceKind::Gone,
            what: format!("CloudStackMachine/{}", machine.metadata().name),
            place: "cloudstack".to_owned(),
            says: format!("its virtual machine {id} is not in the cloud"),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_is_called_unrecorded_and_only_what_is_recorded_gone() {
        let thing = |id: &str| Thing { id: id.to_owned(), name: format!("n{id}") };
        let survey = Survey {
            networks: vec![thing("net-1"), thing("net-2")],
            machines: vec![thing("1"), thing("2"), thing("4")],
            others: [
                (LeftoverKind::Address, "ip-1", None),
                (LeftoverKind::Address, "ip-2", None),
                (LeftoverKind::AffinityGroup, "g-1", None),
                (LeftoverKind::AffinityGroup, "g-2", None),
                (LeftoverKind::SshRule, "r-1", Some("1")),
                (LeftoverKind::SshRule, "r-2", Some("2")),
                (LeftoverKind::SshRuleElsewhere, "r-3", Some("9")),
                (LeftoverKind::ApiRule, "b-1", None),
                (LeftoverKind::ApiRule, "b-2", None),
                (LeftoverKind::Vpc, "vpc-1", None),
                (LeftoverKind::Vpc, "vpc-2", None),
                (LeftoverKind::Volume, "d-1", None),
                (LeftoverKind::Volume, "d-2", None),
            ]
            .map(|(kind, id, machine)| Leftover {
                kind,
                thing: thing(id),
                machine: machine.map(str::to_owned),
            })
            .into(),
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
        network.status.public_ip_id = "ip-1".to_owned();
        network.status.load_balancer_rule_id = "b-1".to_owned();
        Made { vpc: Some("vpc-1".to_owned()), ..Made::default() }.put(&mut network.metadata);
        let mut group = CloudStackAffinityGroup::default();
        group.spec.id = "g-1".to_owned();
        let mut being_made = recorded("");
        being_made.metadata.name = "n4".to_owned();
        let mut with_disk = recorded("1");
        with_disk.metadata.annotations.insert(crate::annotation::DISKS.to_owned(), "d-1".to_owned());
        let machines = [with_disk, recorded("3"), being_made];
        let what = |found: Vec<Difference>| -> Vec<String> { found.into_iter().map(|it| it.what).collect() };
        assert_eq!(
            what(differences("cloudstack", &unrecorded(&survey, (&machines, &[network], &[group])))),
            [
                "VirtualMachine/n2",
                "Network/nnet-2",
                "PublicIpAddress/nip-2",
                "AffinityGroup/ng-2",
                "PortForwardingRule/nr-2",
                "PortForwardingRule/nr-3",
                "LoadBalancerRule/nb-2",
                "VPC/nvpc-2",
                "Volume/nd-2"
            ]
        );
        assert_eq!(what(gone(&[survey.present], &machines, "")), ["CloudStackMachine/m3"]);
    }
}
