//! Changes of machines that need no host.

use serde_json::json;

use super::own;
use super::request::{check_name, read_user_data};
use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::VmState;
use crate::render::{Details, VmView};

pub(super) fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let user_data = read_user_data(cloud, call)?;
    if let Some(name) = call.text("name") {
        check_name(call, name)?;
        let networks: Vec<_> = cloud.vms[vm].nics.iter().map(|nic| nic.network).collect();
        if cloud.vms[vm].name != name {
            for network in networks {
                cloud.name_is_free(name, network).map_err(|_| ApiError::internal(4250))?;
            }
        }
        let row = &mut cloud.vms[vm];
        row.name = name.to_owned();
        row.display_name = name.to_owned();
    }
    if let Some(name) = call.filled("displayname") {
        cloud.vms[vm].display_name = name.to_owned();
    }
    if let Some(name) = call.filled("group") {
        let uuid = cloud.fresh_uuid();
        cloud.vms[vm].group = Some((uuid, name.to_owned()));
    }
    if let Some(protected) = call.flag("deleteprotection") {
        cloud.vms[vm].protected = protected;
    }
    if user_data.is_some() {
        cloud.vms[vm].user_data = user_data;
    }
    let details: Vec<_> = call.params.maps("details").into_iter().flatten().collect();
    if !details.is_empty() {
        cloud.vms[vm].details = details.into_iter().collect();
    }
    Ok(Answer::Object("virtualmachine", cloud.show_vm(vm, VmView::full(call.caller)).done()))
}

pub(super) fn scale(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let offering = call.the(&cloud.service_offerings, "serviceofferingid")?;
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if cloud.vms[vm].state != VmState::Stopped {
            return Err(ApiError::runtime(
                "Dynamically scaling Instances is disabled for this zone, please contact your admin.",
            ));
        }
        let crate::model::place::OfferedSize::Fixed(size) = cloud.service_offerings[offering].size else {
            return Err(ApiError::invalid(
                "Need to specify custom parameter values cpu, cpu speed and memory",
            ));
        };
        let row = &mut cloud.vms[vm];
        (row.offering, row.size) = (offering, size);
        Ok(success())
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

/// No template here lets a password be set.
pub(super) fn reset_password(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let submission = Submission::once(cloud.settings.timings.rule, |_, _| {
        Err(ApiError::invalid(
            "Fail to reset password for the Instance, the Template is not password enabled",
        ))
    });
    Ok(Answer::Job(submission.about_the("VirtualMachine", &uuid)))
}

pub(super) fn affinity(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let vm = own(cloud, call)?;
    let (ids, names) = (call.text("affinitygroupids"), call.text("affinitygroupnames"));
    let refused = match (ids, names) {
        (Some(_), Some(_)) => Some(ApiError::invalid(
            "affinitygroupids parameter is mutually exclusive with affinitygroupnames parameter",
        )),
        (None, None) => Some(ApiError::invalid(
            "affinitygroupids parameter or affinitygroupnames parameter must be given",
        )),
        _ => None,
    };
    let groups = cloud.affinity_of(call, cloud.vms[vm].account);
    let view = VmView { details: Details::AFFINITY_GROUP, ..VmView::full(call.caller) };
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(refused) = refused {
            return Err(refused);
        }
        if cloud.vms[vm].state != VmState::Stopped {
            return Err(ApiError::invalid(format!(
                "Unable update affinity groups of the virtual machine {} in state {}; make sure the virtual machine is \
                 stopped",
                cloud.vms[vm].uuid,
                cloud.vms[vm].state.name()
            )));
        }
        cloud.vms[vm].affinity = groups?;
        Ok(json!({"virtualmachine": cloud.show_vm(vm, view).done()}))
    })))
}
