//! What a user does first: the README and the demonstration.

pub mod demo;
pub mod picture;
pub mod quick_start;
