//! Runs lifecycles of clusters on a simulated CloudStack with faults. `cargo xtask cloudstack-faults` runs this program.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "the tests use the rest of these modules")]

#[path = "../tests/it/check.rs"]
mod check;
#[path = "../tests/it/cloud.rs"]
mod cloud;
#[path = "../tests/it/lifecycles.rs"]
mod lifecycles;
#[path = "../tests/it/manifests.rs"]
mod manifests;
#[path = "../tests/it/routed_sites.rs"]
mod routed_sites;
#[path = "../tests/it/sites.rs"]
mod sites;
#[path = "../tests/it/story.rs"]
mod story;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations, and take two fifths less time so.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> anyhow::Result<()> {
    capstan_faults::main(lifecycles::all())
}
