//! Keys and certificates of one API server: its authority, its serving certificate, client certificates and the
//! key that signs ServiceAccount tokens.
//!
//! Everything is made when first asked for, so a process full of in-memory servers that nobody reaches
//! over TLS makes no keys. With a directory, what is made is kept there.
//!
//! A verified certificate yields its [`Subject`]. The server maps it to users, groups and permissions.

mod certificate;
mod files;
mod key;
mod keys;
mod kubeconfig;
#[cfg(test)]
mod tests;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_env::Env;
pub use certificate::{Authority, Credential, Leaf};
pub use key::PrivateKey;
pub use keys::Keys;
use parking_lot::Mutex;
pub use tls::{PeerIdentity, Subject, forget_sessions, provider, tls_time, valid_at};
use zeroize::Zeroizing;

/// The group that may do everything, whatever the stored policy says.
pub const MASTERS: &str = "system:masters";

/// What can go wrong with keys and certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A private key cannot be made, read or used.
    #[error("private key: {0}")]
    Key(&'static str),
    /// A certificate cannot be made or read.
    #[error("certificate: {0}")]
    Certificate(&'static str),
    /// A file cannot be read or written.
    #[error("cannot access {path}", path = path.display())]
    File {
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A key that others rely on is gone.
    #[error(
        "{path} is missing, but what it signed is still in use: restore it from a backup of the data directory{advice}",
        path = path.display()
    )]
    Lost {
        path: PathBuf,
        /// Advice for the user.
        advice: &'static str,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The client verifier cannot be built.
    #[error("cannot set up the verification of client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// Keys and certificates of one server.
pub struct Pki {
    env: Env,
    directory: Option<PathBuf>,
    authority: Mutex<Option<Arc<Authority>>>,
    token_key: Mutex<Option<Arc<PrivateKey>>>,
}

impl Pki {
    /// Kept in memory and made when first asked for.
    pub fn ephemeral(env: Env) -> Self {
        Self { env, directory: None, authority: Mutex::default(), token_key: Mutex::default() }
    }

    /// Kept in a directory, which is created if need be. Authority and token key are read or made at once,
    /// so that a directory that cannot be used is known at start.
    pub fn load_or_create(directory: &Path, env: Env) -> Result<Self, PkiError> {
        files::create_directory(directory)?;
        // The certificate is written last: where it is, the keys have been in use.
        if files::read(&directory.join("ca.crt"))?.is_some() {
            const NEW_TOKEN_KEY: &str =
                ", or start once with --new-token-key, which makes every ServiceAccount token invalid";
            for (file, advice) in [("ca.key", ""), ("sa.key", NEW_TOKEN_KEY)] {
                let path = directory.join(file);
                if files::read(&path)?.is_none() {
                    return Err(PkiError::Lost { path, advice });
                }
            }
        }
        let pki = Self { directory: Some(directory.to_owned()), ..Self::ephemeral(env) };
        pki.token_key()?;
        pki.authority()?;
        Ok(pki)
    }

    /// Makes a new token key in a directory whose key is lost. A key that is there stays.
    pub fn replace_lost_token_key(directory: &Path) -> Result<(), PkiError> {
        files::create_directory(directory)?;
        let pki = Self { directory: Some(directory.to_owned()), ..Self::ephemeral(Env::system()) };
        pki.token_key().map(|_| ())
    }

    /// An authority and a token key from elsewhere, such as those a cluster was bootstrapped with.
    pub fn given(authority: Authority, token_key: PrivateKey, env: Env) -> Self {
        Self {
            env,
            directory: None,
            authority: Mutex::new(Some(Arc::new(authority))),
            token_key: Mutex::new(Some(Arc::new(token_key))),
        }
    }

    /// The certificate authority.
    pub fn authority(&self) -> Result<Arc<Authority>, PkiError> {
        once(&self.authority, || {
            let Some(directory) = &self.directory else {
                return Authority::create(&self.env, PrivateKey::generate()?);
            };
            let key = self.kept_key("ca.key")?;
            let path = directory.join("ca.crt");
            if let Some(certificate) = files::read(&path)? {
                return Ok(Authority::new(Credential::from_pem(
                    &certificate,
                    &Zeroizing::new(key.to_pem()),
                )?));
            }
            // The key is written first: a crash in between leaves a key without certificate, which is used.
            let authority = Authority::create(&self.env, key)?;
            files::write(&path, &authority.credential().certificate_pem(), files::Access::Everybody)?;
            Ok(authority)
        })
    }

    /// The authority's certificate as PEM: what clients trust, and `kube-root-ca.crt` holds.
    pub fn ca_pem(&self) -> Result<String, PkiError> {
        Ok(self.authority()?.credential().certificate_pem())
    }

    /// The key that signs ServiceAccount tokens.
    pub fn token_key(&self) -> Result<Arc<PrivateKey>, PkiError> {
        once(&self.token_key, || match &self.directory {
            None => PrivateKey::generate(),
            Some(_) => self.kept_key("sa.key"),
        })
    }

    /// A certificate signed by the authority. With a directory it is kept in `<file>.crt` and `<file>.key`
    /// and made anew when it says something else, is signed by another authority or nears its end.
    pub fn credential(&self, file: &str, leaf: &Leaf) -> Result<Credential, PkiError> {
        let authority = self.authority()?;
        let Some(directory) = &self.directory else { return authority.issue(&self.env, leaf) };
        let (certificate_path, key_path) =
            (directory.join(format!("{file}.crt")), directory.join(format!("{file}.key")));
        let key = files::read(&key_path)?.map(Zeroizing::new);
        if let (Some(certificate), Some(key)) = (files::read(&certificate_path)?, key) {
            // What cannot be used is replaced: nothing is lost with a leaf.
            let kept = Credential::from_pem(&certificate, &key).ok();
            let kept = kept.filter(|kept| authority.issued(&kept.certificate, leaf));
            if let Some(kept) = kept.filter(|kept| kept.renew_at().is_ok_and(|at| self.env.now() < at)) {
                return Ok(kept);
            }
        }
        let fresh = authority.issue(&self.env, leaf)?;
        files::write(&key_path, &Zeroizing::new(fresh.key.to_pem()), files::Access::Owner)?;
        files::write(&certificate_path, &fresh.certificate_pem(), files::Access::Everybody)?;
        Ok(fresh)
    }

    /// A client certificate that is not kept.
    pub fn client(&self, name: &str, groups: &[&str]) -> Result<Credential, PkiError> {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.authority()?.issue(&self.env, &Leaf::Client { name: name.to_owned(), groups })
    }

    fn kept_key(&self, file: &str) -> Result<PrivateKey, PkiError> {
        let Some(directory) = &self.directory else { return PrivateKey::generate() };
        let path = directory.join(file);
        if let Some(pem) = files::read(&path)?.map(Zeroizing::new) {
            return PrivateKey::from_pem(&pem);
        }
        let key = PrivateKey::generate()?;
        files::write(&path, &Zeroizing::new(key.to_pem()), files::Access::Owner)?;
        Ok(key)
    }
}

fn once<T>(
    slot: &Mutex<Option<Arc<T>>>,
    make: impl FnOnce() -> Result<T, PkiError>,
) -> Result<Arc<T>, PkiError> {
    let mut slot = slot.lock();
    if let Some(made) = &*slot {
        return Ok(made.clone());
    }
    let made = Arc::new(make()?);
    *slot = Some(made.clone());
    Ok(made)
}
