//! Private keys of the configured algorithm.

use capstan_pki::{PkiError, PrivateKey};
use capstan_x509::{Stream, pem, rsa_key};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair};

/// Key algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// Also the default, where kubeadm uses RSA: RSA keys cost a hundred times as much.
    EcdsaP256,
    EcdsaP384,
    Rsa(usize),
}

impl Algorithm {
    /// Parses `encryptionAlgorithm`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" | "ECDSA-P256" => Self::EcdsaP256,
            "ECDSA-P384" => Self::EcdsaP384,
            "RSA-2048" => Self::Rsa(2048),
            "RSA-3072" => Self::Rsa(3072),
            "RSA-4096" => Self::Rsa(4096),
            _ => return None,
        })
    }

    /// Generates a key.
    pub(super) fn key(self) -> Result<PrivateKey, PkiError> {
        let failed = || PkiError::Key("cannot be made");
        match self {
            Self::EcdsaP256 => PrivateKey::generate(),
            Self::EcdsaP384 => {
                let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, &SystemRandom::new());
                PrivateKey::from_pem(&pem("PRIVATE KEY", der.map_err(|_| failed())?.as_ref()))
            }
            Self::Rsa(bits) => {
                let mut seed = [0; 32];
                SystemRandom::new().fill(&mut seed).map_err(|_| failed())?;
                let der = rsa_key(&mut Stream::new(seed), bits).ok_or_else(failed)?;
                PrivateKey::from_pem(&pem("RSA PRIVATE KEY", &der))
            }
        }
    }
}
