//! Runs lifecycles of clusters of the lifecycle API on a simulated CloudStack with faults. `cargo xtask lifecycle-faults` runs
//! this program.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "the tests use the rest of these modules")]

#[path = "../tests/it/chart.rs"]
mod chart;
#[path = "../../../clouds/cloudstack/provider/tests/it/check.rs"]
mod check;
#[path = "../tests/it/cloud.rs"]
mod cloud;
#[path = "../tests/it/lifecycles.rs"]
mod lifecycles;
#[path = "../tests/it/manifests.rs"]
mod manifests;
#[path = "../tests/it/properties.rs"]
mod properties;
#[path = "../tests/it/story.rs"]
mod story;
#[path = "../tests/it/waiting.rs"]
mod waiting;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations, and take two fifths less time so.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> anyhow::Result<()> {
    capstan_faults::main(lifecycles::all())
}
