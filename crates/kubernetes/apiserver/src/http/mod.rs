//! The HTTP edge: taking requests apart, reading bodies, writing answers.

pub mod body;
pub mod info;
pub mod options;
