//! Machine templates.

use capstan_cloudstack_types::v1beta3::{CloudStackMachineTemplate, DiskOffering, Identifier};

use super::metadata;
use crate::names::annotation::CLOUDSTACK_SUFFIX;
use crate::types::{CloudStackMachineConfig, Cluster, ResourceIdentifier};

fn identifier(thing: &ResourceIdentifier) -> Identifier {
    Identifier { id: thing.id.clone(), name: thing.name.clone() }
}

pub(super) fn generate(
    cluster: &Cluster,
    name: &str,
    config: &CloudStackMachineConfig,
) -> CloudStackMachineTemplate {
    let wanted = &config.spec;
    let mut template = CloudStackMachineTemplate {
        metadata: metadata(cluster, name),
        ..CloudStackMachineTemplate::default()
    };
    let annotations = &mut template.metadata.annotations;
    let mut annotate = |what: &str, value: String| {
        annotations.insert(format!("{what}.{CLOUDSTACK_SUFFIX}"), value);
    };
    let machine = &mut template.spec.template.spec;
    if let Some(disk) = wanted.disk_offering.as_ref().filter(|disk| disk.is_named()) {
        for (what, value) in [
            ("mountpath", &disk.mount_path),
            ("device", &disk.device),
            ("filesystem", &disk.filesystem),
            ("label", &disk.label),
        ] {
            annotate(&format!("{what}.diskoffering"), value.clone());
        }
        machine.disk_offering = DiskOffering {
            id: disk.id.clone(),
            name: disk.name.clone(),
            custom_size_in_gb: disk.custom_size_in_gb,
            mount_path: disk.mount_path.clone(),
            device: disk.device.clone(),
            filesystem: disk.filesystem.clone(),
            label: disk.label.clone(),
        };
    }
    if !wanted.symlinks.is_empty() {
        let mut links: Vec<String> =
            wanted.symlinks.iter().map(|(from, to)| format!("{from}:{to}")).collect();
        // By the whole text, as EKS Anywhere does: another order would be another template.
        links.sort();
        annotate("symlinks", links.join(","));
    }
    machine.offering = identifier(&wanted.compute_offering);
    machine.template = identifier(&wanted.template);
    machine.details.clone_from(&wanted.user_custom_details);
    machine.affinity.clone_from(&wanted.affinity);
    machine.affinity_group_ids.clone_from(&wanted.affinity_group_ids);
    template
}
