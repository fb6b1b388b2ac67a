//! Data keys, and values sealed with them.
//!
//! A sealed value: format (1), kind of the key (1), length (1) and name of the key, length (2) and id of the key,
//! length (2) and wrapped data key, nonce (12), ciphertext and tag. Everything before the nonce is the same for all
//! values of a data key.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use capstan_store::{Cipher, CipherError};
use parking_lot::RwLock;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::config::{Algorithm, Configuration, Provider};
use crate::kms::{KmsError, Plugin};
use crate::local::LocalKey;
use crate::resources::Pattern;

const FORMAT: u8 = 1;
const AESGCM: u8 = 1;
const SECRETBOX: u8 = 2;
const KMS: u8 = 3;
const TAG: usize = 16;
const DATA_KEY: usize = 32;

/// Why encryption cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    #[error("the operating system has no randomness for a data key")]
    Random,
    #[error(transparent)]
    Kms(#[from] KmsError),
}

/// Encrypts and decrypts stored values as a configuration says.
pub struct Encryption {
    entries: Vec<WriteEntry>,
    keys: Vec<Key>,
    /// Data keys by the part of a sealed value before its nonce.
    opened: RwLock<HashMap<Box<[u8]>, Arc<LessSafeKey>>>,
}

struct WriteEntry {
    patterns: Vec<Pattern>,
    /// `None` if values are stored plain.
    writer: Option<RwLock<Arc<DataKey>>>,
    /// Index of the key that wraps the writer's data key.
    key: usize,
}

enum Key {
    Local(Box<LocalKey>),
    Kms(Arc<Plugin>),
}

/// A data key in use.
struct DataKey {
    prefix: Box<[u8]>,
    key: Arc<LessSafeKey>,
    /// Number of values sealed with it. A process never uses the data key of another.
    count: AtomicU64,
}

impl Encryption {
    /// Makes a data key for each entry. Blocks if a KMS plug-in is to wrap it.
    pub fn new(config: &Configuration) -> Result<Self, EncryptionError> {
        let mut keys = Vec::new();
        let mut entries = Vec::new();
        for entry in &config.entries {
            let first = keys.len();
            for provider in &entry.providers {
                match provider {
                    Provider::Identity => {}
                    Provider::Local { algorithm, keys: named } => keys.extend(
                        named
                            .iter()
                            .filter_map(|key| LocalKey::new(*algorithm, key))
                            .map(|key| Key::Local(Box::new(key))),
                    ),
                    Provider::Kms(config) => keys.push(Key::Kms(Plugin::new(config.clone()))),
                }
            }
            let writes = entry.providers.first().is_some_and(|first| !matches!(first, Provider::Identity));
            let writer = match keys.get(first).filter(|_| writes) {
                Some(key) => Some(RwLock::new(Arc::new(DataKey::new(key)?))),
                None => None,
            };
            entries.push(WriteEntry { patterns: entry.patterns.clone(), writer, key: first });
        }
        Ok(Self { entries, keys, opened: RwLock::default() })
    }

    /// Whether any value is encrypted.
    pub fn is_on(&self) -> bool {
        self.entries.iter().any(|entry| entry.writer.is_some())
    }

    /// Replaces data keys that are wrapped with an earlier key of a KMS. To be called from time to time; blocks.
    /// Returns whether there was one.
    pub fn refresh(&self) -> Result<bool, EncryptionError> {
        let mut is_replaced = false;
        for entry in &self.entries {
            let (Some(writer), Some(Key::Kms(plugin))) = (&entry.writer, self.keys.get(entry.key)) else {
                continue;
            };
            let id = plugin.current_key_id()?;
            let is_current =
                Prefix::parse(&writer.read().prefix).is_some_and(|(prefix, _)| prefix.id == id.as_bytes());
            if !is_current {
                *writer.write() = Arc::new(DataKey::new(&self.keys[entry.key])?);
                is_replaced = true;
            }
        }
        Ok(is_replaced)
    }

    /// Whether a KMS plug-in has a key.
    pub fn has_plugin(&self) -> bool {
        self.keys.iter().any(|key| matches!(key, Key::Kms(_)))
    }

    /// The key that encrypts new values of a bucket; `None` if they are stored plain.
    pub fn writes_with(&self, bucket: &str) -> Option<String> {
        let writer = self.entry(bucket)?.writer.as_ref()?.read().clone();
        Prefix::parse(&writer.prefix).map(|(prefix, _)| prefix.to_string())
    }

    /// The key that a value was sealed with, for people.
    pub fn key_of(sealed: &[u8]) -> Option<String> {
        Prefix::parse(sealed).map(|(prefix, _)| prefix.to_string())
    }

    fn entry(&self, bucket: &str) -> Option<&WriteEntry> {
        self.entries.iter().find(|entry| entry.patterns.iter().any(|pattern| pattern.covers(bucket)))
    }

    /// The entry of a bucket, or the first that encrypts for what is no object, such as keys in a backup.
    fn writer(&self, bucket: &str) -> Option<Arc<DataKey>> {
        let of_bucket = self.entry(bucket).and_then(|entry| entry.writer.as_ref());
        let writer = of_bucket.or_else(|| self.entries.iter().find_map(|entry| entry.writer.as_ref()))?;
        Some(writer.read().clone())
    }

    fn data_key(&self, prefix: &Prefix<'_>, bytes: &[u8]) -> Result<Arc<LessSafeKey>, CipherError> {
        if let Some(known) = self.opened.read().get(bytes) {
            return Ok(known.clone());
        }
        let mut refused = None;
        for key in &self.keys {
            match key.unwrap(prefix) {
                None => {}
                Some(Ok(plain)) => {
                    let key = data_key(&plain).ok_or_else(|| CipherError::Refused(prefix.to_string()))?;
                    let key = Arc::new(key);
                    self.opened.write().insert(bytes.into(), key.clone());
                    return Ok(key);
                }
                Some(Err(error)) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| CipherError::UnknownKey(prefix.to_string())))
    }
}

impl Cipher for Encryption {
    fn covers(&self, bucket: &str) -> bool {
        self.entry(bucket).is_some_and(|entry| entry.writer.is_some())
    }

    fn overhead(&self) -> usize {
        let prefixes = self.entries.iter().filter_map(|entry| entry.writer.as_ref());
        prefixes.map(|writer| writer.read().prefix.len()).max().unwrap_or(0) + NONCE_LEN + TAG
    }

    fn seal(&self, bucket: &str, context: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let Some(writer) = self.writer(bucket) else {
            unreachable!("the store only seals values of buckets that are covered");
        };
        let nonce = writer.next_nonce();
        out.reserve(writer.prefix.len() + NONCE_LEN + value.len() + TAG);
        out.extend_from_slice(&writer.prefix);
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(value);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = writer.key.seal_in_place_separate_tag(nonce, Aad::from(context), &mut out[start..]);
        let Ok(tag) = tag else { unreachable!("AES-GCM takes 64 GiB, and a value has at most 64 MiB") };
        out.extend_from_slice(tag.as_ref());
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let damaged = || CipherError::Refused("the key".to_owned());
        let (prefix, length) = Prefix::parse(sealed).ok_or_else(damaged)?;
        let key = self.data_key(&prefix, &sealed[..length])?;
        let (nonce, body) = sealed[length..].split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        let refused = |_| CipherError::Refused(prefix.to_string());
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(refused)?;
        let mut value = body.to_vec();
        let length = key.open_in_place(nonce, Aad::from(context), &mut value).map_err(refused)?.len();
        value.truncate(length);
        Ok(value)
    }

    fn is_current(&self, sealed: &[u8]) -> bool {
        let Some((found, _)) = Prefix::parse(sealed) else { return false };
        let writers = self.entries.iter().filter_map(|entry| entry.writer.as_ref());
        writers
            .map(|writer| writer.read().clone())
            .any(|writer| Prefix::parse(&writer.prefix).is_some_and(|(current, _)| current.same_key(&found)))
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

fn data_key(plain: &[u8]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, plain).ok().map(LessSafeKey::new)
}

impl DataKey {
    fn new(key: &Key) -> Result<Self, EncryptionError> {
        let mut plain = Zeroizing::new(vec![0; DATA_KEY]);
        SystemRandom::new().fill(&mut plain).map_err(|_| EncryptionError::Random)?;
        let prefix = key.wrap(&plain)?;
        let key = Arc::new(data_key(&plain).ok_or(EncryptionError::Random)?);
        Ok(Self { prefix: prefix.into(), key, count: AtomicU64::new(0) })
    }

    /// A counter, and randomness in case that a virtual machine is set back to a snapshot and counts again.
    fn next_nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        // The counter alone is unique.
        let _ = SystemRandom::new().fill(&mut nonce[8..]);
        nonce
    }
}

impl Key {
    /// The part before the nonce of values that are sealed with a data key.
    fn wrap(&self, data_key: &[u8]) -> Result<Vec<u8>, EncryptionError> {
        let mut prefix = Vec::new();
        let wrapped = match self {
            Self::Local(key) => {
                let kind = match key.algorithm {
                    Algorithm::AesGcm => AESGCM,
                    Algorithm::Secretbox => SECRETBOX,
                };
                put_key(&mut prefix, kind, &key.name, &key.fingerprint);
                key.wrap(&prefix, data_key).ok_or(EncryptionError::Random)?
            }
            Self::Kms(plugin) => {
                let (id, wrapped) = plugin.encrypt(data_key)?;
                put_key(&mut prefix, KMS, plugin.name(), id.as_bytes());
                wrapped
            }
        };
        // Plug-ins may answer with 33 kB; keys of the configuration take 60 bytes.
        prefix.extend_from_slice(&(wrapped.len() as u16).to_le_bytes());
        prefix.extend_from_slice(&wrapped);
        Ok(prefix)
    }

    /// The data key; `None` if another key has wrapped it.
    fn unwrap(&self, prefix: &Prefix<'_>) -> Option<Result<Zeroizing<Vec<u8>>, CipherError>> {
        match self {
            Self::Local(key) => {
                let kind = match key.algorithm {
                    Algorithm::AesGcm => AESGCM,
                    Algorithm::Secretbox => SECRETBOX,
                };
                if prefix.kind != kind || prefix.id != key.fingerprint {
                    return None;
                }
                let mut context = Vec::new();
                // The name may have been changed since; the key is known by its fingerprint.
                put_key(&mut context, kind, prefix.name, &key.fingerprint);
                Some(
                    key.unwrap(&context, prefix.wrapped)
                        .ok_or_else(|| CipherError::Refused(prefix.to_string())),
                )
            }
            Self::Kms(plugin) => {
                if prefix.kind != KMS || prefix.name != plugin.name() {
                    return None;
                }
                let id = str::from_utf8(prefix.id).ok()?;
                // A plug-in does not say whether a key is gone or its service is down.
                let unwrapped = plugin.decrypt(id, prefix.wrapped);
                Some(unwrapped.map_err(|error| CipherError::Unavailable(error.to_string())))
            }
        }
    }
}

fn put_key(out: &mut Vec<u8>, kind: u8, name: &str, id: &[u8]) {
    // Names have at most 200 bytes and ids at most 1 kB: the configuration and the plug-in's answer are checked.
    out.extend_from_slice(&[FORMAT, kind, name.len() as u8]);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(id.len() as u16).to_le_bytes());
    out.extend_from_slice(id);
}

/// The part of a sealed value before its nonce.
struct Prefix<'a> {
    kind: u8,
    name: &'a str,
    id: &'a [u8],
    wrapped: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// The prefix and its length.
    fn parse(sealed: &'a [u8]) -> Option<(Self, usize)> {
        let (head, rest) = sealed.split_at_checked(3)?;
        let [FORMAT, kind, name] = *head else { return None };
        let (name, rest) = rest.split_at_checked(name.into())?;
        let name = str::from_utf8(name).ok()?;
        let (id, rest) = sized(rest)?;
        let (wrapped, rest) = sized(rest)?;
        Some((Self { kind, name, id, wrapped }, sealed.len() - rest.len()))
    }

    fn same_key(&self, other: &Self) -> bool {
        (self.kind, self.id) == (other.kind, other.id)
    }
}

fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(u16::from_le_bytes([length[0], length[1]]).into())
}

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        if self.kind == KMS {
            return write!(f, "key {} of the KMS plug-in {name}", String::from_utf8_lossy(self.id));
        }
        let algorithm = if self.kind == SECRETBOX { "secretbox" } else { "aesgcm" };
        write!(f, "key {name} of {algorithm} (fingerprint ")?;
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{NamedKey, text};

    fn encryption(keys: &[(&str, u8)]) -> Encryption {
        let key = |(name, byte): &(&str, u8)| NamedKey {
            name: (*name).to_owned(),
            secret: Zeroizing::new(vec![*byte; 32]),
        };
        let keys: Vec<NamedKey> = keys.iter().map(key).collect();
        let text = text(&["secrets".to_owned()], &keys).unwrap();
        Encryption::new(&Configuration::parse(&text).unwrap()).unwrap()
    }

    fn seal(encryption: &Encryption, context: &[u8], value: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        encryption.seal("/secrets", context, value, &mut sealed);
        sealed
    }

    #[test]
    fn a_value_opens_with_its_key_and_its_context_only() {
        let one = encryption(&[("one", 1)]);
        let sealed = seal(&one, b"a", b"hunter2");
        assert!(!sealed.windows(7).any(|part| part == b"hunter2"));
        assert!(sealed.len() <= 7 + one.overhead(), "{} {}", sealed.len(), one.overhead());
        let again = encryption(&[("two", 2), ("renamed", 1)]);
        assert_eq!(again.open(b"a", &sealed).unwrap(), b"hunter2");
        assert!(matches!(again.open(b"b", &sealed), Err(CipherError::Refused(_))));
        let error = encryption(&[("one", 3)]).open(b"a", &sealed).unwrap_err();
        assert!(
            matches!(&error, CipherError::UnknownKey(key) if key.contains("key one of aesgcm")),
            "{error}"
        );
        assert!(one.is_current(&sealed) && !again.is_current(&sealed));
    }

    #[test]
    fn any_flipped_bit_and_any_missing_byte_are_noticed() {
        let encryption = encryption(&[("one", 1)]);
        let sealed = seal(&encryption, b"a", b"hunter2");
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(encryption.open(b"a", &flipped).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(encryption.open(b"a", &sealed[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn no_two_values_share_a_nonce_and_no_two_starts_a_data_key() {
        let encryption1 = encryption(&[("one", 1)]);
        let (a, b) = (seal(&encryption1, b"", b"x"), seal(&encryption1, b"", b"x"));
        let prefix = encryption1.overhead() - NONCE_LEN - TAG;
        assert_eq!(a[..prefix], b[..prefix]);
        assert_ne!(a[prefix..prefix + 8], b[prefix..prefix + 8]);
        let c = seal(&encryption(&[("one", 1)]), b"", b"x");
        assert_ne!(a[..prefix], c[..prefix]);
    }

    #[test]
    fn an_entry_with_identity_first_covers_nothing_and_still_reads() {
        let sealed = seal(&encryption(&[("one", 1)]), b"a", b"hunter2");
        let secret = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [1; 32]);
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [secrets]\n  providers:\n  - identity: {{}}\n  - aesgcm: {{keys: [{{name: one, secret: {secret}}}]}}\n"
        );
        let off = Encryption::new(&Configuration::parse(&text).unwrap()).unwrap();
        assert!(!off.covers("/secrets") && !off.is_on());
        assert_eq!(off.open(b"a", &sealed).unwrap(), b"hunter2");
    }
}
