//! Go's `math/rand`, to reproduce recorded random orders.
//!
//! The 607 start values of the generator are read from the installed Go tree.

use std::process::Command;

use anyhow::{Context, Result, bail};

const LENGTH: usize = 607;
const TAP: usize = 273;
const MODULUS: i64 = i32::MAX as i64;

/// The start values of Go's additive generator.
pub struct StartValues(Vec<i64>);

impl StartValues {
    /// Reads the table from Go's source.
    pub fn of_installed_go() -> Result<Self> {
        let output = Command::new("go").args(["env", "GOROOT"]).output().context("run go env GOROOT")?;
        let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let path = format!("{root}/src/math/rand/rng.go");
        let source = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        Self::parse(&source).with_context(|| path)
    }

    fn parse(source: &str) -> Result<Self> {
        let (_, table) = source.split_once("rngCooked [rngLen]int64").context("no table of start values")?;
        let (_, table) = table.split_once('{').context("no table of start values")?;
        let (table, _) = table.split_once('}').context("the table has no end")?;
        let values: Vec<i64> = table
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if values.len() != LENGTH {
            bail!("{} start values instead of {LENGTH}", values.len());
        }
        Ok(Self(values))
    }
}

/// `rand.New(rand.NewSource(seed))`.
pub struct GoRand {
    tap: usize,
    feed: usize,
    register: Vec<i64>,
}

impl GoRand {
    pub fn new(start: &StartValues, seed: i64) -> Self {
        let mut x = match seed.rem_euclid(MODULUS) {
            0 => 89_482_311,
            seed => seed,
        };
        let mut next = || {
            x = x * 48_271 % MODULUS;
            x
        };
        for _ in 0..20 {
            next();
        }
        let register = start.0.iter().map(|value| (next() << 40) ^ (next() << 20) ^ next() ^ value).collect();
        Self { tap: 0, feed: LENGTH - TAP, register }
    }

    fn int31(&mut self) -> u32 {
        self.tap = self.tap.checked_sub(1).unwrap_or(LENGTH - 1);
        self.feed = self.feed.checked_sub(1).unwrap_or(LENGTH - 1);
        let sum = self.register[self.feed].wrapping_add(self.register[self.tap]);
        self.register[self.feed] = sum;
        ((sum.cast_unsigned() & (u64::MAX >> 1)) >> 32) as u32
    }

    /// `Intn`: a number below `n`. `n` must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u32;
        if n.is_power_of_two() {
            return (self.int31() & (n - 1)) as usize;
        }
        let largest = (1 << 31) - 1 - (1 << 31) % n;
        loop {
            let value = self.int31();
            if value <= largest {
                return (value % n) as usize;
            }
        }
    }
}
