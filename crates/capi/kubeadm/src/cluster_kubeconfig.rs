//! The admin kubeconfig of Clusters without a control plane provider.
//!
//! Owns: the kubeconfig Secret of such Clusters. Reads: the Secret with the cluster's CA, whoever made it.
//! Part of the core controllers: every bootstrap provider relies on it.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::paused;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{
    Controller, Decision, Effect, Look, NoCall, ObserveError, View, Wait, Watches, catalogue,
};
use capstan_object::{Key, Object, OwnerReference};

use crate::Error;
use crate::certificates::{AdminKubeconfig, Authority, KeyPair, Keys, Purpose, Seed};

/// Requeue interval while there is no CA: Secrets are not watched.
const RETRY: Duration = Duration::from_secs(30);

/// Creates the admin kubeconfig of Clusters without a control plane provider.
pub struct ClusterKubeconfigs {
    algorithm: EncryptionAlgorithmType,
    keys: Arc<dyn Keys>,
}

impl ClusterKubeconfigs {
    /// `algorithm` is that of the client's key.
    pub fn new(algorithm: EncryptionAlgorithmType, keys: Arc<dyn Keys>) -> Self {
        Self { algorithm, keys }
    }
}

/// What a decision about a kubeconfig depends on.
#[derive(Debug)]
pub enum Observed {
    /// Somebody else makes it, it cannot be made yet, or it exists.
    NotNeeded,
    Missing {
        /// The Secret with the cluster's CA.
        authority: Option<Box<Secret>>,
        seed: Seed,
    },
}

impl Controller for ClusterKubeconfigs {
    const NAME: &'static str = "cluster-kubeconfig";
    type Kind = Cluster;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<Cluster>) {
        // A machine with boot data means that the cluster has a CA.
        watches.related::<Machine>(|change, _| {
            let has_data = |machine: &Arc<Machine>| machine.spec.bootstrap.data_secret_name.is_some();
            match (&change.old, &change.new) {
                (old, Some(new)) if has_data(new) && !old.as_ref().is_some_and(has_data) => {
                    vec![Key::new(new.metadata.namespace.as_str(), new.spec.cluster_name.as_str())]
                }
                _ => Vec::new(),
            }
        });
    }

    fn paused(&self, object: &Cluster, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(Some(object), &object.metadata, Cluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<Cluster>, view: &View) -> Result<Observed, ObserveError> {
        let spec = &object.spec;
        if !spec.control_plane_ref.kind.is_empty()
            || !spec.control_plane_endpoint.is_valid()
            || object.metadata.is_deleting()
        {
            return Ok(Observed::NotNeeded);
        }
        let meta = &object.metadata;
        let secret = async |purpose: Purpose| {
            let key = Key::new(meta.namespace.as_str(), purpose.secret_name(&meta.name));
            view.client().get::<Secret>(&key).await
        };
        if secret(Purpose::Kubeconfig).await?.is_some() {
            return Ok(Observed::NotNeeded);
        }
        let seed = self
            .keys
            .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
            .map_err(|error| ObserveError::outside(catalogue::OBSERVE, error.to_string()))?;
        Ok(Observed::Missing { authority: secret(Purpose::ClusterCa).await?.map(Box::new), seed })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        let Observed::Missing { authority, seed } = &look.seen else { return decision };
        if look.paused.is_some() {
            return decision;
        }
        match make(&look.object, authority.as_deref(), self.algorithm, seed, look.now) {
            Ok(Some(secret)) => drop(decision.then(Effect::create(&secret))),
            Ok(None) => {
                let name = Purpose::ClusterCa.secret_name(&look.object.metadata.name);
                let what = format!("Secret {name} with a certificate and its key");
                decision.wait(Wait::on("WaitingForCertificates", what)).again_in(RETRY);
            }
            Err(error) => {
                decision.wait(Wait::on("CertificatesUnusable", error.to_string())).again_in(RETRY);
            }
        }
        decision
    }
}

/// The kubeconfig; `None` without a CA that can sign. A user who provides a CA without its key provides the kubeconfig
/// too.
fn make(
    cluster: &Cluster,
    authority: Option<&Secret>,
    algorithm: EncryptionAlgorithmType,
    seed: &Seed,
    now: jiff::Timestamp,
) -> Result<Option<Secret>, Error> {
    let authority = authority.map(KeyPair::from_secret).transpose()?;
    let Some(authority) = authority.filter(|authority| !authority.key.is_empty()) else { return Ok(None) };
    let server = format!("https://{}", cluster.spec.control_plane_endpoint);
    let kubeconfig = AdminKubeconfig { cluster: &cluster.metadata.name, server: &server, algorithm };
    let text = kubeconfig.render(&Authority::from_pair(&authority)?, seed, now)?;
    let owner = OwnerReference::to(cluster);
    Ok(Some(kubeconfig.to_secret(&cluster.metadata.namespace, owner, &text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::{KeySettings, SeededKeys, server_of};
    use crate::testing::object;
    use capstan_capi_types::bootstrap::ClusterConfiguration;
    use jiff::Timestamp;

    fn decided(authority: Option<Secret>) -> Decision<ClusterKubeconfigs> {
        let keys: Arc<dyn Keys> = Arc::new(SeededKeys::new(7));
        let seed = keys.seed("blue").expect("a seed");
        let cluster: Cluster = object(
            "metadata: {name: blue, namespace: fleet, uid: u}\nspec: {controlPlaneEndpoint: {host: blue.example, port: 6443}}",
        );
        let seen = Observed::Missing { authority: authority.map(Box::new), seed };
        let controller = ClusterKubeconfigs::new(EncryptionAlgorithmType::EcdsaP256, keys);
        controller.decide(&Look::new(Arc::new(cluster), seen, Timestamp::UNIX_EPOCH))
    }

    fn authority() -> Secret {
        let keys = KeySettings::of(&ClusterConfiguration::default(), EncryptionAlgorithmType::EcdsaP256);
        let seed = SeededKeys::new(8).seed("ca").expect("a seed");
        let pair = KeyPair::make(Purpose::ClusterCa, keys, &seed, Timestamp::UNIX_EPOCH).expect("a pair");
        pair.to_secret("fleet", "blue", Purpose::ClusterCa, OwnerReference::default())
    }

    #[test]
    fn the_kubeconfig_is_signed_by_the_clusters_authority() {
        let decision = decided(Some(authority()));
        let Effect::Create { body, .. } = &decision.effects[0].effect else { panic!("a creation") };
        assert_eq!(body["metadata"]["name"], "blue-kubeconfig");
        assert_eq!(body["metadata"]["ownerReferences"][0]["kind"], "Cluster");
        let secret: Secret = serde_json::from_value(body.clone()).expect("a Secret");
        assert_eq!(server_of(&secret, "blue").expect("a server"), "https://blue.example:6443");
    }

    #[test]
    fn an_authority_that_is_missing_or_cannot_sign_is_waited_for() {
        let mut keyless = authority();
        keyless.data.remove("tls.key");
        for authority in [None, Some(keyless)] {
            let decision = decided(authority);
            assert!(decision.effects.is_empty());
            assert_eq!(decision.waits[0].reason, "WaitingForCertificates");
            assert_eq!(decision.look_again, Some(RETRY));
        }
    }
}
