//! A virtual machine that has the name of an order and is not on record.

use capstan_cloudstack_client::commands::{GetVirtualMachineUserData, ListVirtualMachines};
use capstan_cloudstack_client::model::{Nic, VirtualMachine};
use capstan_cloudstack_client::{Error, JobId, NetworkId, VirtualMachineId};

use super::resolve::Sign;
use crate::clouds::Access;

/// What CloudStack says if a name is taken, also by a machine that only the operator sees any more.
pub(super) const NAME_TAKEN: &str = "already exists in the network domain";

/// Who has the name of an order.
#[derive(Debug, Clone, PartialEq)]
pub enum Namesake {
    /// Nobody that the account sees.
    Nobody,
    /// The machine of the order.
    Ours {
        id: VirtualMachineId,
        /// The job that deploys it, if that goes on.
        job: Option<JobId>,
    },
    /// A machine that does not boot with the order's data.
    Another {
        id: VirtualMachineId,
        /// Its data proves it. Otherwise it has another display name, and nothing else is known.
        certain: bool,
    },
}

/// Looks for a machine by its name, and identifies it by its sign. Others count only in the networks that it was ordered
/// in: names are unique in a network, and which others CloudStack compares depends on a setting that users do not see. A name
/// that it refuses for their sake is like one that nobody sees.
pub(super) async fn look_up(
    name: &str,
    sign: &Sign,
    networks: &[NetworkId],
    access: &Access,
) -> Result<Namesake, Error> {
    let question = ListVirtualMachines {
        name: Some(name.to_owned()),
        scope: access.scope(),
        ..ListVirtualMachines::default()
    };
    let found = access.client.list(&question).await?;
    let mut another = Namesake::Nobody;
    // Look-ups by name find every name that contains it.
    for VirtualMachine { id, jobid, displayname, nic, .. } in
        found.into_iter().filter(|machine| machine.name.as_deref() == Some(name))
    {
        let question = GetVirtualMachineUserData { virtualmachineid: id.clone() };
        let theirs = access.client.call(&question).await?.userdata;
        if sign.fits(displayname.as_deref(), theirs.as_ref().map(|data| data.expose())) {
            // It may be younger than the last list of the account.
            access.cache.changed(&id).await;
            return Ok(Namesake::Ours { id, job: jobid });
        }
        if !shares(&nic, networks) {
            continue;
        }
        let certain = sign.certain && !matches!(another, Namesake::Another { certain: false, .. });
        another = Namesake::Another { id, certain };
    }
    Ok(another)
}

/// A machine is in one of these networks, as far as is known.
fn shares(nics: &[Nic], networks: &[NetworkId]) -> bool {
    let is_in = |nic: &Nic| nic.networkid.as_ref().is_none_or(|id| networks.contains(id));
    networks.is_empty() || nics.is_empty() || nics.iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_elsewhere_is_no_namesake() {
        let nics = |networks: &[&str]| -> Vec<Nic> {
            let nic = |network: &&str| json!({"id": "c1", "networkid": network});
            let nics = networks.iter().map(|id| serde_json::from_value(nic(id)).expect("a NIC"));
            nics.collect()
        };
        for (says, held, networks, expected) in [
            ("in its network", &["n1"][..], &["n1"][..], true),
            ("in another", &["n2"], &["n1"], false),
            ("in both", &["n2", "n1"], &["n1"], true),
            ("in one of its networks", &["n2"], &["n1", "n2"], true),
            ("nobody knows where", &[], &["n1"], true),
            ("nobody knows where it was ordered", &["n2"], &[], true),
        ] {
            let networks: Vec<NetworkId> = networks.iter().map(|id| (*id).into()).collect();
            assert_eq!(shares(&nics(held), &networks), expected, "{says}");
        }
    }
}
