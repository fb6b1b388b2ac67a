//! Whether the cloud has what a planned machine names, and whether it fits together.

use capstan_openstack_client::compute::Flavor;
use capstan_openstack_client::image::Image;
use capstan_openstack_types::v1beta2::{OpenStackMachineSpec, PortOpts};
use capstan_provider_kit::Size;
use capstan_provider_kit::proposal::version_in;

use crate::error::CloudError;
use crate::project::Access;
use crate::{catalog, code, lookup};

/// Properties of images with the Kubernetes version, in the order of preference: Magnum's, and that of image builders.
const VERSION_PROPERTIES: [&str; 2] = ["kube_version", "kubernetes_version"];

/// What the cloud says about a machine.
#[derive(Debug, Default)]
pub(super) struct MachineVerdict {
    pub size: Option<Size>,
    /// Why it cannot be created as it is.
    pub errors: Vec<CloudError>,
}

pub(super) async fn judge(
    spec: &OpenStackMachineSpec,
    version: &str,
    zone: &str,
    access: &Access,
) -> MachineVerdict {
    let mut verdict = MachineVerdict::default();
    let flavor = catalog::flavor(access, &spec.flavor, "spec.flavor").await;
    let image = catalog::image(access, &spec.image, "spec.image").await;
    if let Ok(flavor) = &flavor {
        verdict.size = Some(Size { cpus: flavor.vcpus.into(), memory_mib: flavor.ram });
    }
    if let Ok(image) = &image {
        verdict.errors.extend(other_version(image, version));
        if let Ok(flavor) = &flavor {
            verdict.errors.extend(too_small(spec, flavor, image));
        }
    }
    verdict.errors.extend(flavor.err());
    verdict.errors.extend(image.err());
    if let Some(group) = &spec.server_group {
        verdict.errors.extend(lookup::server_group(access, group, "spec.serverGroup").await.err());
    }
    for (index, param) in spec.security_groups.iter().enumerate() {
        let field = format!("spec.securityGroups[{index}]");
        verdict.errors.extend(lookup::security_groups(access, param, &field).await.err());
    }
    for (index, port) in spec.ports.iter().enumerate() {
        verdict.errors.extend(port_errors(port, index, access).await);
    }
    verdict.errors.extend(no_zone(zone, access).await);
    verdict
}

async fn port_errors(port: &PortOpts, index: usize, access: &Access) -> Vec<CloudError> {
    let field = format!("spec.ports[{index}]");
    let mut errors = Vec::new();
    let network = match &port.network {
        Some(param) => match lookup::network(access, param, false, &format!("{field}.network")).await {
            Ok(id) => Some(id),
            Err(error) => return vec![error],
        },
        None => None,
    };
    for (number, ip) in port.fixed_ips.iter().enumerate() {
        if let Some(param) = &ip.subnet {
            let field = format!("{field}.fixedIPs[{number}].subnet");
            errors.extend(lookup::subnet(access, param, network.as_deref(), &field).await.err());
        }
    }
    for (number, param) in port.security_groups.iter().enumerate() {
        let field = format!("{field}.securityGroups[{number}]");
        errors.extend(lookup::security_groups(access, param, &field).await.err());
    }
    errors
}

async fn no_zone(zone: &str, access: &Access) -> Option<CloudError> {
    if zone.is_empty() {
        return None;
    }
    match access.zones().await {
        Ok(zones) if zones.iter().any(|known| known == zone) => None,
        Ok(zones) => {
            let message = format!(
                "failureDomain: there is no availability zone {zone:?} that takes servers; use one of {}",
                zones.join(", ")
            );
            Some(CloudError::new(code::NOT_FOUND, "OpenStackError", message))
        }
        Err(error) => Some(error.into()),
    }
}

/// The Kubernetes version in an image, by its properties or else its name; `None` if neither has it.
fn version_of(image: &Image) -> Option<&str> {
    let property = VERSION_PROPERTIES.iter().find_map(|name| image.property(name));
    property.map(|text| text.trim_start_matches('v')).or_else(|| version_in(&image.name))
}

/// Such a machine would run and never join.
fn other_version(image: &Image, version: &str) -> Option<CloudError> {
    let wanted = version.trim_start_matches('v').split('+').next().unwrap_or_default();
    let inside = version_of(image)?;
    if wanted.is_empty() || inside == wanted {
        return None;
    }
    let message = format!(
        "spec.image: image {:?} has Kubernetes v{inside}, and the machine is to run v{wanted}: use an image with v{wanted}, \
         or change the version",
        image.name
    );
    Some(CloudError::new(code::IMAGE, "InvalidMachineSpec", message))
}

/// What Nova and Cinder refuse: an image that needs more than the machine has.
fn too_small(spec: &OpenStackMachineSpec, flavor: &Flavor, image: &Image) -> Option<CloudError> {
    let error = |message: String| Some(CloudError::new(code::IMAGE, "InvalidMachineSpec", message));
    if image.min_ram > flavor.ram {
        return error(format!(
            "spec.flavor: image {:?} needs {} MiB of memory, and flavor {} has {}: use a larger flavor",
            image.name, image.min_ram, flavor.name, flavor.ram
        ));
    }
    match &spec.root_volume {
        Some(volume) if u64::try_from(volume.size_gib).unwrap_or_default() < image.min_disk => {
            error(format!(
                "spec.rootVolume.sizeGiB: image {:?} needs {} GiB of disk, and the volume has {}: raise it",
                image.name, image.min_disk, volume.size_gib
            ))
        }
        None if flavor.disk == 0 => error(format!(
            "spec.flavor: flavor {} has no disk, and Nova takes it only with a root volume unless an administrator changed \
             its policy: set spec.rootVolume, or use a flavor with a disk",
            flavor.name
        )),
        None if flavor.disk < image.min_disk => error(format!(
            "spec.flavor: image {:?} needs {} GiB of disk, and flavor {} has {}: use a larger flavor, or set \
             spec.rootVolume",
            image.name, image.min_disk, flavor.name, flavor.disk
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use capstan_openstack_types::v1beta2::RootVolume;
    use serde_json::json;

    use super::*;

    fn image(value: serde_json::Value) -> Image {
        serde_json::from_value(value).expect("an image")
    }

    #[test]
    fn an_image_of_another_version_is_refused_by_property_or_name() {
        let rows = [
            (json!({"name": "ubuntu-kube-v1.36.0"}), "v1.36.0", true),
            (json!({"name": "ubuntu-kube-v1.36.0"}), "v1.36.0+x", true),
            (json!({"name": "ubuntu-kube-v1.35.0"}), "v1.36.0", false),
            (json!({"name": "plain"}), "v1.36.0", true),
            (json!({"name": "plain", "kube_version": "v1.35.0"}), "v1.36.0", false),
            (json!({"name": "ubuntu-kube-v1.35.0", "kube_version": "v1.36.0"}), "v1.36.0", true),
            (json!({"name": "ubuntu-kube-v1.35.0"}), "", true),
        ];
        for (value, version, fits) in rows {
            assert_eq!(other_version(&image(value.clone()), version).is_none(), fits, "{value} {version}");
        }
    }

    #[test]
    fn an_image_that_needs_more_than_the_machine_has_is_refused_by_the_field_to_change() {
        let flavor = |ram, disk| Flavor { name: "f".to_owned(), ram, disk, ..Flavor::default() };
        let needs = image(json!({"name": "i", "min_disk": 20, "min_ram": 1024}));
        let why = |flavor: &Flavor, root: Option<i32>| {
            let root_volume = root.map(|size_gib| RootVolume { size_gib, ..RootVolume::default() });
            let spec = OpenStackMachineSpec { root_volume, ..OpenStackMachineSpec::default() };
            too_small(&spec, flavor, &needs).map(|error| error.message)
        };
        assert_eq!(why(&flavor(1024, 20), None), None);
        assert!(why(&flavor(1024, 0), None).is_some_and(|why| why.contains("spec.rootVolume")));
        assert_eq!(why(&flavor(1024, 0), Some(20)), None);
        assert!(why(&flavor(512, 20), None).is_some_and(|why| why.starts_with("spec.flavor: ")));
        assert!(why(&flavor(1024, 10), None).is_some_and(|why| why.contains("20 GiB")));
        assert_eq!(why(&flavor(1024, 10), Some(20)), None);
        assert!(why(&flavor(1024, 40), Some(10)).is_some_and(|why| why.contains("rootVolume")));
    }
}
