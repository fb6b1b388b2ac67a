//! Room for deep recursion.

/// Enough for expressions at every nesting limit, in unoptimized builds.
const DEEP_STACK: usize = 256 * 1024 * 1024;

/// Runs `work` here, or on a thread with a deep stack if it may recurse deeply. Expressions come from
/// clients; only contrived ones take the thread.
pub(crate) fn run<T: Send>(deep: bool, work: impl FnOnce() -> T + Send) -> T {
    if !deep {
        return work();
    }
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, work);
        match spawned {
            Ok(thread) => match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            // Without a thread there is nothing left but to fail as the allocator would.
            Err(error) => std::panic::resume_unwind(Box::new(error.to_string())),
        }
    })
}
