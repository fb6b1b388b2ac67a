//! Computation that takes long enough to keep other tasks waiting.

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs a computation of milliseconds or more. Where there are several threads, another one takes over the tasks of
/// this one. Where there is only one, as in a simulation, nothing else can run anyway.
pub(crate) fn run<T>(compute: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(compute),
        _ => compute(),
    }
}

/// Validation of an object with fewer values does not keep other tasks waiting.
const MANY_VALUES: usize = 512;

/// Runs a computation whose time grows with the object, on this thread if the object is small.
pub(crate) fn run_for<T>(object: &Value, compute: impl FnOnce() -> T) -> T {
    let mut left = MANY_VALUES;
    if fits(object, &mut left) { compute() } else { run(compute) }
}

/// The object has at most as many values as are `left`. Looks at no more than these.
fn fits(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(fields) => fields.values().all(|field| fits(field, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn large_objects_are_found_without_looking_at_all_of_them() {
        for (items, small) in [(0, true), (MANY_VALUES - 2, true), (MANY_VALUES - 1, false), (100_000, false)]
        {
            let object = json!({"list": vec![1; items]});
            let mut left = MANY_VALUES;
            assert_eq!(fits(&object, &mut left), small, "{items}");
        }
    }

    #[test]
    fn validation_of_a_large_object_does_not_keep_other_tasks_waiting() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let validation = async {
            let (sender, other_task) = std::sync::mpsc::channel();
            run_for(&json!(vec![1; MANY_VALUES]), || {
                tokio::spawn(async move { sender.send(()) });
                other_task.recv_timeout(std::time::Duration::from_secs(30)).is_ok()
            })
        };
        assert!(runtime.block_on(runtime.spawn(validation)).expect("no panic"));
    }
}
