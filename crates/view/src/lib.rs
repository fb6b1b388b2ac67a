//! What people see of a cluster: a tree of its parts with the healthy ones collapsed, and the chains of causes from the
//! cluster down to what blocks it.
//!
//! ```text
//! objects as the API serves them ─▶ Part ─▶ Tree ─┬─▶ fold ─▶ lines of text
//!                                        │        └─▶ why  ─▶ what blocks, each with its chain of causes
//!                                        └─▶ table: objects of one kind
//! events ─▶ lines of text
//! ```
//!
//! Pure: input is API objects, output is text. Nothing here knows a provider: owner references give the structure,
//! conditions give the state. No text of an object reaches a terminal with control characters.

mod add_on;
mod advice;
mod estimate;
mod events;
mod fit;
mod fold;
mod part;
mod printable;
mod problem;
mod progress;
mod table;
mod text;
mod topology;
mod tree;
mod why;

pub use advice::Advice;
pub use estimate::Experience;
pub use events::{about, event_line, seen};
pub use fit::draw_within;
pub use fold::{Row, rows};
pub use part::{Part, State};
pub use printable::printable;
pub use problem::Problem;
pub use progress::{ProgressSnapshot, progress};
pub use table::{Columns, table};
pub use text::{Paint, age, clipped, draw, full_line, one_line};
pub use topology::Topology;
pub use tree::Tree;
pub use why::{Blocker, Cause, Link, Why, why};
