//! The provider on a whole plane, against a simulated OpenStack that it meets on the wire only, in simulated time.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod apart;
mod balancers;
mod capacity;
mod check;
mod classes;
mod cloud;
mod console;
mod credentials;
mod doctor;
mod drift;
mod endpoints;
mod errors;
mod features;
mod images;
#[allow(dead_code, reason = "`examples/openstack-faults.rs` runs them")]
mod lifecycles;
mod machine_templates;
mod manifests;
mod orphans;
mod pools;
mod running;
mod services;
mod silent;
mod stories;
mod story;
mod templates;
mod wrong;

use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
