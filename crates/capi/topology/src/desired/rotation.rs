//! Templates that must not change are replaced by new ones, with the references to them.

use capstan_capi_types::core::Cluster;

use super::workers::template_prefix;
use super::{Desired, DesiredDeployment, Intent, machines_prefix, names, refer_to_machines, reference};

/// Gives the template of the control plane's machines a new name.
pub fn rotate_control_plane_machines(desired: &mut Desired, cluster: &Cluster) {
    let prefix = machines_prefix(&cluster.metadata.name);
    if let Some(machines) = &mut desired.control_plane_machines {
        rename(machines, cluster, &prefix);
        let before = desired.control_plane.body.clone();
        let contract = desired.control_plane_contract;
        refer_to_machines(&mut desired.control_plane, Some(&before), contract, machines);
    }
}

/// Gives the bootstrap template of a group of workers a new name.
pub fn rotate_bootstrap(deployment: &mut DesiredDeployment, cluster: &Cluster, topology: &str) {
    rename(&mut deployment.bootstrap, cluster, &template_prefix(&cluster.metadata.name, topology));
    deployment.object.spec.template.spec.bootstrap.config_ref = reference(&deployment.bootstrap);
}

/// Gives the infrastructure template of a group of workers a new name.
pub fn rotate_infrastructure(deployment: &mut DesiredDeployment, cluster: &Cluster, topology: &str) {
    rename(&mut deployment.infrastructure, cluster, &template_prefix(&cluster.metadata.name, topology));
    deployment.object.spec.template.spec.infrastructure_ref = reference(&deployment.infrastructure);
}

/// The new name follows from the old one and the content: a rotation that was interrupted goes on with the same name,
/// and going back to earlier content gives yet another.
fn rename(template: &mut Intent, cluster: &Cluster, prefix: &str) {
    let name = names::rotated(cluster, prefix, template.name(), &template.body["spec"]);
    template.rename(&name);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::current::Current;
    use crate::testing::{blueprint, class, cluster, computed};

    #[test]
    fn a_rotation_renames_the_template_and_its_reference_the_same_way_each_time() {
        let of = cluster(json!({}));
        let current = Current { cluster: of.clone(), ..Current::default() };
        let desired = computed(&blueprint(class(json!({})), &of), &current).expect("desired");
        let mut once = desired.clone();
        let mut again = desired.clone();
        for rotated in [&mut once, &mut again] {
            rotate_control_plane_machines(rotated, &of);
            rotate_infrastructure(rotated.deployments.get_mut("md").expect("md"), &of, "md");
            rotate_bootstrap(rotated.deployments.get_mut("md").expect("md"), &of, "md");
        }
        let names = |desired: &Desired| {
            let deployment = &desired.deployments["md"];
            [
                desired.control_plane_machines.as_ref().map(|it| it.name().to_owned()),
                desired.control_plane.body["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"]
                    .as_str()
                    .map(str::to_owned),
                Some(deployment.infrastructure.name().to_owned()),
                Some(deployment.object.spec.template.spec.infrastructure_ref.name.clone()),
                Some(deployment.bootstrap.name().to_owned()),
            ]
        };
        assert_eq!(names(&once), names(&again));
        let new = names(&once);
        assert_eq!((&new[0], &new[2]), (&new[1], &new[3]));
        assert!(names(&desired).iter().zip(&new).all(|(old, new)| old != new));
    }
}
