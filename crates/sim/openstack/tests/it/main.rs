//! The simulator over its wire.

mod balancers;
mod faults;
mod guests;
mod identity;
mod networks;
mod servers;
mod world;
