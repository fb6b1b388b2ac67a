//! A virtual machine that has the name of an order and is not on record.

use capstan_cloudstack_client::commands::{GetVirtualMachineUserData, ListVirtualMachines};
use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_client::{Error, JobId, VirtualMachineId};

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

/// Looks for a machine by its name, and identifies it by its sign.
pub(super) async fn look_up(name: &str, sign: &Sign, access: &Access) -> Result<Namesake, Error> {
    let question = ListVirtualMachines {
        name: Some(name.to_owned()),
        scope: access.scope(),
        ..ListVirtualMachines::default()
    };
    let found = access.client.list(&question).await?;
    let mut another = Namesake::Nobody;
    // Look-ups by name find every name that contains it.
    for VirtualMachine { id, jobid, displayname, .. } in
        found.into_iter().filter(|machine| machine.name.as_deref() == Some(name))
    {
        let question = GetVirtualMachineUserData { virtualmachineid: id.clone() };
        let theirs = access.client.call(&question).await?.userdata;
        if sign.fits(displayname.as_deref(), theirs.as_ref().map(|data| data.expose())) {
            // It may be younger than the last list of the account.
            access.cache.changed(&id).await;
            return Ok(Namesake::Ours { id, job: jobid });
        }
        let certain = sign.certain && !matches!(another, Namesake::Another { certain: false, .. });
        another = Namesake::Another { id, certain };
    }
    Ok(another)
}
