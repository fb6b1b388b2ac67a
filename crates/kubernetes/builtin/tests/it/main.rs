//! Claims about the crate as others use it.

mod fuzz;
