//! Removing what a cloud has of clusters and no record knows, for somebody who has looked and wants it gone.

use capstan_cloudstack_client::commands::{
    DeleteAffinityGroup, DeleteNetwork, DeletePortForwardingRule, DeleteVpc, DestroyVirtualMachine,
    DisassociateIpAddress, GetVirtualMachineUserData, ListCapabilities,
};
use capstan_cloudstack_client::{Client, Error};
use capstan_cloudstack_types::v1beta3::CloudStackFailureDomainSpec;
use capstan_provider_kit::Secret;

use crate::account_cache::may_not_expunge;
use crate::clouds::{Clouds, secret_of};
use crate::error::CloudError;
use crate::survey::{Leftover, LeftoverKind, Thing};

/// What is to go from an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// Virtual machines.
    pub machines: Vec<Thing>,
    /// Networks, with the addresses and rules on them.
    pub networks: Vec<Thing>,
    /// Other things. What carries no mark stays: nothing says whose it is.
    pub others: Vec<Leftover>,
}

/// Result of a removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Virtual machines that are gone, or on their way out.
    pub machines: usize,
    /// Networks that are gone.
    pub networks: usize,
    /// Other things that are gone.
    pub others: Vec<LeftoverKind>,
    /// Resources that still exist, with the reason.
    pub kept: Vec<(Thing, String)>,
}

/// Largest boot data that is read.
const LARGEST: usize = 4 << 20;

impl Clouds {
    /// Removes things from the account of a failure domain with the keys of its Secret. The marks are looked at once more:
    /// what does not carry them stays, whoever asks.
    pub async fn remove(
        &self,
        domain: &CloudStackFailureDomainSpec,
        keys: &Secret,
        wanted: &Removal,
    ) -> Result<Removed, CloudError> {
        let marked = self.survey(domain, keys).await?;
        let (client, owner) = self.open(domain, keys).await?;
        let key = secret_of(&domain.acs_endpoint);
        let explain = |error: Error| CloudError::of(&error, &key);
        let mut expunge = client.call(&ListCapabilities {}).await.map_err(explain)?.allowuserexpungerecovervm;
        let mut removed = Removed::default();
        for machine in &wanted.machines {
            if !marked.machines.contains(machine) {
                removed.keep(machine, "it was deleted, or is not in a network with the mark any more");
            } else if !is_node(&client, machine).await.map_err(explain)? {
                removed.keep(machine, "its user data is not from Cluster API: it has another owner");
            } else {
                let id = machine.id.as_str().into();
                let mut request = DestroyVirtualMachine { id, expunge: Some(expunge), volumeids: Vec::new() };
                let mut done = client.run(&request).await;
                // The role lacks what the setting allows.
                if expunge && done.as_ref().is_err_and(may_not_expunge) {
                    expunge = false;
                    request.expunge = Some(false);
                    done = client.run(&request).await;
                }
                match done {
                    Ok(_) => removed.machines += 1,
                    Err(error) => removed.keep(machine, explain(error).message),
                }
            }
        }
        let is_vpc = |other: &&Leftover| other.kind == LeftoverKind::Vpc;
        for other in wanted.others.iter().filter(|other| !is_vpc(other)) {
            if let Some(why) = other.kind.kept() {
                removed.keep(&other.thing, why);
                continue;
            }
            if !marked.others.contains(other) {
                removed.keep(&other.thing, "it was deleted, or does not have the mark");
                continue;
            }
            let id = other.thing.id.as_str();
            let done = match other.kind {
                LeftoverKind::Address => client.run(&DisassociateIpAddress { id: id.into() }).await.map(drop),
                LeftoverKind::AffinityGroup => {
                    let request = DeleteAffinityGroup { id: id.into(), owner: owner.clone() };
                    client.run(&request).await.map(drop)
                }
                LeftoverKind::SshRule => {
                    client.run(&DeletePortForwardingRule { id: id.into() }).await.map(drop)
                }
                _ => continue,
            };
            match done {
                Ok(()) => removed.others.push(other.kind),
                Err(error) => removed.keep(&other.thing, explain(error).message),
            }
        }
        for network in &wanted.networks {
            if !marked.networks.contains(network) {
                removed.keep(network, "it was deleted, or does not have the mark");
                continue;
            }
            match client.run(&DeleteNetwork { id: network.id.as_str().into(), forced: None }).await {
                Ok(_) => removed.networks += 1,
                Err(error) => removed.keep(network, explain(error).message),
            }
        }
        // After their tiers.
        for vpc in wanted.others.iter().filter(is_vpc) {
            if !marked.others.contains(vpc) {
                removed.keep(&vpc.thing, "it was deleted, or does not have the mark");
                continue;
            }
            match client.run(&DeleteVpc { id: vpc.thing.id.as_str().into() }).await {
                Ok(_) => removed.others.push(vpc.kind),
                Err(error) => removed.keep(&vpc.thing, explain(error).message),
            }
        }
        Ok(removed)
    }
}

impl Removed {
    fn keep(&mut self, thing: &Thing, why: impl Into<String>) {
        self.kept.push((thing.clone(), why.into()));
    }
}

/// Whether a machine boots as a node of a cluster that Cluster API made: machines themselves carry no mark.
async fn is_node(client: &Client, machine: &Thing) -> Result<bool, Error> {
    let question = GetVirtualMachineUserData { virtualmachineid: machine.id.as_str().into() };
    let data = client.call(&question).await?.userdata;
    Ok(data.is_some_and(|data| of_cluster_api(data.expose())))
}

/// Whether boot data leaves the sign that Cluster API's bootstrap providers leave.
fn of_cluster_api(base64: &str) -> bool {
    const SIGN: &str = "/run/cluster-api/bootstrap-success.complete";
    unpacked(base64).is_some_and(|text| String::from_utf8_lossy(&text).contains(SIGN))
}

/// User data without its encoding. Programs compress the same data differently.
pub(crate) fn unpacked(base64: &str) -> Option<Vec<u8>> {
    let bytes = capstan_user_data::base64(base64.as_bytes())?;
    Some(match capstan_user_data::gunzip(&bytes, LARGEST) {
        Ok(plain) => plain,
        Err(_) => bytes,
    })
}
