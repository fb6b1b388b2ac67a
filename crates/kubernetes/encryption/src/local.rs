//! Key-encryption keys of the configuration.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::config::{Algorithm, NamedKey};

/// Bytes of a fingerprint. It distinguishes keys of one name; it is not a secret.
const FINGERPRINT: usize = 8;

/// A key that wraps data keys.
pub(crate) struct LocalKey {
    pub algorithm: Algorithm,
    pub name: String,
    pub fingerprint: [u8; FINGERPRINT],
    key: LessSafeKey,
}

impl LocalKey {
    /// `None` if the key has a wrong length, which the configuration rules out.
    pub fn new(algorithm: Algorithm, key: &NamedKey) -> Option<Self> {
        let NamedKey { name, secret } = key;
        let ring = match (algorithm, secret.len()) {
            (Algorithm::Secretbox, _) => &CHACHA20_POLY1305,
            (Algorithm::AesGcm, 16) => &AES_128_GCM,
            (Algorithm::AesGcm, _) => &AES_256_GCM,
        };
        let mut input = Zeroizing::new(b"capstan key fingerprint\0".to_vec());
        input.extend_from_slice(secret);
        let mut fingerprint = [0; FINGERPRINT];
        fingerprint.copy_from_slice(&digest(&SHA256, &input).as_ref()[..FINGERPRINT]);
        let key = LessSafeKey::new(UnboundKey::new(ring, secret).ok()?);
        Some(Self { algorithm, name: name.clone(), fingerprint, key })
    }

    /// Wraps a data key: nonce, ciphertext, tag. `None` without randomness.
    pub fn wrap(&self, context: &[u8], data_key: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = data_key.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed)
            .ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    pub fn unwrap(&self, context: &[u8], wrapped: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = wrapped.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut buffer = Zeroizing::new(sealed.to_vec());
        let length = self.key.open_in_place(nonce, Aad::from(context), &mut buffer).ok()?.len();
        buffer.truncate(length);
        Some(buffer)
    }
}
