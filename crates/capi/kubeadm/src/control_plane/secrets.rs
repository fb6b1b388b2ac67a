//! The Secrets of a cluster that its control plane makes and keeps: certificates, and the administrator's kubeconfig.

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition::CERTIFICATES_AVAILABLE;
use capstan_capi_types::core::{CLUSTER_SECRET_TYPE, Cluster, reason};
use capstan_controller::{Effect, Note, ObjectRef, Wait};
use capstan_object::{ConditionStatus, Object, OwnerReference};
use serde_json::json;

use super::decide::{Decided, Looked, RETRY};
use super::{ControlPlaneCall, Settings, status};
use crate::Error;
use crate::certificates::{
    AdminKubeconfig, Authority, KeyPair, KeySettings, Place, Purpose, is_due_for_renewal,
    places_for_control_plane, server_of,
};
use capstan_capi_core::secret::Secret;

type Made = Effect<ControlPlaneCall>;

/// Makes the certificates that are missing, as long as nothing was built on others, and owns those that controllers
/// made. The answer is whether all are there.
pub(super) fn certificates(
    settings: &Settings,
    look: &Looked,
    cluster: &Cluster,
    decision: &mut Decided,
) -> bool {
    let config = &look.object.spec.kubeadm_config_spec.cluster_configuration;
    let places = places_for_control_plane(config);
    let found = &look.seen.certificates;
    let missing: Vec<&Place> = places.iter().filter(|place| !found.contains_key(&place.purpose)).collect();
    if missing.is_empty() {
        for secret in found.values() {
            own(&look.object, secret, decision);
        }
        status::set(decision, look, CERTIFICATES_AVAILABLE, ConditionStatus::True, reason::AVAILABLE, "");
        return true;
    }
    let initialized = look.object.status.initialization.control_plane_initialized == Some(true);
    let lost: Vec<&str> = missing
        .iter()
        // A new authority would be trusted by none of the machines that exist.
        .filter(|place| place.provided || initialized)
        .map(|place| place.purpose.suffix())
        .collect();
    if !lost.is_empty() {
        let (subject, verb) =
            if lost.len() == 1 { ("Cluster certificate", "is") } else { ("Cluster certificates", "are") };
        let message = format!(
            "{subject} for {} {verb} not available, please check cluster certificate secrets",
            lost.join(", ")
        );
        decision.wait(Wait::on("WaitingForCertificates", message.clone()));
        decision.again_in(RETRY);
        let (kind, status) = (CERTIFICATES_AVAILABLE, ConditionStatus::False);
        status::set(decision, look, kind, status, reason::NOT_AVAILABLE, message);
        // Machines that exist are looked after all the same.
        return initialized;
    }
    let keys = KeySettings::of(config, settings.default_algorithm);
    let owner = OwnerReference::controlled_by(look.object.as_ref());
    let meta = &cluster.metadata;
    for place in missing {
        decision.then(match KeyPair::make(place.purpose, keys, &look.seen.seed, look.now) {
            Ok(pair) => {
                Effect::create(&pair.to_secret(&meta.namespace, &meta.name, place.purpose, owner.clone()))
            }
            Err(error) => impossible("make a certificate", &error),
        });
    }
    let message = "Cluster certificates are being made";
    status::set(
        decision,
        look,
        CERTIFICATES_AVAILABLE,
        ConditionStatus::False,
        reason::NOT_AVAILABLE,
        message,
    );
    false
}

/// Makes the administrator's kubeconfig, owns it, and renews it at half its life. What a user provided is left as
/// it is. The answer is whether it is there.
pub(super) fn kubeconfig(
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

/// The kubeconfig for a server; `None` without an authority that can sign.
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
) -> Result<Option<Made>, Error> {
    if !is_due_for_renewal(found, look.now)? {
        return Ok(None);
    }
    let server = server_of(found, &cluster.metadata.name)?;
    let Some(wanted) = render(settings, look, cluster, &server)? else { return Ok(None) };
    let value = serde_json::to_value(&wanted).map_err(|_| Error::Encoding("the kubeconfig"))?;
    let change = json!({"data": value["data"]});
    Ok(Some(Effect::merge_guarded(ObjectRef::to(found), &found.metadata, change)))
}

/// A Secret that controllers made belongs to the control plane, also if it was another controller's before.
fn own(control_plane: &KubeadmControlPlane, secret: &Secret, decision: &mut Decided) {
    let wanted = OwnerReference::controlled_by(control_plane);
    let mut owners = secret.metadata.owner_references.clone();
    let controller = secret.metadata.controller();
    let ours = controller.is_some_and(|owner| owner.kind == KubeadmControlPlane::KIND.kind);
    if secret.kind != CLUSTER_SECRET_TYPE && !ours {
        return;
    }
    owners.retain(|owner| owner.controller != Some(true) || owner.same_owner(&wanted));
    capstan_capi_core::owners::ensure(&mut owners, wanted);
    if owners == secret.metadata.owner_references {
        return;
    }
    let change = json!({"metadata": {"ownerReferences": owners}});
    decision.then(Effect::merge_guarded(ObjectRef::to(secret), &secret.metadata, change));
}

fn impossible(what: &str, error: &Error) -> Made {
    Effect::Impossible { what: what.to_owned(), why: error.to_string() }
}
