//! Rules of machine configs.

use capstan_capi_types::admission::{Admission, Features, FieldError};

use super::Errors;
use crate::names::{annotation, is_set};
use crate::types::{CloudStackDiskOffering, CloudStackMachineConfig, ResourceIdentifier};

/// Settings of virtual machines that CloudStack or Cluster API decide.
const RESTRICTED: [&str; 41] = [
    "keyboard",
    "cpu.corespersocket",
    "rootdisksize",
    "boot.mode",
    "nameonhypervisor",
    "nicAdapter",
    "rootDiskController",
    "dataDiskController",
    "svga.vramSize",
    "nestedVirtualizationFlag",
    "ramReservation",
    "hypervisortoolsversion",
    "platform",
    "timeoffset",
    "kvm.vnc.port",
    "kvm.vnc.address",
    "video.hardware",
    "video.ram",
    "smc.present",
    "firmware",
    "cpuNumber",
    "cpuSpeed",
    "memory",
    "cpuOvercommitRatio",
    "memoryOvercommitRatio",
    "Message.ReservedCapacityFreed.Flag",
    "deployvm",
    "SSH.PublicKey",
    "SSH.KeyPairNames",
    "password",
    "Encrypted.Password",
    "configDriveLocation",
    "nic",
    "network",
    "ip4Address",
    "ip6Address",
    "disk",
    "diskOffering",
    "configurationId",
    "keypairnames",
    "controlNodeLoginUser",
];

impl Admission for CloudStackMachineConfig {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Errors {
        let mut errors = Vec::new();
        let spec = &self.spec;
        for (field, thing) in [("template", &spec.template), ("computeOffering", &spec.compute_offering)] {
            named(thing, field, &mut errors);
        }
        if let Some(disk) = &spec.disk_offering {
            self::disk(disk, &mut errors);
        }
        for (from, to) in &spec.symlinks {
            for path in [from, to] {
                symlink(path, &mut errors);
            }
        }
        for key in RESTRICTED.iter().filter(|key| spec.user_custom_details.contains_key(**key)) {
            let what = format!("restricted key {key} found in custom user details: remove it");
            errors.push(FieldError::forbidden(format!("spec.userCustomDetails[{key}]"), what));
        }
        if !spec.affinity.is_empty() && !spec.affinity_group_ids.is_empty() {
            let what = "affinity and affinityGroupIds cannot be set at the same time: remove one of them";
            errors.push(FieldError::forbidden("spec.affinityGroupIds", what));
        }
        if !matches!(spec.affinity.as_str(), "" | "pro" | "anti" | "no") {
            let known = ["pro", "anti", "no"];
            errors.push(FieldError::not_supported("spec.affinity", spec.affinity.as_str(), &known));
        }
        users(self, &mut errors);
        if let Some(old) = old
            && !self.metadata.is_deleting()
            && !is_set(&old.metadata, annotation::PAUSED)
        {
            let fixed = [
                (spec.affinity != old.spec.affinity, "spec.affinity"),
                (spec.affinity_group_ids != old.spec.affinity_group_ids, "spec.affinityGroupIds"),
            ];
            for (_, path) in fixed.into_iter().filter(|(changed, _)| *changed) {
                errors.push(FieldError::forbidden(path, "field is immutable"));
            }
        }
        errors
    }
}

fn named(thing: &ResourceIdentifier, field: &str, errors: &mut Errors) {
    if thing.is_empty() {
        let what = format!("{field} is not set: provide a name or an id");
        errors.push(FieldError::required(format!("spec.{field}"), what));
    }
}

fn disk(disk: &CloudStackDiskOffering, errors: &mut Errors) {
    let path = "spec.diskOffering";
    if !disk.is_named() {
        let parts = [&disk.mount_path, &disk.device, &disk.filesystem, &disk.label];
        if parts.iter().any(|part| !part.is_empty()) || disk.custom_size_in_gb != 0 {
            errors
                .push(FieldError::required(path, "empty id/name: name the offering, or remove diskOffering"));
        }
        return;
    }
    if disk.mount_path.len() < 2 || !disk.mount_path.starts_with('/') {
        let what = "must be non-empty and start with /";
        errors.push(FieldError::invalid(format!("{path}.mountPath"), disk.mount_path.as_str(), what));
    }
    for (field, text) in [("filesystem", &disk.filesystem), ("device", &disk.device), ("label", &disk.label)]
    {
        if text.is_empty() {
            errors.push(FieldError::required(format!("{path}.{field}"), format!("empty {field}")));
        }
    }
    if disk.custom_size_in_gb < 0 {
        let what = "must not be negative";
        errors.push(FieldError::invalid(format!("{path}.customSizeInGB"), disk.custom_size_in_gb, what));
    }
}

/// Paths are part of commands on machines.
fn symlink(path: &str, errors: &mut Errors) {
    if path.len() < 2 || !path.starts_with('/') || path.ends_with('/') {
        errors.push(FieldError::invalid("spec.symlinks", path, "must start with / and NOT end with /"));
    }
    let portable = |byte: u8| byte.is_ascii_alphanumeric() || b"./_-".contains(&byte);
    if !path.bytes().all(portable) {
        errors.push(FieldError::invalid("spec.symlinks", path, "has char not in portable file name set"));
    }
}

fn users(config: &CloudStackMachineConfig, errors: &mut Errors) {
    let users = &config.spec.users;
    let Some(user) = users.first() else {
        errors.push(FieldError::required("spec.users", "name a user with an SSH key"));
        return;
    };
    if users.len() > 1 {
        errors.push(FieldError::forbidden("spec.users", "only one user is supported: keep the first"));
    }
    if user.name.is_empty() {
        errors.push(FieldError::required("spec.users[0].name", "a user has a name"));
    }
    match user.ssh_authorized_keys.as_slice() {
        [] => errors
            .push(FieldError::required("spec.users[0].sshAuthorizedKeys", "a user has a public key for SSH")),
        [key] => {
            let mut words = key.split_whitespace();
            let kind = words.next().unwrap_or_default();
            if words.next().is_none() || !["ssh-", "ecdsa-", "sk-"].iter().any(|it| kind.starts_with(it)) {
                let what = "use a public key as in ~/.ssh/id_ed25519.pub: type and key";
                errors.push(FieldError::forbidden("spec.users[0].sshAuthorizedKeys[0]", what));
            }
        }
        _ => errors.push(FieldError::forbidden(
            "spec.users[0].sshAuthorizedKeys",
            "only one key is supported: keep the first",
        )),
    }
}
