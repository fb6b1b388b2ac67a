//! A certificate with its key, as a Secret keeps it.

use capstan_object::OwnerReference;

use super::purpose::Purpose;
use crate::Error;
use capstan_capi_core::secret::{Secret, cluster_secret};

/// Key of the certificate in a Secret.
const CERTIFICATE: &str = "tls.crt";
/// Key of the private key in a Secret.
const KEY: &str = "tls.key";

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
