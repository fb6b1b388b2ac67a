//! Randomness for keys: 32 bytes per reconcile, drawn before `decide` runs.

use capstan_x509::Stream;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::Error;

/// Randomness as part of the observed state: every secret that a decision generates is derived from it, so that the
/// decision stays a pure function.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed from fixed bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Derives an independent seed for one purpose.
    pub fn derive(&self, purpose: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(purpose.as_bytes());
        Self(hash.finalize().into())
    }

    /// An endless byte stream derived from the seed.
    pub fn stream(&self) -> Stream {
        Stream::new(self.0)
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// A source of seeds.
pub trait Keys: Send + Sync {
    /// A seed for an object's secrets. Deterministic sources derive it from `object`.
    fn seed(&self, object: &str) -> Result<Seed, Error>;
}

/// Seeds from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemKeys;

impl Keys for SystemKeys {
    fn seed(&self, _: &str) -> Result<Seed, Error> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Randomness)?;
        Ok(Seed(bytes))
    }
}

/// Seeds derived from one number: an object always gets the same seed, so a simulation that crashes and restarts
/// generates the same keys.
#[derive(Debug, Clone)]
pub struct SeededKeys(Seed);

impl SeededKeys {
    pub fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        Self(Seed(bytes))
    }
}

impl Keys for SeededKeys {
    fn seed(&self, object: &str) -> Result<Seed, Error> {
        Ok(self.0.derive(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_never_shown() {
        assert_eq!(format!("{:?}", Seed::new([7; 32])), "Seed(..)");
    }

    #[test]
    fn streams_differ_by_purpose_and_by_object() {
        let seed = SeededKeys::new(1).seed("a").expect("a seed");
        let read = |seed: &Seed| {
            let mut bytes = [0; 32];
            seed.stream().fill(&mut bytes);
            bytes
        };
        assert_eq!(read(&seed), read(&seed.clone()));
        assert_ne!(read(&seed), read(&seed.derive("ca")));
        assert_ne!(seed, SeededKeys::new(2).seed("a").expect("a seed"));
        assert_ne!(seed, SeededKeys::new(1).seed("b").expect("a seed"));
    }
}
