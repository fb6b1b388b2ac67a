//! Guarantees that no peer can check: durability, simulated faults, random input, older data.

pub mod attacks;
pub mod cloud_faults;
pub mod crash;
pub mod fuzz;
pub mod older_data;
pub mod simulate;

use anyhow::{Context, Result, ensure};

/// A part of a long suite: `3/8` is the third of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Counted from 1.
    pub one: u32,
    pub of: u32,
}

impl Part {
    pub fn parse(text: &str) -> Result<Self> {
        let (one, of) = text.split_once('/').context("a part is written as 3/8")?;
        let (one, of) = (one.parse()?, of.parse()?);
        ensure!(one >= 1 && one <= of, "parts are counted from 1 to {of}");
        Ok(Self { one, of })
    }

    /// Every `of`-th element: neighbours are similar and should be in different parts.
    pub fn take<T>(self, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        all.into_iter().skip(self.one as usize - 1).step_by(self.of as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!(Part::parse("3/8").unwrap(), Part { one: 3, of: 8 });
        for bad in ["0/4", "5/4", "3", "a/b"] {
            assert!(Part::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_are_disjoint_and_whole() {
        let mut all: Vec<u32> = (1..=3).flat_map(|one| Part { one, of: 3 }.take(0..10)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
