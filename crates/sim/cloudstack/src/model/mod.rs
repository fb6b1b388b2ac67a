//! The state of a cloud: plain data, no behaviour.

pub(crate) mod compute;
pub(crate) mod identity;
pub(crate) mod network;
pub(crate) mod place;
pub(crate) mod table;
