//! The tree as lines of text.

use capstan_object::Time;
use jiff::{SignedDuration, Timestamp};

use crate::printable::{in_line, is_unprintable};
use crate::{Experience, Part, Row, State, Tree, progress, rows, topology};

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// For terminals.
    Colours,
    /// For files and pipes, and where `NO_COLOR` is set.
    Plain,
}

/// Longest message beside a part; `-o yaml` has all of it.
const MESSAGE: usize = 160;

/// Draws a tree as of `now`; with `all`, nothing is collapsed.
pub fn draw(tree: &Tree, all: bool, now: Timestamp, paint: Paint) -> String {
    let rows = drawn_rows(tree, all, now, paint).into_iter().map(|(_, line)| line);
    rows.chain(topology::lines(&tree.part))
        .chain(operation_lines(tree, now, paint))
        .map(|line| line + "\n")
        .collect()
}

/// The rows of a tree with their lines.
pub(crate) fn drawn_rows(tree: &Tree, all: bool, now: Timestamp, paint: Paint) -> Vec<(Row<'_>, String)> {
    let rows = rows(tree, all);
    let left: Vec<String> = rows.iter().map(|row| format!("{}{}", branch(row), title(row))).collect();
    let width = left.iter().map(|text| text.chars().count()).max().unwrap_or_default();
    let line = |row: &Row<'_>, left: &str| {
        let gap = " ".repeat(width + 2 - left.chars().count());
        format!("{left}{gap}{}", beside(row, now, paint)).trim_end().to_owned()
    };
    let lines: Vec<String> = rows.iter().zip(&left).map(|(row, left)| line(row, left)).collect();
    rows.into_iter().zip(lines).collect()
}

/// The progress of the current operation.
pub(crate) fn operation_lines(tree: &Tree, now: Timestamp, paint: Paint) -> Vec<String> {
    let part = &tree.part;
    let current = part.operation.as_ref().filter(|operation| !operation.is_over());
    current
        .map(|operation| {
            let experience = Experience { history: &part.history, planned: part.planned };
            progress(operation, &experience, &part.conditions, now, paint)
        })
        .unwrap_or_default()
}

/// A line cut to a visible width; colour codes have no width and are kept.
pub fn clipped(line: &str, width: usize) -> String {
    let mut text = String::new();
    let mut room = width;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            text.push(character);
            for part in characters.by_ref() {
                text.push(part);
                if part.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if room > 0 {
            room -= 1;
            text.push(character);
        }
    }
    text
}

/// How long ago, such as `12s`, `4m10s`, `3h`, `2d`.
pub fn age(since: Time, now: Timestamp) -> String {
    span(now.duration_since(since.timestamp()))
}

pub(crate) fn span(length: SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => format!("{}m{}s", seconds / 60, seconds % 60),
        600..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn branch(row: &Row<'_>) -> String {
    let Some((own, above)) = row.more.split_last() else { return String::new() };
    let mut text: String = above.iter().map(|more| if *more { "│  " } else { "   " }).collect();
    text.push_str(if *own { "├─ " } else { "└─ " });
    text
}

fn title(row: &Row<'_>) -> String {
    match row.parts.as_slice() {
        [part] => in_line(&part.title()).into_owned(),
        parts => format!("{} × {}", parts.len(), in_line(&parts[0].kind)),
    }
}

fn beside(row: &Row<'_>, now: Timestamp, paint: Paint) -> String {
    let part = row.parts[0];
    let mut words = vec![coloured(part.state(), &state_word(part), paint)];
    if row.parts.len() > 1 {
        let names: Vec<&str> = row.parts.iter().map(|part| part.name.as_str()).collect();
        let same = if part.state() <= State::NoConditions { "" } else { "same problem: " };
        words.push(one_line(&format!("{same}{}", names.join(", "))));
        return words.join("  ");
    }
    if let Some((ready, desired)) = part.replicas {
        words.push(format!("{ready}/{desired}"));
    }
    words.extend(part.version.as_deref().map(|version| in_line(version).into_owned()));
    words.extend(part.created.map(|created| age(created, now)));
    if part.state() != State::Healthy
        && let Some(condition) = part.explaining_condition()
    {
        let since = age(condition.last_transition_time, now);
        let message = if condition.message.is_empty() { &condition.reason } else { &condition.message };
        words.push(format!("{}: {} (since {since})", in_line(&condition.kind), one_line(message)));
    }
    words.join("  ")
}

pub(crate) fn state_word(part: &Part) -> String {
    match part.state() {
        State::Healthy => part.summary().map(|summary| summary.kind.clone()).unwrap_or_default(),
        State::NoConditions => "-".to_owned(),
        State::Paused => "Paused".to_owned(),
        State::Waiting => {
            let upgrade = part.topology_in_progress().map(|_| "Upgrading");
            let change = || part.change_in_progress().map(|change| change.kind.as_str());
            upgrade.or_else(change).unwrap_or("Waiting").to_owned()
        }
        State::Deleting => "Deleting".to_owned(),
        State::Failing => "Failing".to_owned(),
    }
}

pub(crate) fn coloured(state: State, text: &str, paint: Paint) -> String {
    let colour = match state {
        State::Healthy => 32,
        State::NoConditions | State::Paused => 90,
        State::Waiting | State::Deleting => 33,
        State::Failing => 31,
    };
    let text = in_line(text);
    match paint {
        Paint::Colours => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        Paint::Plain => text.into_owned(),
    }
}

/// One line of bounded length, without control characters: messages can come from anywhere. Items of a list, as
/// conditions have them, are separated by semicolons.
pub fn one_line(text: &str) -> String {
    within(text, MESSAGE)
}

/// One line like [`one_line`], with room for a long message.
pub fn full_line(text: &str) -> String {
    within(text, 8 * MESSAGE)
}

fn within(text: &str, most: usize) -> String {
    let clean: String = without_list_marks(text).chars().filter(|c| !is_unprintable(*c)).collect();
    if clean.chars().count() <= most {
        return clean;
    }
    clean.chars().take(most - 1).chain(['…']).collect()
}

/// The text in one line. An item of a list begins on a line of its own, with a star.
fn without_list_marks(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().peekable();
        let is_item = words.next_if_eq(&"*").is_some();
        if is_item && !joined.is_empty() && !joined.ends_with([':', ';']) {
            joined.push(';');
        }
        for word in words {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(word);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{clipped, one_line};

    #[test]
    fn items_of_a_list_are_separated_by_semicolons() {
        for (text, line) in [
            ("* Version v1.36.0, v1.36.1 required", "Version v1.36.0, v1.36.1 required"),
            ("* MachineDeployment a:\n  * x\n  * y\n* b: z", "MachineDeployment a: x; y; b: z"),
            ("blocked because:\n* a does not exist", "blocked because: a does not exist"),
            ("two  lines\n\nof text: 3 * 4", "two lines of text: 3 * 4"),
            ("", ""),
        ] {
            assert_eq!(one_line(text), line);
        }
    }

    #[test]
    fn a_line_is_cut_by_its_visible_width() {
        assert_eq!(clipped("\u{1b}[32mReady\u{1b}[0m machine", 7), "\u{1b}[32mReady\u{1b}[0m m");
        assert_eq!(clipped("ü─x", 2), "ü─");
    }
}
