//! What makes a server the same one to its clients after it was moved or restored.

use std::path::Path;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, ZeroizeOnDrop};

use super::{Credential, Pki, PkiError, PrivateKey, files};

/// Authority and token key as PEM. With them a server accepts the client certificates and ServiceAccount
/// tokens of the server they come from, and that server's clients trust it. Leaf certificates are left out:
/// they are made anew.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Keys {
    authority_certificate: String,
    authority_key: String,
    token_key: String,
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.authority_key.zeroize();
        self.token_key.zeroize();
    }
}

impl ZeroizeOnDrop for Keys {}

impl Pki {
    /// What a copy of this server needs.
    pub fn keys(&self) -> Result<Keys, PkiError> {
        let authority = self.authority()?;
        let credential = authority.credential();
        Ok(Keys {
            authority_certificate: credential.certificate_pem(),
            authority_key: credential.key.to_pem(),
            token_key: self.token_key()?.to_pem(),
        })
    }
}

impl Keys {
    /// Whether they can be used.
    pub fn check(&self) -> Result<(), PkiError> {
        Credential::from_pem(&self.authority_certificate, &self.authority_key)?;
        PrivateKey::from_pem(&self.token_key)?;
        Ok(())
    }

    /// Reads them from where [`Pki::load_or_create`] keeps them, and makes none. None if one of them is missing.
    pub fn read(directory: &Path) -> Result<Option<Self>, PkiError> {
        let read = |file: &str| files::read(&directory.join(file));
        let (Some(authority_certificate), Some(authority_key), Some(token_key)) =
            (read("ca.crt")?, read("ca.key")?, read("sa.key")?)
        else {
            return Ok(None);
        };
        let keys = Self { authority_certificate, authority_key, token_key };
        keys.check()?;
        Ok(Some(keys))
    }

    /// Writes them where [`Pki::load_or_create`] reads them.
    pub fn write(&self, directory: &Path) -> Result<(), PkiError> {
        self.check()?;
        files::create_directory(directory)?;
        for (file, text, access) in [
            ("ca.key", &self.authority_key, files::Access::Owner),
            ("sa.key", &self.token_key, files::Access::Owner),
            ("ca.crt", &self.authority_certificate, files::Access::Everybody),
        ] {
            files::write(&directory.join(file), text, access)?;
        }
        Ok(())
    }
}
