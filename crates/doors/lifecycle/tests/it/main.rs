//! The lifecycle API on a whole plane, against a simulated CloudStack that it meets on the wire only, in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod addresses;
mod chart;
#[path = "../../../../clouds/cloudstack/provider/tests/it/check.rs"]
mod check;
mod cloud;
mod keys;
#[allow(dead_code, reason = "`examples/lifecycle-faults.rs` runs the rest of them")]
mod lifecycles;
mod manifests;
mod mirrors;
mod networks;
mod properties;
mod rollouts;
mod stories;
mod story;
mod waiting;
mod wrong;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations, and take two fifths less time so.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
