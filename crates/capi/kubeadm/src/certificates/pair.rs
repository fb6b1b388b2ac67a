//! A certificate with its key, as stored in a Secret.

use capstan_object::OwnerReference;

use super::purpose::Purpose;
use crate::Error;
use capstan_capi_core::secret::{Secret, cluster_secret};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// A certificate (or public key) with its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// Certificate, or the public key of the pair that signs ServiceAccount tokens.
    pub certificate: String,
    /// Private key; empty if the user does not provide it.
    pub key: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl KeyPair {
    /// A missing certificate is an error, a missing key is not.
    pub fn from_secret(secret: &Secret) -> Result<Self, Error> {
        let certificate = secret.text(CERTIFICATE)?;
        let key = if secret.data.contains_key(KEY) { secret.text(KEY)? } else { String::new() };
        Ok(Self { certificate, key })
    }

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
