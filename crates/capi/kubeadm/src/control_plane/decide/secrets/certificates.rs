//! The certificates of a cluster.

use capstan_capi_types::controlplane::kubeadm_control_plane::condition::CERTIFICATES_AVAILABLE;
use capstan_capi_types::core::{Cluster, reason};
use capstan_controller::{Effect, Wait};
use capstan_object::{ConditionStatus, OwnerReference};

use super::{impossible, own};
use crate::certificates::{CertificateLocation, KeyPair, KeySettings, locations_for_control_plane};
use crate::control_plane::Settings;
use crate::control_plane::decide::scope::{Decided, Looked, RETRY};
use crate::control_plane::decide::status;

/// Generates missing certificates while no machine uses others yet, and takes ownership of those that controllers
/// created. Returns whether the reconcile can continue.
pub(crate) fn certificates(
    settings: &Settings,
    look: &Looked,
    cluster: &Cluster,
    decision: &mut Decided,
) -> bool {
    let config = &look.object.spec.kubeadm_config_spec.cluster_configuration;
    let locations = locations_for_control_plane(config);
    let found = &look.seen.certificates;
    let missing: Vec<&CertificateLocation> =
        locations.iter().filter(|location| !found.contains_key(&location.purpose)).collect();
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
        // Existing machines would not trust a new CA.
        .filter(|location| location.provided || initialized)
        .map(|location| location.purpose.suffix())
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
        // Existing machines are still reconciled.
        return initialized;
    }
    let keys = KeySettings::of(config, settings.default_algorithm);
    let owner = OwnerReference::controlled_by(look.object.as_ref());
    let meta = &cluster.metadata;
    for location in missing {
        decision.then(match KeyPair::make(location.purpose, keys, &look.seen.seed, look.now) {
            Ok(pair) => {
                Effect::create(&pair.to_secret(&meta.namespace, &meta.name, location.purpose, owner.clone()))
            }
            Err(error) => impossible("make a certificate", &error),
        });
    }
    let message = "Cluster certificates are being created";
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
