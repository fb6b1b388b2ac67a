//! Stack space for deep recursion.

use std::io;
use std::thread;

/// Enough for expressions at every nesting limit, in unoptimized builds. Only used pages take memory.
const DEEP_STACK: usize = 64 * 1024 * 1024;

/// Runs `work` here, or on a thread with a large stack if it may recurse deeply. Expressions come from clients; only
/// contrived ones need the thread. Fails if the thread cannot be started.
///
/// # Errors
/// If the thread cannot be started.
pub fn run<T: Send>(deep: bool, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if !deep {
        return Ok(work());
    }
    thread::scope(|scope| {
        let spawned = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, work)?;
        match spawned.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
