//! The guarantees of the store, one test each.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap in a test helper fails the test")]

mod support;

mod backups;
mod crashes;
mod damage;
mod faults;
mod fuzz;
mod model;
mod real;
mod releases;
mod rounds;
mod sealing;
mod watches;
mod writes;
