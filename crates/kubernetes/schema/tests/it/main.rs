//! Tests of the public API.

mod fuzz;
