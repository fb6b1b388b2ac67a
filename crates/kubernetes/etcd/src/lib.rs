//! Membership of an etcd cluster: the few calls that manage it, as client and as server.
//!
//! ```text
//! Client ─ question ─ gRPC over HTTP/2 [over TLS] over any stream ─ serve ─ Service
//! ```
//!
//! Whoever manages a control plane asks five questions of its etcd: who the members are, how one of them is, whether
//! an alarm is raised, and to drop a member or to move the leader. Both sides take a stream that somebody else
//! connected, because etcd is reached through ports of Pods and, in a simulation, without any socket. A connection
//! that broke stays broken: nothing here dials again, and nothing runs once client and server are dropped.

mod answer;
mod client;
mod error;
mod frame;
mod server;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

pub use answer::{Alarm, AlarmKind, Answer, Header, Member, Status};
pub use client::{Client, DEADLINE};
pub use error::{Code, Error, Refusal};
pub use server::{Service, serve};
