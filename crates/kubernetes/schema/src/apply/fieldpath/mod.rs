//! Paths and sets of paths, and their JSON form in `managedFields` (`FieldsV1`).

mod element;
mod fields_v1;
mod set;
pub(crate) mod value;

pub use element::{Path, PathElement, PathText};
pub use fields_v1::FieldsError;
pub use set::Set;
