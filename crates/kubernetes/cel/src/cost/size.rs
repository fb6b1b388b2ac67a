//! Ranges of sizes and costs with saturating arithmetic.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const ZERO: Self = Self::fixed(0);
    pub(super) const ONE: Self = Self::fixed(1);
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn scale(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scale(value: u64, factor: f64) -> u64 {
    let float = value as f64;
    if float > 0.0 && factor > 0.0 && float > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    let scaled = (float * factor).ceil();
    if scaled >= 18_446_744_073_709_551_616.0 { u64::MAX } else { scaled as u64 }
}
