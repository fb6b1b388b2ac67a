//! How far back history reaches: which revision is old enough to be forgotten.

use std::{collections::VecDeque, time::Duration};

/// The times of recent commits, coarse enough to stay small: a mark covers at least 1/256 of the age.
pub(crate) struct Window {
    revisions: u64,
    age: u64,
    grain: u64,
    marks: VecDeque<Mark>,
}

struct Mark {
    opened: u64,
    /// Time of the last commit the mark covers.
    time: u64,
    /// Revision of the last commit the mark covers.
    revision: u64,
}

impl Window {
    pub fn new(revisions: u64, age: Duration) -> Self {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Self { revisions, age, grain: age / 256, marks: VecDeque::new() }
    }

    /// Records that `revision` was committed at `time` (milliseconds).
    pub fn committed(&mut self, revision: u64, time: u64) {
        if let Some(last) = self.marks.back_mut() {
            // A clock set back must not make history look older than it is.
            let time = time.max(last.time);
            if time - last.opened < self.grain {
                (last.time, last.revision) = (time, revision);
                return;
            }
            self.marks.push_back(Mark { opened: time, time, revision });
        } else {
            self.marks.push_back(Mark { opened: time, time, revision });
        }
    }

    /// The newest revision whose events may be forgotten at `now`, given the store's revision.
    pub fn floor(&mut self, current: u64, now: u64) -> u64 {
        let mut floor = current.saturating_sub(self.revisions);
        let oldest = now.saturating_sub(self.age);
        while let Some(mark) = self.marks.front() {
            if mark.time < oldest {
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
        let mut window = Window::new(10, Duration::from_millis(1000));
        for revision in 1..=20 {
            window.committed(revision, revision * 100);
        }
        assert_eq!(window.floor(20, 2000), 10, "the last ten");
        assert_eq!(window.floor(20, 2500), 14, "1,400 ms is older than a second at 2,500 ms");
        assert_eq!(window.floor(20, 9000), 20, "all of it is old");
    }

    #[test]
    fn a_clock_set_back_keeps_more_history_not_less() {
        let mut window = Window::new(1000, Duration::from_millis(1000));
        window.committed(1, 5000);
        window.committed(2, 100);
        assert_eq!(window.floor(2, 5500), 0);
        assert_eq!(window.floor(2, 7000), 2);
    }

    #[test]
    fn marks_stay_few() {
        let mut window = Window::new(1_000_000, Duration::from_secs(3600));
        for revision in 1..=100_000 {
            window.committed(revision, revision * 36);
        }
        assert!(window.marks.len() <= 257, "{}", window.marks.len());
    }
}
