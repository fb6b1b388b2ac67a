//! The history window: the revision up to which history can be dropped.

use std::{collections::VecDeque, time::Duration};

/// Times and sizes of recent commits, in coarse marks to stay small: a mark covers at least 1/256 of the age or of
/// the bytes.
pub(crate) struct Window {
    revisions: u64,
    age: u64,
    bytes: u64,
    /// Bytes committed since the start.
    total: u64,
    marks: VecDeque<Mark>,
}

struct Mark {
    opened: u64,
    /// Bytes committed before the mark.
    before: u64,
    /// Time of the last commit of the mark.
    time: u64,
    /// Revision of the last commit of the mark.
    revision: u64,
    /// Bytes committed up to and including the mark.
    total: u64,
}

impl Window {
    pub fn new(revisions: u64, age: Duration, bytes: u64) -> Self {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Self { revisions, age, bytes, total: 0, marks: VecDeque::new() }
    }

    /// Records that `revision` was committed at `time` (milliseconds) with this many bytes.
    pub fn committed(&mut self, revision: u64, time: u64, bytes: u64) {
        let before = self.total;
        self.total = before.saturating_add(bytes);
        let mut time = time;
        if let Some(last) = self.marks.back_mut() {
            // If the clock is set back, history must not look older than it is.
            time = time.max(last.time);
            if time - last.opened < self.age / 256 && self.total - last.before < self.bytes / 256 {
                (last.time, last.revision, last.total) = (time, revision, self.total);
                return;
            }
        }
        self.marks.push_back(Mark { opened: time, before, time, revision, total: self.total });
    }

    /// The newest revision whose events may be dropped at `now`, given the store's revision.
    pub fn floor(&mut self, current: u64, now: u64) -> u64 {
        let mut floor = current.saturating_sub(self.revisions);
        let oldest = now.saturating_sub(self.age);
        while let Some(mark) = self.marks.front() {
            if mark.time < oldest || self.total - mark.total > self.bytes {
                floor = floor.max(mark.revision);
            } else if mark.revision > floor {
                break;
            }
            self.marks.pop_front();
        }
        floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_ends_by_count_or_by_age_whichever_is_less() {
        let mut window = Window::new(10, Duration::from_millis(1000), u64::MAX);
        for revision in 1..=20 {
            window.committed(revision, revision * 100, 1);
        }
        assert_eq!(window.floor(20, 2000), 10, "the last ten");
        assert_eq!(window.floor(20, 2500), 14, "1,400 ms is older than a second at 2,500 ms");
        assert_eq!(window.floor(20, 9000), 20, "all of it is old");
    }

    #[test]
    fn a_clock_set_back_keeps_more_history_not_less() {
        let mut window = Window::new(1000, Duration::from_millis(1000), u64::MAX);
        window.committed(1, 5000, 1);
        window.committed(2, 100, 1);
        assert_eq!(window.floor(2, 5500), 0);
        assert_eq!(window.floor(2, 7000), 2);
    }

    #[test]
    fn marks_stay_few() {
        let mut window = Window::new(1_000_000, Duration::from_secs(3600), 100_000_000);
        for revision in 1..=100_000 {
            window.committed(revision, revision * 36, 1_000);
        }
        assert!(window.marks.len() <= 2 * 257, "{}", window.marks.len());
    }

    #[test]
    fn history_ends_by_size_too() {
        let mut window = Window::new(1000, Duration::from_secs(3600), 1_000);
        for revision in 1..=20 {
            window.committed(revision, 0, 100);
        }
        assert_eq!(window.floor(20, 0), 9, "the last thousand bytes, and what lies across their edge");
        window.committed(21, 0, 5_000);
        assert_eq!(window.floor(21, 0), 20, "the last change stays, however large");
    }
}
