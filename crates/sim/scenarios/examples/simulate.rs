//! Runs the scenarios with faults. `cargo xtask simulate` runs this program.

use mimalloc::MiMalloc;

/// As in the binary: a third of the CPU time of a run was spent in small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> anyhow::Result<()> {
    capstan_faults::main(capstan_scenarios::all().into_iter().map(|scenario| (scenario.name, scenario)))
}
