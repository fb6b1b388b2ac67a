//! A deterministic byte stream from a 32-byte seed.

use std::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha256};

/// A byte stream from a seed, by hashing it with a counter. As unpredictable as the seed.
pub struct Stream {
    seed: [u8; 32],
    block: [u8; 32],
    used: usize,
    counter: u64,
}

impl Stream {
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, block: [0; 32], used: 32, counter: 0 }
    }

    pub fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == self.block.len() {
                let mut hash = Sha256::new();
                hash.update(self.seed);
                hash.update(b"/stream/");
                hash.update(self.counter.to_be_bytes());
                self.block = hash.finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream(..)")
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes(self.array()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes(self.array()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Stream {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_does_not_depend_on_read_sizes() {
        let read = |seed: u8, pieces: &[usize]| {
            let mut stream = Stream::new([seed; 32]);
            let mut all = Vec::new();
            for &length in pieces {
                let mut piece = vec![0; length];
                stream.fill(&mut piece);
                all.extend(piece);
            }
            all
        };
        assert_eq!(read(1, &[100]), read(1, &[1, 40, 59]));
        assert_ne!(read(1, &[32]), read(2, &[32]));
        assert_eq!(format!("{:?}", Stream::new([7; 32])), "Stream(..)");
    }
}
