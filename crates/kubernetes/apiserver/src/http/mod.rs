//! HTTP: parsing of requests, bodies and query parameters.

pub mod body;
pub mod info;
pub(crate) mod names;
pub mod options;
