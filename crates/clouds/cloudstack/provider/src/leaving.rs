//! Virtual machines that were destroyed and that CloudStack has not expunged yet. Accounts that may not expunge see
//! nothing of them any more, but their network cannot be deleted before they are gone. Machines note them on the object of
//! the network, which outlives theirs.

use std::collections::BTreeMap;

use capstan_cloudstack_client::commands::GetVirtualMachineUserData;
use capstan_cloudstack_client::{Code, Error};
use capstan_object::{ObjectMeta, Time};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clouds::Access;

/// Begins the names of annotations on CloudStackIsolatedNetworks, one per machine; the value is when it was destroyed.
const PREFIX: &str = "leaving.capstan.dev/";

/// The change that has a network's object remember a machine.
pub(crate) fn noted(machine: &str, now: Timestamp) -> Value {
    json!({"metadata": {"annotations": {format!("{PREFIX}{machine}"): Time::new(now).to_string()}}})
}

/// Whether a network's object knows of a machine.
pub(crate) fn is_noted(network: &ObjectMeta, machine: &str) -> bool {
    network.annotations.contains_key(&format!("{PREFIX}{machine}"))
}

/// What a network's object remembers: when machines were destroyed, by id.
pub(crate) fn known(network: &ObjectMeta) -> BTreeMap<&str, Timestamp> {
    let named = network.annotations.iter();
    named.filter_map(|(name, at)| Some((name.strip_prefix(PREFIX)?, at.parse().ok()?))).collect()
}

/// Machines that are asked for at most. Annotations can be written by anybody who may write the object, so their number
/// says nothing.
const ASKED: usize = 8;

/// The machines to ask for: those that were destroyed last, as they go last.
fn candidates(network: &ObjectMeta) -> Vec<&str> {
    let mut all: Vec<(Timestamp, &str)> = known(network).into_iter().map(|(id, at)| (at, id)).collect();
    all.sort_unstable();
    all.into_iter().rev().take(ASKED).map(|(_, id)| id).collect()
}

/// A machine of a network that is not expunged yet. Its boot data can be read until then, whoever may list it. If none of
/// those that are asked for is there, deleting the network shows whether another one holds it.
pub(crate) async fn held_by(network: &ObjectMeta, access: &Access) -> Result<Option<String>, Error> {
    for id in candidates(network) {
        let question = GetVirtualMachineUserData { virtualmachineid: id.into() };
        match access.client.call(&question).await {
            Ok(_) => return Ok(Some(id.to_owned())),
            Err(error) if error.code() == Some(Code::Parameter) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_machines_are_noted_only_the_last_few_are_asked_for() {
        let mut network = ObjectMeta::default();
        for number in 0..500_i64 {
            let at = Timestamp::from_second(number).expect("a moment");
            network.annotations.insert(format!("{PREFIX}v{number}"), Time::new(at).to_string());
        }
        assert_eq!(candidates(&network).len(), ASKED);
        assert_eq!(candidates(&network).first(), Some(&"v499"));
    }

    #[test]
    fn what_machines_note_the_network_reads() {
        let now: Timestamp = "2026-06-24T19:22:45Z".parse().expect("a moment");
        let network: ObjectMeta =
            serde_json::from_value(noted("v1", now)["metadata"].clone()).expect("metadata");
        assert!(is_noted(&network, "v1") && !is_noted(&network, "v2"));
        assert_eq!(known(&network), BTreeMap::from([("v1", now)]));
    }
}
