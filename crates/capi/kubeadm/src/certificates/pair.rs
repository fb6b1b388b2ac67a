//! A certificate with its key, as a Secret keeps it.

use capstan_capi_types::bootstrap::{ClusterConfiguration, EncryptionAlgorithmType as Algorithm};
use capstan_object::OwnerReference;
use jiff::Timestamp;

use super::{Authority, PrivateKey, Purpose, Seed};
use crate::Error;
use capstan_capi_core::secret::{Secret, cluster_secret};

/// Key of the certificate in a Secret.
const CERTIFICATE: &str = "tls.crt";
/// Key of the private key in a Secret.
const KEY: &str = "tls.key";

/// How keys and authorities are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySettings {
    /// Algorithm of the keys.
    pub algorithm: Algorithm,
    /// Days that an authority is valid.
    pub authority_days: i32,
}

impl KeySettings {
    /// What a configuration asks for. `default` is used where it names no algorithm: upstream's is RSA with 2048
    /// bits, ours ECDSA on P-256, whose keys cost a hundredth.
    pub fn of(config: &ClusterConfiguration, default: Algorithm) -> Self {
        let days = config.ca_certificate_validity_period_days;
        Self {
            algorithm: config.encryption_algorithm.unwrap_or(default),
            authority_days: if days == 0 { 3650 } else { days },
        }
    }
}

/// A certificate (or public key) with its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// Certificate, or the public key of the pair that signs ServiceAccount tokens.
    pub certificate: String,
    /// Private key; empty if the user keeps it to themselves.
    pub key: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl KeyPair {
    /// Makes the pair for a purpose, from a seed that is this cluster's alone.
    pub fn make(purpose: Purpose, settings: KeySettings, seed: &Seed, now: Timestamp) -> Result<Self, Error> {
        let key = PrivateKey::from_seed(settings.algorithm, &seed.derive(purpose.suffix()))?;
        if purpose == Purpose::ServiceAccount {
            return Ok(Self { certificate: key.public_pem(), key: key.to_pem().to_owned() });
        }
        let authority = Authority::create(key, settings.authority_days, now)?;
        Ok(Self { certificate: authority.certificate_pem(), key: authority.key_pem().to_owned() })
    }

    /// Reads a Secret: a missing certificate is an error, a missing key is not.
    pub fn from_secret(secret: &Secret) -> Result<Self, Error> {
        let certificate = secret.text(CERTIFICATE)?;
        let key = if secret.data.contains_key(KEY) { secret.text(KEY)? } else { String::new() };
        Ok(Self { certificate, key })
    }

    /// The Secret that keeps the pair.
    pub fn to_secret(
        &self,
        namespace: &str,
        cluster: &str,
        purpose: Purpose,
        owner: OwnerReference,
    ) -> Secret {
        let data = [(CERTIFICATE, self.certificate.as_bytes()), (KEY, self.key.as_bytes())];
        cluster_secret(namespace, &purpose.secret_name(cluster), cluster, owner, data)
    }
}
