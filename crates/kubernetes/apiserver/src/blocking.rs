//! Computation that takes long enough to keep other tasks waiting.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs a computation of milliseconds or more. Where there are several threads, another one takes over the tasks of
/// this one. Where there is only one, as in a simulation, nothing else can run anyway.
pub(crate) fn run<T>(compute: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(compute),
        _ => compute(),
    }
}
