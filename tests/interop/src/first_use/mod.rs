//! What a user does first: the README and the demo.

pub mod demo;
pub mod picture;
pub mod quick_start;
