//! kube-proxy: its image follows the version of Kubernetes.

use serde_json::Value;

use super::image::{Image, container, with_image};
use crate::control_plane::installed::KUBE_PROXY;
use crate::control_plane::observed::ControlPlaneState;

pub(super) fn change(plane: &ControlPlaneState, found: &Value) -> Option<Value> {
    let spec = &plane.control_plane.spec;
    let image = Image::parse(container(found, KUBE_PROXY)?["image"].as_str()?);
    let repository = match spec.kubeadm_config_spec.cluster_configuration.image_repository.as_str() {
        "" => image.repository,
        repository => repository.trim_end_matches('/'),
    };
    let tag = spec.version.replace('+', "_");
    with_image(found, KUBE_PROXY, &Image { repository, tag: Some(&tag), ..image })
}
