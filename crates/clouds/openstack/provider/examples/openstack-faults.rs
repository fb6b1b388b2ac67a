//! Runs lifecycles of clusters on a simulated OpenStack with faults. `cargo xtask openstack-faults` runs this program.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "the tests use the rest of these modules")]

#[path = "../tests/it/check.rs"]
mod check;
#[path = "../tests/it/cloud.rs"]
mod cloud;
#[path = "../tests/it/errors.rs"]
mod errors;
#[path = "../tests/it/lifecycles.rs"]
mod lifecycles;
#[path = "../tests/it/manifests.rs"]
mod manifests;
#[path = "../tests/it/story.rs"]
mod story;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> anyhow::Result<()> {
    capstan_faults::main([
        ("brief", lifecycles::brief()),
        ("short", lifecycles::short()),
        ("whole", lifecycles::whole()),
    ])
}
