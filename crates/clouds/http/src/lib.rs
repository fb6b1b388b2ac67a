//! HTTP to the API of a cloud, as every cloud's client needs it.
//!
//! ```text
//! client ── dyn Transport ─┬─ Https: TLS by Trust, connections kept, answers bounded
//!                          └─ a server in the same process
//! ```
//!
//! Nothing here knows a cloud, its requests or its errors.

#![warn(missing_docs)]

mod https;
mod secret;
mod transport;
mod trust;

pub use https::{Https, HttpsOptions};
pub use secret::{REDACTED, Secret, exposed, redact};
pub use transport::{Transport, TransportError};
pub use trust::{Trust, TrustError};
