//! The next step of a control plane: what is out of date, which machine is added, removed or replaced, and whether the
//! control plane survives it.
//!
//! Pure: observed state in, answer out. `decide` turns the step into effects; `observe` asks an extension about its
//! machine.

mod in_place_candidate;
mod next_step;
mod placement;
mod preflight;
pub mod quorum;
pub mod remediation;
#[cfg(test)]
mod tests;
pub mod up_to_date;

pub use in_place_candidate::candidate;
pub use next_step::{Step, next_step};
