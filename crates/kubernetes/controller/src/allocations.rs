//! Counts what a test allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count per thread: tests beside this one do not disturb it.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static COUNT: Cell<Allocations> = const { Cell::new(Allocations { calls: 0, bytes: 0 }) };
}

/// Bytes that a thread has allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocations {
    pub calls: usize,
    pub bytes: usize,
}

impl Allocations {
    /// What `work` allocates on this thread.
    pub fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let before = COUNT.get();
        let result = work();
        let after = COUNT.get();
        (Self { calls: after.calls - before.calls, bytes: after.bytes - before.bytes }, result)
    }

    fn note(bytes: usize) {
        // A thread that ends may still allocate, when its count is gone.
        let _ = COUNT.try_with(|count| {
            let Self { calls, bytes: sum } = count.get();
            count.set(Self { calls: calls + 1, bytes: sum + bytes });
        });
    }
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Allocations::note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Allocations::note(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
