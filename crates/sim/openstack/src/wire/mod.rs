//! HTTP as the services read and write it.

mod call;
mod python;
mod reply;
mod schema;

pub(crate) use call::{Call, Caller, Handled};
pub(crate) use python::{repr, text};
pub(crate) use reply::{Body, Fail, Reply};
pub(crate) use schema::validate;
