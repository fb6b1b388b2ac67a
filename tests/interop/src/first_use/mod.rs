//! What a user does first: the README and the demo.

pub mod bad_day;
pub mod demo;
pub mod mend;
pub mod picture;
pub mod quick_start;
