//! The admin kubeconfig.

use capstan_capi_types::core::Cluster;
use capstan_controller::{Effect, Note, ObjectRef, Wait};
use capstan_object::OwnerReference;
use serde_json::json;

use super::{impossible, own};
use crate::Error;
use crate::certificates::{
    AdminKubeconfig, Authority, KeyPair, KeySettings, Purpose, is_due_for_renewal, server_of,
};
use crate::control_plane::Settings;
use crate::control_plane::calls::ControlPlaneCall;
use crate::control_plane::decide::scope::{Decided, Looked, RETRY};
use capstan_capi_core::secret::Secret;

/// Creates the admin kubeconfig and renews it at half its lifetime. A kubeconfig that the user provided is left
/// unchanged. Returns whether it exists.
pub(crate) fn kubeconfig(
    settings: &Settings,
    look: &Looked,
    cluster: &Cluster,
    decision: &mut Decided,
) -> bool {
    let Some(found) = &look.seen.kubeconfig else {
        let server = format!("https://{}", cluster.spec.control_plane_endpoint);
        match render(settings, look, cluster, &server) {
            Ok(Some(secret)) => drop(decision.then(Effect::create(&secret))),
            Ok(None) => {
                decision.wait(Wait::on("WaitingForCertificates", "the cluster's authority"));
                decision.again_in(RETRY);
            }
            Err(error) => drop(decision.then(impossible("make the kubeconfig", &error))),
        }
        return false;
    };
    own(&look.object, found, decision);
    let controlled = found.metadata.controller().is_some_and(|owner| owner.uid == look.object.metadata.uid);
    if controlled && decision.effects.is_empty() {
        match renewal(settings, look, cluster, found) {
            Ok(Some(effect)) => {
                let note = Note::normal("KubeconfigRenewed", "Renew", "Renewed the kubeconfig");
                decision.then_noting(effect, note);
            }
            Ok(None) => {}
            Err(error) => {
                decision.wait(Wait::on("KubeconfigUnreadable", error.to_string()));
            }
        }
    }
    true
}

/// `None` without a CA that can sign.
fn render(
    settings: &Settings,
    look: &Looked,
    cluster: &Cluster,
    server: &str,
) -> Result<Option<Secret>, Error> {
    let Some(authority) = look.seen.certificates.get(&Purpose::ClusterCa) else { return Ok(None) };
    let authority = Authority::from_pair(&KeyPair::from_secret(authority)?)?;
    let config = &look.object.spec.kubeadm_config_spec.cluster_configuration;
    let kubeconfig = AdminKubeconfig {
        cluster: &cluster.metadata.name,
        server,
        algorithm: KeySettings::of(config, settings.default_algorithm).algorithm,
    };
    let text = kubeconfig.render(&authority, &look.seen.seed, look.now)?;
    let owner = OwnerReference::controlled_by(look.object.as_ref());
    Ok(Some(kubeconfig.to_secret(&cluster.metadata.namespace, owner, &text)))
}

fn renewal(
    settings: &Settings,
    look: &Looked,
    cluster: &Cluster,
    found: &Secret,
) -> Result<Option<Effect<ControlPlaneCall>>, Error> {
    if !is_due_for_renewal(found, look.now)? {
        return Ok(None);
    }
    let server = server_of(found, &cluster.metadata.name)?;
    let Some(wanted) = render(settings, look, cluster, &server)? else { return Ok(None) };
    let value = serde_json::to_value(&wanted).map_err(|_| Error::Encoding("the kubeconfig"))?;
    let change = json!({"data": value["data"]});
    Ok(Some(Effect::merge_guarded(ObjectRef::to(found), &found.metadata, change)))
}
