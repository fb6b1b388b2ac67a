//! What people see of a cluster: a tree of its parts with the healthy ones folded away, and the one chain of causes
//! from what was asked for to what stands in the way.
//!
//! ```text
//! objects as the API serves them ─▶ Part ─▶ Tree ─┬─▶ fold ─▶ lines of text
//!                                        │        └─▶ why  ─▶ a chain, and the fact that blocks
//!                                        └─▶ table: objects of one kind
//! events ─▶ lines of text
//! ```
//!
//! Pure: whoever has the objects (the command line, the dashboard) has the picture. Nothing here knows a provider: what
//! belongs where is said by owner references, what is wrong by conditions.

mod events;
mod fold;
mod part;
mod progress;
mod table;
mod text;
mod tree;
mod why;

pub use events::{about, event_line, seen};
pub use fold::{Row, rows};
pub use part::{Part, Standing};
pub use progress::{Facts, progress};
pub use table::{Columns, table};
pub use text::{Paint, age, clipped, draw, one_line, whole};
pub use tree::Tree;
pub use why::{Advice, Cause, Link, Why, why};
