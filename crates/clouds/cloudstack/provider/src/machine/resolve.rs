//! What became of calls that nobody heard the end of.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::Machine;
use capstan_cloudstack_client::commands::ListVirtualMachines;
use capstan_cloudstack_client::{Error, UserData, VirtualMachineId};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::{Intent, ObserveError, Resolution, View};
use capstan_object::Key;
use capstan_provider_kit::{boot_data, resolution};
use serde_json::json;

use super::forwarding::Question;
use super::{Answers, MachineCall, Namesake, Order, call, forwarding, namesake, user_data};
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::removal::unpacked;

pub(super) async fn resolve(
    intent: &Intent<MachineCall>,
    object: &Arc<CloudStackMachine>,
    view: &View,
    clouds: &Clouds,
    answers: &Answers,
) -> Result<Resolution, ObserveError> {
    let outside = |cause: CloudError| ObserveError::outside(cause.code, cause.message);
    let access = call::access(&intent.call, object, view, clouds).await.map_err(outside)?;
    let lost = |error: Error| outside(access.explain(&error));
    match &intent.call {
        MachineCall::Deploy { name, order, .. } => {
            let sign = Sign::of(order.as_deref(), object, view).await?;
            let networks = order.as_deref().map(Order::network_ids).unwrap_or_default();
            let found = namesake::look_up(name, &sign, &networks, &access).await.map_err(lost)?;
            if let Namesake::Ours { id, job } = found {
                return Ok(Resolution::Happened(json!({"id": id, "job": job})));
            }
            Ok(resolution(false, true, (intent.at.timestamp(), view.now()), "CloudStack"))
        }
        MachineCall::Destroy { id, .. } => {
            let id: VirtualMachineId = id.as_str().into();
            access.cache.changed(&id).await;
            let question =
                ListVirtualMachines { id: Some(id), scope: access.scope(), ..ListVirtualMachines::default() };
            let gone = access.client.list(&question).await.map_err(lost)?.is_empty();
            Ok(if gone { Resolution::happened() } else { Resolution::DidNotHappen })
        }
        MachineCall::Forward { address, id, .. } => {
            answers.rules.forget(address);
            let question = Question { address: address.clone(), balanced: false, openings: false };
            let rules = forwarding::observe(&question, &access, &answers.rules).await.map_err(lost)?;
            let there = rules.of(id).next().is_some();
            Ok(if there { Resolution::happened() } else { Resolution::DidNotHappen })
        }
        // It was ordered because nobody else's rule let these in alone.
        MachineCall::OpenFirewall { address, port, cidrs } => {
            answers.rules.forget(address);
            let question = Question { address: address.clone(), balanced: false, openings: true };
            let rules = forwarding::observe(&question, &access, &answers.rules).await.map_err(lost)?;
            if let Some(rule) = forwarding::opening(&rules, *port, cidrs) {
                return Ok(Resolution::Happened(json!({"rule": rule.id})));
            }
            Ok(resolution(false, true, (intent.at.timestamp(), view.now()), "CloudStack"))
        }
        // Decided anew from the rules as they are.
        MachineCall::Unforward { address, .. } | MachineCall::CloseFirewall { address, .. } => {
            answers.rules.forget(address);
            Ok(Resolution::DidNotHappen)
        }
        // Decided anew from the disks that are left.
        MachineCall::DeleteDisk { .. } | MachineCall::Attach { .. } | MachineCall::Detach { .. } => {
            Ok(Resolution::DidNotHappen)
        }
    }
}

/// What the machine of an order is known by, beside its name: names are not unique, the boot data of a machine is.
pub(super) struct Sign {
    /// Its user data, as far as that can be made again.
    user_data: Option<UserData>,
    /// The boot data is that of the order: other user data is another machine's.
    pub(super) certain: bool,
    /// Compared if the user data does not decide.
    display_name: Option<String>,
}

impl Sign {
    pub(super) async fn of(
        order: Option<&Order>,
        object: &CloudStackMachine,
        view: &View,
    ) -> Result<Self, ObserveError> {
        let namespace = object.metadata.namespace.as_str();
        if let Some(order) = order {
            let secret = Key::new(namespace, order.boot_data.secret.as_str());
            let read = boot_data(&secret, view).await.ok();
            let certain = read.as_ref().is_some_and(|(now, _)| now.reference == order.boot_data);
            // After `clusterctl move` the Secret is another with the same content.
            let user_data = read.and_then(|(_, data)| order.user_data(data).ok());
            return Ok(Self { user_data, certain, display_name: Some(order.display_name.clone()) });
        }
        // An intent of a release that did not journal orders: what it would have ordered.
        let Some(machine) = owners::of::<Machine>(&object.metadata, view)? else {
            return Ok(Self { user_data: None, certain: false, display_name: None });
        };
        let name = &machine.metadata.name;
        let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
        let domain = super::observe::domain_of(object, view)?;
        let read = boot_data(&Key::new(namespace, secret), view).await.ok();
        let user_data = read.zip(domain).and_then(|((seen, data), domain)| {
            let gzip = !object.spec.uncompressed_user_data.unwrap_or(seen.ignition);
            user_data::render(data, name, &domain.spec.name, gzip).ok()
        });
        Ok(Self { certain: user_data.is_some(), user_data, display_name: Some(name.clone()) })
    }

    /// A machine of the order's name is the order's.
    pub(super) fn fits(&self, display_name: Option<&str>, theirs: Option<&str>) -> bool {
        let ours = self.user_data.as_ref().and_then(|data| serde_json::to_value(data).ok());
        match (ours.as_ref().and_then(|data| data.as_str()), theirs) {
            (Some(ours), Some(theirs)) if ours == theirs || unpacked(ours) == unpacked(theirs) => true,
            (Some(_), Some(_)) if self.certain => false,
            _ => display_name.is_some() && display_name == self.display_name.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_boot_data_however_that_was_compressed() {
        let text = |data: &UserData| serde_json::to_value(data).expect("text").as_str().map(str::to_owned);
        let (boot, other) = (b"#cloud-config\n".as_slice(), b"#cloud-config\npackages: []\n".as_slice());
        let sign =
            Sign { user_data: UserData::gzip(boot).ok(), certain: true, display_name: Some("m".to_owned()) };
        for (theirs, fits) in [
            (UserData::gzip(boot), true),
            (UserData::plain(boot), true),
            (UserData::gzip(other), false),
            (UserData::plain(other), false),
        ] {
            let theirs = text(&theirs.expect("short"));
            assert_eq!(sign.fits(Some("m"), theirs.as_deref()), fits, "{theirs:?}");
        }
        assert!(sign.fits(Some("m"), None) && !sign.fits(Some("n"), None));
    }
}
