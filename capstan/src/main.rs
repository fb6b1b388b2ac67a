//! `capstan`: a Cluster API management plane in one binary.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    capstan::run(capstan::providers())
}
