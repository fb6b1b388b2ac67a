//! The provider on a whole plane, against a simulated CloudStack that it meets on the wire only, in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod check;
mod checkers;
mod classes;
mod cloud;
mod domains;
mod drift;
mod expunge;
mod failures;
mod features;
mod hasty;
#[allow(dead_code, reason = "`examples/cloudstack-faults.rs` runs the rest of them")]
mod lifecycles;
mod manifests;
mod nics;
mod orders;
mod outlook;
mod protected;
mod quota;
mod removal;
mod routed;
mod routed_sites;
mod scenarios;
mod sharing;
mod sites;
mod ssh;
mod stories;
mod story;
mod takeover;
mod templates;
mod vpc;
mod wrong;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations, and take two fifths less time so.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
