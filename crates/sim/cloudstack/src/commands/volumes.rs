//! Disks.

use serde_json::json;

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::{VmState, Volume, VolumeKind};
use crate::model::identity::Resource;
use crate::model::place::DiskOffering;
use crate::model::table::{Key, Row};

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listVolumes",
        "id:volume ids:volume[] name type state virtualmachineid:vm zoneid:zone \
         diskofferingid:diskoffering account domainid:domain projectid:project listall:flag \
         clusterid:cluster hostid:host podid:pod serviceofferingid:serviceoffering storageid",
        list,
    ),
    job(
        "createVolume",
        "name zoneid:zone diskofferingid:diskoffering size:number account domainid:domain \
         projectid:project maxiops:number miniops:number snapshotid:none storageid:none \
         virtualmachineid:vm",
        "user.volume.CreateVolumeCmd",
        create,
    ),
    job(
        "attachVolume",
        "id:volume! virtualmachineid:vm! deviceid:number",
        "user.volume.AttachVolumeCmd",
        attach,
    ),
    job(
        "detachVolume",
        "id:volume virtualmachineid:vm deviceid:number",
        "user.volume.DetachVolumeCmd",
        detach,
    ),
    job(
        "resizeVolume",
        "id:volume! size:number diskofferingid:diskoffering maxiops:number miniops:number",
        "user.volume.ResizeVolumeCmd",
        resize,
    ),
    job(
        "updateVolume",
        "id:volume! name deleteprotection:flag customid displayvolume:flag path state storageid:none",
        "user.volume.UpdateVolumeCmd",
        update,
    ),
    sync("deleteVolume", "id:volume!", delete),
    sync("recoverVolume", "id:volume!", recover),
    job("destroyVolume", "id:volume! expunge:flag", "user.volume.DestroyVolumeCmd", destroy),
];

const ATTACHED: &str = "Please specify a volume that is not attached to any VM.";

/// Oldest first, but the first page holds the newest.
fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    let tags = cloud.tag_filter(call)?;
    let ids = call.keys(&cloud.volumes, "ids");
    let vm = call.key(&cloud.vms, "virtualmachineid");
    let disk_offering = call.key(&cloud.disk_offerings, "diskofferingid");
    // The disk offering of a service offering, unless one is named.
    let offering =
        call.key(&cloud.service_offerings, "serviceofferingid").filter(|_| disk_offering.is_none());
    let pool = call.filled("storageid");
    if let Some(id) = pool
        && !cloud.zones.iter().any(|zone| zone.primary_storage == id)
    {
        return Err(ApiError::invalid(format!("Unable to find storage pool by uuid {id}")));
    }
    // The pool of a zone belongs to its hosts.
    let is_stored = |volume: &Row<Volume>| {
        let zone = &cloud.zones[volume.zone];
        let mut hosts = cloud.hosts.iter().filter(|host| host.zone == volume.zone);
        let on = |parameter: &str| call.text(parameter).is_none() || volume.ready;
        (on("storageid") && on("clusterid") && on("podid"))
            && pool.is_none_or(|id| zone.primary_storage == id)
            && call.names("podid", &zone.pod)
            && call.text("clusterid").is_none_or(|id| hosts.any(|host| host.cluster.0 == id))
    };
    let rows: Vec<_> = cloud
        .volumes
        .iter()
        .filter(|volume| {
            let kind = if matches!(volume.kind, VolumeKind::Root(..)) { "ROOT" } else { "DATADISK" };
            cloud.shows(call, scope, volume.account)
                && call.selects(&cloud.volumes, "id", volume.key)
                && (ids.is_empty() || ids.contains(&volume.key))
                && call.selects(&cloud.zones, "zoneid", volume.zone)
                && vm.is_none_or(|vm| volume.vm == Some(vm))
                && call.names_partly("type", kind)
                && call.names("state", volume.state_name())
                && call.names("name", &volume.name)
                && disk_offering
                    .is_none_or(|offering| matches!(volume.kind, VolumeKind::Data(held) if held == offering))
                && offering
                    .is_none_or(|wanted| matches!(volume.kind, VolumeKind::Root(_, held) if held == wanted))
                && is_stored(volume)
                && call.keyword_in(&[&volume.name, kind, volume.state_name()])
                && cloud.is_tagged(&tags, &volume.uuid)
        })
        .map(|volume| volume.key)
        .collect();
    let chosen: Vec<_> = match call.page() {
        None => rows.clone(),
        Some((from, size)) => {
            let mut page: Vec<_> = rows.iter().rev().skip(from).take(size).copied().collect();
            page.reverse();
            page
        }
    };
    let shown = chosen.into_iter().map(|volume| cloud.show_volume(volume, call.caller.is_root())).collect();
    Ok(Answer::Page("volume", rows.len(), shown))
}

impl Cloud {
    /// How large a disk of an offering is to be.
    pub(crate) fn disk_bytes(&self, call: &Call, offering: Key<DiskOffering>) -> Result<u64> {
        let gib = match (self.disk_offerings[offering].gib, call.number("size")) {
            (Some(_), Some(_)) if call.command.name == "createVolume" => {
                return Err(ApiError::invalid("This disk offering does not allow custom size"));
            }
            (Some(gib), _) => gib,
            (None, None) => {
                return Err(ApiError::invalid("This disk offering requires a custom size specified"));
            }
            (None, Some(size)) if !(1..=1024).contains(&size) => {
                return Err(ApiError::invalid(format!(
                    "Volume size: {size} GB is out of allowed range. Min: 1. Max: 1024"
                )));
            }
            (None, Some(size)) => u64::try_from(size).unwrap_or(1),
        };
        Ok(gib << 30)
    }

    /// Refuses to delete a disk that is protected.
    pub(crate) fn volume_is_unprotected(&self, key: Key<Volume>) -> Result<()> {
        let row = &self.volumes[key];
        if !row.protected {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "Volume [id = {}, name = {}] has delete protection enabled and cannot be deleted.",
            row.uuid, row.name
        )))
    }

    pub(crate) fn remove_volume(&mut self, key: Key<Volume>) {
        let uuid = self.volumes[key].uuid.clone();
        self.untag(&uuid);
        self.volumes.remove(key);
    }
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let offering = call.key(&cloud.disk_offerings, "diskofferingid").ok_or_else(|| {
        ApiError::invalid("Missing parameter(s), either diskOfferingId or snapshotId must be passed.")
    })?;
    let bytes = cloud.disk_bytes(call, offering)?;
    let zone = call
        .key(&cloud.zones, "zoneid")
        .ok_or_else(|| ApiError::invalid("Unable to find zone by id null"))?;
    cloud.within_limit(owner, Resource::Volume, 1)?;
    cloud.within_limit(owner, Resource::PrimaryStorage, i64::try_from(bytes >> 30).unwrap_or(i64::MAX))?;
    let name = call.filled("name").map_or_else(|| cloud.fresh_uuid(), str::to_owned);
    let it = Volume {
        name,
        account: owner,
        zone,
        kind: VolumeKind::Data(offering),
        bytes,
        vm: None,
        device: 0,
        attached: None,
        ready: false,
        protected: false,
        destroyed: false,
    };
    let uuid = cloud.fresh_uuid();
    let key = cloud.volumes.insert(uuid.clone(), cloud.now, it);
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"volume": cloud.show_volume(key, full)}))
    });
    Ok(Answer::Job(submission.making_the("Volume", &uuid)))
}

/// A disk of the caller's.
fn own(cloud: &Cloud, call: &Call) -> Result<Key<Volume>> {
    let key = call.the(&cloud.volumes, "id")?;
    let row = &cloud.volumes[key];
    if row.removed {
        return Err(ApiError::invalid(format!(
            "Unable to find UUID for id [{}] of type [Volume]",
            key.number()
        )));
    }
    cloud.allow(call.caller, row.account)?;
    Ok(key)
}

fn attach(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let vm = call.the(&cloud.vms, "virtualmachineid")?;
    cloud.allow(call.caller, cloud.vms[vm].account)?;
    let uuid = cloud.volumes[key].uuid.clone();
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if cloud.volumes[key].vm.is_some() {
            return Err(ApiError::invalid(ATTACHED));
        }
        if cloud.volumes[key].destroyed {
            return Err(ApiError::invalid("Volume state must be in Allocated, Ready or in Uploaded state"));
        }
        if cloud.vms[vm].removed || !matches!(cloud.vms[vm].state, VmState::Running | VmState::Stopped) {
            return Err(ApiError::invalid("Please specify a VM that is either running or stopped."));
        }
        let taken: Vec<_> =
            cloud.volumes.iter().filter(|volume| volume.vm == Some(vm)).map(|volume| volume.device).collect();
        // Number three is the drive of a disc.
        let device = (1..).find(|number| *number != 3 && !taken.contains(number)).unwrap_or(1);
        let now = cloud.now;
        let row = &mut cloud.volumes[key];
        (row.vm, row.device, row.attached, row.ready) = (Some(vm), device, Some(now), true);
        Ok(json!({"volume": cloud.show_volume(key, full)}))
    });
    Ok(Answer::Job(submission.about_the("Volume", &uuid)))
}

fn detach(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let Some(key) = call.key(&cloud.volumes, "id") else {
        return Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, |_, _| {
            Err(ApiError::invalid("Please provide either a volume id, or a tuple(device id, instance id)"))
        })));
    };
    cloud.allow(call.caller, cloud.volumes[key].account)?;
    let uuid = cloud.volumes[key].uuid.clone();
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let row = &cloud.volumes[key];
        let Some(vm) = row.vm else {
            return Err(ApiError::invalid("The specified volume is not attached to a VM."));
        };
        let off = matches!(cloud.vms[vm].state, VmState::Stopped | VmState::Destroyed);
        if matches!(row.kind, VolumeKind::Root(..)) && !off {
            return Err(ApiError::invalid(
                "Root volume detach can happen only when vm is in states: Stopped or Destroyed",
            ));
        }
        let row = &mut cloud.volumes[key];
        (row.vm, row.device, row.attached) = (None, 0, None);
        Ok(json!({"volume": cloud.show_volume(key, full)}))
    });
    Ok(Answer::Job(submission.about_the("Volume", &uuid)))
}

fn resize(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let uuid = cloud.volumes[key].uuid.clone();
    let gib = call.number("size").and_then(|size| u64::try_from(size).ok());
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(gib) = gib {
            cloud.volumes[key].bytes = gib << 30;
        }
        Ok(json!({"volume": cloud.show_volume(key, full)}))
    });
    Ok(Answer::Job(submission.about_the("Volume", &uuid)))
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let uuid = cloud.volumes[key].uuid.clone();
    let (name, protected) = (call.filled("name").map(str::to_owned), call.flag("deleteprotection"));
    let full = call.caller.is_root();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let row = &mut cloud.volumes[key];
        row.name = name.unwrap_or_else(|| row.name.clone());
        row.protected = protected.unwrap_or(row.protected);
        Ok(json!({"volume": cloud.show_volume(key, full)}))
    });
    Ok(Answer::Job(submission.about_the("Volume", &uuid)))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    if cloud.volumes[key].vm.is_some() {
        return Err(ApiError::invalid(ATTACHED));
    }
    cloud.volume_is_unprotected(key)?;
    cloud.remove_volume(key);
    Ok(Answer::Body(success()))
}

fn destroy(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    let uuid = cloud.volumes[key].uuid.clone();
    let expunge = call.is("expunge");
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if cloud.volumes[key].vm.is_some() {
            return Err(ApiError::invalid(ATTACHED));
        }
        cloud.volume_is_unprotected(key)?;
        if expunge {
            let shown = cloud.show_volume(key, false);
            cloud.remove_volume(key);
            return Ok(json!({"volume": shown}));
        }
        if !cloud.volumes[key].ready && !cloud.volumes[key].destroyed {
            return Err(ApiError::invalid(
                "The volume in Allocated/Uploaded state can only be expunged not destroyed/recovered",
            ));
        }
        // It stays in lists until the storage is cleaned up.
        cloud.volumes[key].destroyed = true;
        cloud.clean_up_later(key);
        Ok(json!({"volume": cloud.show_volume(key, false)}))
    });
    Ok(Answer::Job(submission.about_the("Volume", &uuid)))
}

fn recover(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    if !cloud.volumes[key].destroyed {
        return Err(ApiError::invalid("Please specify a volume in Destroy state."));
    }
    let (account, bytes) = (cloud.volumes[key].account, cloud.volumes[key].bytes);
    cloud.within_limit(account, Resource::Volume, 1).map_err(limit_exceeded)?;
    let gib = i64::try_from(bytes >> 30).unwrap_or(i64::MAX);
    cloud.within_limit(account, Resource::PrimaryStorage, gib).map_err(limit_exceeded)?;
    cloud.volumes[key].destroyed = false;
    // Everybody is shown what administrators are shown.
    Ok(Answer::Object("volume", cloud.show_volume(key, true)))
}

/// A limit that is exceeded is reported as a wrong parameter.
fn limit_exceeded(refused: ApiError) -> ApiError {
    ApiError::invalid(refused.text)
}
