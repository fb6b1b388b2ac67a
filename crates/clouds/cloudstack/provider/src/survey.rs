//! What a cloud has of clusters, for whoever compares it with records. Looks and changes nothing.

use std::collections::BTreeSet;

use capstan_cloudstack_client::commands::{ListNetworks, ListVirtualMachines, Scope};
use capstan_cloudstack_client::model::MachineState;
use capstan_cloudstack_types::v1beta3::CloudStackFailureDomainSpec;
use capstan_provider_kit::Secret;

use crate::clouds::{Clouds, secret_of};
use crate::error::CloudError;
use crate::isolated_network::is_ours;

/// Something in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thing {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// What a failure domain's account has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Networks that carry the mark of what providers made.
    pub networks: Vec<Thing>,
    /// Machines in those networks: nobody else puts machines there.
    pub machines: Vec<Thing>,
    /// Ids of all machines of the account that are not on their way out.
    pub present: BTreeSet<String>,
}

impl Clouds {
    /// Looks at the account of a failure domain with the keys of its Secret.
    pub async fn survey(
        &self,
        domain: &CloudStackFailureDomainSpec,
        keys: &Secret,
    ) -> Result<Survey, CloudError> {
        let (client, owner) = self.open(domain, keys).await?;
        let key = secret_of(&domain.acs_endpoint);
        let explain = |error: capstan_cloudstack_client::Error| CloudError::of(&error, &key);
        let scope = Scope::of(owner);
        let question = ListNetworks { scope: scope.clone(), ..ListNetworks::default() };
        let mut networks = client.list(&question).await.map_err(explain)?;
        networks.retain(is_ours);
        let details = vec!["nics".to_owned()];
        let question = ListVirtualMachines { details, scope, ..ListVirtualMachines::default() };
        let machines = client.list(&question).await.map_err(explain)?;
        let leaving = |state: &Option<MachineState>| {
            matches!(state, Some(MachineState::Destroyed | MachineState::Expunging))
        };
        let mut survey = Survey::default();
        let marked: BTreeSet<&str> = networks.iter().map(|network| network.id.as_str()).collect();
        for machine in machines.iter().filter(|machine| !leaving(&machine.state)) {
            survey.present.insert(machine.id.as_str().to_owned());
            let inside = machine.nic.iter().filter_map(|nic| nic.networkid.as_ref());
            if inside.into_iter().any(|network| marked.contains(network.as_str())) {
                let name = machine.name.clone().unwrap_or_default();
                survey.machines.push(Thing { id: machine.id.as_str().to_owned(), name });
            }
        }
        survey.networks = networks
            .iter()
            .map(|network| Thing {
                id: network.id.as_str().to_owned(),
                name: network.name.clone().unwrap_or_default(),
            })
            .collect();
        Ok(survey)
    }
}
