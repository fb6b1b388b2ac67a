//! The OpenStackServer of an OpenStackMachine.

use capstan_capi_types::core::{Machine, label};
use capstan_object::{ObjectMeta, OwnerReference};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};

use crate::mark;
use crate::server_spec::{Surroundings, server_spec};

/// The server of a machine, or why there can be none.
pub(super) fn server_of(
    object: &OpenStackMachine,
    machine: &Machine,
    cluster: &OpenStackCluster,
) -> Result<OpenStackServer, String> {
    let control_plane = machine.metadata.labels.contains_key(label::CONTROL_PLANE);
    let managed = match control_plane {
        true => cluster.status.control_plane_security_group.as_ref(),
        false => cluster.status.worker_security_group.as_ref(),
    };
    let managed = managed.filter(|_| cluster.spec.managed_security_groups.is_some());
    let around = Surroundings {
        cluster,
        zone: Some(machine.spec.failure_domain.clone()),
        user_data: machine.spec.bootstrap.data_secret_name.clone(),
        group: managed.map(|group| group.id.as_str()),
    };
    let spec = server_spec(&object.spec, &around)?;
    let mut metadata = ObjectMeta::named(object.metadata.namespace.as_str(), object.metadata.name.as_str());
    metadata.labels = object.metadata.labels.clone();
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), machine.spec.cluster_name.clone());
    metadata.annotations.insert(mark::ANNOTATION.to_owned(), object.metadata.uid.clone());
    metadata.owner_references.push(OwnerReference::controlled_by(object));
    Ok(OpenStackServer { metadata, spec, ..OpenStackServer::default() })
}
