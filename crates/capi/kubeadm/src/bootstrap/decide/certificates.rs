//! Certificates in the bootstrap data. Generated here only for clusters without a control plane provider.

use capstan_capi_core::secret::SecretError;
use capstan_capi_types::bootstrap::File;
use capstan_capi_types::bootstrap::kubeadm_config::condition::CERTIFICATES_AVAILABLE;
use capstan_capi_types::core::{ContractVersionedObjectReference, reason};
use capstan_controller::{Effect, Wait};
use capstan_object::{ConditionStatus, OwnerReference};

use super::data::Step;
use super::{Decision, RETRY};
use crate::Error;
use crate::bootstrap::observed::is_initialized;
use crate::bootstrap::status;
use crate::certificates::{CertificateLocation, KeyPair, KeySettings};

impl Step<'_> {
    fn secret_name(&self, location: &CertificateLocation) -> String {
        location.purpose.secret_name(&self.cluster.metadata.name)
    }

    /// Fails if a certificate that the user must provide is missing.
    pub(super) fn check_provided(&self, locations: &[CertificateLocation]) -> Result<(), Error> {
        let missing = |location: &&CertificateLocation| {
            location.provided && !self.look.seen.certificates.contains_key(&location.purpose)
        };
        match locations.iter().find(missing) {
            Some(location) => Err(Error::CertificateMissing(self.secret_name(location))),
            None => Ok(()),
        }
    }

    /// Returns whether all certificates exist. Missing ones are generated for clusters without a control plane provider.
    pub(super) fn certificates_there(
        &self,
        locations: &[CertificateLocation],
        decision: &mut Decision,
    ) -> Result<bool, Error> {
        let seen = &self.look.seen;
        let missing: Vec<&CertificateLocation> =
            locations.iter().filter(|location| !seen.certificates.contains_key(&location.purpose)).collect();
        if missing.is_empty() {
            status::set(
                decision,
                self.look,
                CERTIFICATES_AVAILABLE,
                ConditionStatus::True,
                reason::AVAILABLE,
                "",
            );
            return Ok(true);
        }
        let names: Vec<String> = missing.iter().map(|location| self.secret_name(location)).collect();
        let message = format!("Waiting for secrets {}", names.join(", "));
        status::set(
            decision,
            self.look,
            CERTIFICATES_AVAILABLE,
            ConditionStatus::False,
            reason::NOT_AVAILABLE,
            message.clone(),
        );
        status::no_data(decision, self.look, message);
        let standalone = self.cluster.spec.control_plane_ref == ContractVersionedObjectReference::default();
        if standalone && !is_initialized(self.cluster) {
            let spec = &self.look.object.spec.cluster_configuration;
            let keys = KeySettings::of(spec, self.settings.default_algorithm);
            let owner = OwnerReference::controlled_by(&*self.look.object);
            let meta = &self.cluster.metadata;
            for location in missing {
                let pair = KeyPair::make(location.purpose, keys, &seen.seed, self.look.now)?;
                let secret = pair.to_secret(&meta.namespace, &meta.name, location.purpose, owner.clone());
                decision.then(Effect::create(&secret));
            }
        } else {
            decision.wait(Wait::on("WaitingForCertificates", names.join(", "))).again_in(RETRY / 3);
        }
        Ok(false)
    }

    pub(super) fn pair(&self, location: &CertificateLocation) -> Result<KeyPair, Error> {
        let secret = self.look.seen.certificates.get(&location.purpose);
        let pair = KeyPair::from_secret(
            secret.ok_or_else(|| Error::CertificateMissing(self.secret_name(location)))?,
        )?;
        if pair.key.is_empty() && location.key_file.is_some() {
            let (secret, key) = (self.secret_name(location), "tls.key".to_owned());
            return Err(SecretError::KeyMissing { secret, key }.into());
        }
        Ok(pair)
    }

    pub(super) fn certificate_files(&self, locations: &[CertificateLocation]) -> Result<Vec<File>, Error> {
        let mut files = Vec::new();
        for location in locations {
            files.extend(location.files(&self.pair(location)?));
        }
        Ok(files)
    }
}
