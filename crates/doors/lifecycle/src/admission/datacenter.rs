//! Rules of datacenters.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::admission::{Admission, Features, FieldError, SecretUse};
use capstan_object::Key;

use super::Errors;
use crate::names::{SYSTEM_NAMESPACE, annotation, is_set};
use crate::types::{CloudStackAvailabilityZone, CloudStackDatacenterConfig};

impl Admission for CloudStackDatacenterConfig {
    fn secrets(&self) -> Vec<SecretUse> {
        let zones = self.spec.zones();
        let used = |(at, zone): (usize, &CloudStackAvailabilityZone)| SecretUse {
            path: format!("spec.availabilityZones[{at}].credentialsRef"),
            secret: Key::new(SYSTEM_NAMESPACE, zone.credentials_ref.as_str()),
        };
        zones.iter().enumerate().filter(|(_, zone)| !zone.credentials_ref.is_empty()).map(used).collect()
    }

    fn validate(&self, old: Option<&Self>, _: &Features) -> Errors {
        let mut errors = Vec::new();
        let spec = &self.spec;
        let older = [
            ("domain", !spec.domain.is_empty()),
            ("account", !spec.account.is_empty()),
            ("managementApiEndpoint", !spec.management_api_endpoint.is_empty()),
            ("zones", !spec.zones.is_empty()),
        ];
        if !spec.availability_zones.is_empty() {
            for (field, _) in older.iter().filter(|(_, set)| *set) {
                let what = format!("{field} must be empty: it is part of availabilityZones");
                errors.push(FieldError::forbidden(format!("spec.{field}"), what));
            }
        }
        let zones = spec.zones();
        if zones.is_empty() {
            errors
                .push(FieldError::required("spec.availabilityZones", "availabilityZones must not be empty"));
        }
        let mut names = BTreeSet::new();
        for (at, zone) in zones.iter().enumerate() {
            // In the older form the fields are elsewhere.
            let path = match spec.availability_zones.is_empty() {
                true => "spec".to_owned(),
                false => format!("spec.availabilityZones[{at}]"),
            };
            if !names.insert(zone.name.as_str()) {
                let what = "availabilityZone names must be unique";
                errors.push(FieldError::invalid(format!("{path}.name"), zone.name.as_str(), what));
            }
            self::zone(zone, &path, &mut errors);
        }
        if let Some(old) = old
            && !self.metadata.is_deleting()
            && !is_set(&old.metadata, annotation::PAUSED)
        {
            changed(&old.spec.zones(), &zones, &mut errors);
        }
        errors
    }
}

fn zone(zone: &CloudStackAvailabilityZone, path: &str, errors: &mut Errors) {
    if zone.name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), "an availability zone has a name"));
    }
    // Nodes get the name as a label, and failure domains are named by it.
    for why in capstan_schema::meta::dns1123_subdomain(&zone.name) {
        if !zone.name.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.name"), zone.name.as_str(), why));
        }
    }
    if zone.credentials_ref.is_empty() {
        let what = "name the Secret with the keys, in namespace eksa-system";
        errors.push(FieldError::required(format!("{path}.credentialsRef"), what));
    }
    if zone.zone.id.is_empty() && zone.zone.name.is_empty() {
        errors.push(FieldError::required(format!("{path}.zone"), "name the zone, by id or name"));
    }
    if zone.zone.network.is_empty() {
        let what = "zone network is not set or is empty";
        errors.push(FieldError::required(format!("{path}.zone.network"), what));
    }
    let url = url::Url::parse(&zone.management_api_endpoint);
    if !url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some()) {
        let what = "use the URL of the API, such as https://cloud.example.org/client/api";
        let path = format!("{path}.managementApiEndpoint");
        errors.push(FieldError::invalid(path, zone.management_api_endpoint.as_str(), what));
    }
    if zone.domain.starts_with("ROOT/") {
        let what = "write the path without ROOT/";
        errors.push(FieldError::invalid(format!("{path}.domain"), zone.domain.as_str(), what));
    }
}

/// Zones come and go, but do not change, and one stays.
fn changed(old: &[CloudStackAvailabilityZone], new: &[CloudStackAvailabilityZone], errors: &mut Errors) {
    let path = "spec.availabilityZones";
    let by_name: BTreeMap<&str, _> = new.iter().map(|zone| (zone.name.as_str(), zone)).collect();
    let mut shared = false;
    for before in old {
        let Some(after) = by_name.get(before.name.as_str()) else { continue };
        shared = true;
        if *after != before {
            let what = format!("availabilityZone {} is immutable: add another one instead", before.name);
            errors.push(FieldError::forbidden(path, what));
        }
    }
    // EKS Anywhere renamed zones of its first form once: to ids.
    let renamed = old.iter().all(|zone| zone.name.starts_with("default-az"))
        && new.iter().all(|zone| is_uuid(&zone.name));
    if !shared && !renamed && !old.is_empty() {
        let what = "at least one availabilityZone must be shared between new and old specs";
        errors.push(FieldError::forbidden(path, what));
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
