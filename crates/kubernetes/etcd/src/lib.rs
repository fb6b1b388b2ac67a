//! The membership calls of etcd, as client and as server.
//!
//! ```text
//! Client ─ request ─ gRPC over HTTP/2 [over TLS] over any stream ─ serve ─ Service
//! ```
//!
//! A control plane manager needs five calls: list members, status, list alarms, remove a member, move the leader.
//! Both sides take an existing stream, because etcd is reached by port forwarding and, in simulations, without a
//! socket. A broken connection stays broken: nothing here reconnects, and nothing runs after client and server are
//! dropped.

mod answer;
mod channel;
mod client;
mod error;
mod frame;
mod server;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

pub use answer::{Alarm, AlarmKind, Answer, Header, Member, Status};
pub use channel::Channel;
pub use client::{Client, DEADLINE};
pub use error::{Code, Error, Refusal};
pub use server::{Service, serve};
