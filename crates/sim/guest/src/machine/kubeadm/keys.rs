//! Private keys of the algorithm that a configuration asks for.

use capstan_apiserver::pki::{PkiError, PrivateKey};
use capstan_x509::{Stream, pem, rsa_key};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair};

/// How keys are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// Also where kubeadm would make RSA keys because nothing is said: they cost a hundred times as much.
    EcdsaP256,
    EcdsaP384,
    Rsa(usize),
}

impl Algorithm {
    /// The algorithm of a name in `encryptionAlgorithm`.
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

    /// A fresh key.
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
