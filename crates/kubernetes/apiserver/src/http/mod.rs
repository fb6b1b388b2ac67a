//! HTTP: parsing of requests, bodies and query parameters.

pub mod body;
pub mod info;
pub mod options;
