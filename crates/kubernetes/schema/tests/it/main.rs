//! Whatever clients send, nothing here panics, and what a schema accepts it keeps.

mod arbitrary;
mod robust;
