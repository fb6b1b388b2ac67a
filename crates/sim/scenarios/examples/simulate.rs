//! Runs the scenarios with faults. `cargo xtask simulate` runs this program.

use capstan_faults::Named;
use mimalloc::MiMalloc;

/// As in the binary: a third of the CPU time of a run was spent in small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> anyhow::Result<()> {
    let scenarios = capstan_scenarios::all().into_iter();
    capstan_faults::main(scenarios.map(|scenario| Named { name: scenario.name, scenario }).collect())
}
