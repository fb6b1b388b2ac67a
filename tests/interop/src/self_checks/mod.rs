//! Promises that no peer can check: durability, simulated faults, random input, older data.

pub mod cloudstack_faults;
pub mod crash;
pub mod fuzz;
pub mod older_data;
pub mod simulate;
