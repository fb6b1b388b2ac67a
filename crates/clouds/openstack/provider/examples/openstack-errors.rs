//! Runs the lifecycle of a cluster on a simulated OpenStack once for every request and class of HTTP errors, an expired
//! token included: `openstack-errors [PART/PARTS]`. One of 40 requests fails per run, so a run covers several.
#![expect(clippy::expect_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]
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

use anyhow::{Context, Result, ensure};
use errors::{Errors, STATUSES};
use mimalloc::MiMalloc;

/// As in the binary: simulation runs make mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Far enough apart that the cluster has got over one error before the next.
const EVERY: u32 = 40;

fn main() -> Result<()> {
    let part = std::env::args().nth(1).unwrap_or_else(|| "1/1".to_owned());
    let (part, parts) = part.split_once('/').context("PART/PARTS, such as 3/64")?;
    let (part, parts): (usize, usize) = (part.parse()?, parts.parse()?);
    ensure!((1..=parts).contains(&part), "{part} is not between 1 and {parts}");
    let all = (0..EVERY).flat_map(|first| (0..STATUSES.len()).map(move |turn| (first, turn)));
    let mut failed = 0;
    for (first, turn) in all.skip(part - 1).step_by(parts) {
        let errors = Errors { first, every: EVERY, turn };
        let report = capstan_harness::run(&errors::with(errors), 1, &[]);
        match &report.violation {
            None => println!("ok {errors:?}"),
            Some(_) => {
                failed += 1;
                println!("FAILED {errors:?}\n{}", report.transcript());
            }
        }
    }
    ensure!(failed == 0, "{failed} runs failed");
    Ok(())
}
