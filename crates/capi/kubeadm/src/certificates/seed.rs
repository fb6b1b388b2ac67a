//! Where keys come from: thirty-two bytes per reconcile, drawn before anything is decided.

use capstan_x509::Stream;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::Error;

/// Randomness as an observed fact: everything secret that a decision makes is expanded from one of these, so
/// that the decision itself stays a function of what was observed.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed of known bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A seed of its own for one purpose.
    pub fn derive(&self, purpose: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(purpose.as_bytes());
        Self(hash.finalize().into())
    }

    /// The bytes that follow from this seed, without end.
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
    /// A seed for an object's secrets. `object` tells objects apart where the source is not random.
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

/// Seeds that follow from one seed: an object gets the same one however often and in whatever order it asks, so
/// a simulation that crashes and starts again makes the keys it made before.
#[derive(Debug, Clone)]
pub struct SeededKeys(Seed);

impl SeededKeys {
    /// A source that follows from a number.
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
