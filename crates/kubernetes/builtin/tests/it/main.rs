//! Tests of the public interface.

mod fuzz;
