//! The controller runtime. A controller observes and decides; everything else is done here.
//!
//! ```text
//!            list + watch                    wake                     one key at a time
//!  API ───────────────────▶ Cache<T> ─────────────────▶ WorkQueue ─────────────────────▶ reconcile
//!   ▲                          ▲  ▲                                                        │
//!   │                          │  └──────────────── View ◀──────────── observe ◀───────────┤ observe
//!   │       write-through      │                                          │                │
//!   │    ┌─────────────────────┘                                          ▼                │
//!   │    │                                                   decide (pure): Look → Decision│ decide
//!   │    │                                                                │                │
//!   └─ Writer ◀── own object, journal, effects in order, status last ◀────┴────────────────┘ act
//! ```
//!
//! [`Controller`] is what a controller implements; [`Decision`] is all it can ask for. [`Runtime`] runs any
//! number of them on one set of caches against one API server: an embedded one in the same process, or any
//! kube-apiserver. Nothing here knows Cluster API. [`Clusters`] reaches the
//! clusters that are managed, [`operation`] says how far something is, [`Candidate`] stands for leadership.
//!
//! Rules kept here so that no controller has to: a decision never sees state older than our own last
//! acknowledged write (answers of writes go straight into the cache); calls that create or destroy outside the
//! API are journalled before they are made; status is written once per reconcile and only if it changed;
//! other controllers' conditions are never touched; a finalizer does not go while a call may still have an effect.

#[cfg(test)]
mod allocations;
mod cache;
mod client;
mod clusters;
mod code;
mod controller;
mod decision;
mod election;
mod events;
mod kind;
mod look;
mod metrics;
pub mod operation;
mod queue;
mod reconcile;
mod remote;
mod runtime;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod view;
mod watches;
mod worker;
mod workload;
mod writer;

pub use cache::{Cache, Caches, Change, Dynamic};
pub use capstan_env::Env;
pub use client::{
    ApiError, Body, Budget, Client, Deletion, EffectOf, Events, Gate, GateVerdict, Limit, LimitExceeded,
    Limits, List, ListOptions, LocalServer, Patch, Propagation, Reply, ServerEvent, Share, Sizes, Times,
    Transport, TransportError, WatchEvent, WatchStream, WatchedObject,
};
pub use clusters::{Clusters, KubeconfigOf};
pub use code::{Code, Entry as CodeEntry, Fault, catalogue, code_in};
pub use controller::{Call, Controller, Error, NoCall, ObserveError, Outcome, Resolution};
pub use decision::{Decision, Effect, Need, Note, NoteKind, Planned, Wait};
pub use election::{Candidate, Election};
pub use kind::{KindName, ObjectRef};
pub use look::{Concluded, Failure, Intent, Look};
pub use metrics::{Metrics, QueueMetrics};
pub use queue::{Backoff, Priority, Wake, WorkQueue};
pub use reconcile::journal::{INTENTS, has_open_intents};
pub use reconcile::settled::NotSettled;
pub use remote::{
    Access, Authorization, CredentialPlugin, Dial, KubeconfigError, PluginVariable, Remote, TcpDial,
};
pub use runtime::{Options, Runtime};
pub use trace::TARGET as TRACE_TARGET;
pub use view::View;
pub use watches::{GATHER, Watches};
pub use worker::off_worker;
pub use workload::{Health, Stream, UNREACHABLE, WorkloadError, Workloads};
