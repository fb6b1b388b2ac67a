//! The tree on a terminal of a given size.

use jiff::Timestamp;

use crate::text::{Paint, clipped, drawn_rows, operation_lines};
use crate::{Row, State, Tree};

/// Columns that a wrapped message is indented by.
const INDENT: usize = 4;

/// Draws a tree in at most `height` lines of at most `width` columns. Long messages are wrapped. Where lines are missing,
/// healthy parts are left out first, then messages are cut, then parts; the progress of the operation always stays.
pub fn draw_within(
    tree: &Tree,
    now: Timestamp,
    paint: Paint,
    (width, height): (usize, usize),
) -> Vec<String> {
    let rows = drawn_rows(tree, false, now, paint);
    let below: Vec<String> =
        operation_lines(tree, now, paint).iter().flat_map(|line| wrapped(line, width)).collect();
    let room = height.saturating_sub(below.len()).max(1);
    let mut lines = fitted(&rows, width, room);
    lines.extend(below);
    lines.truncate(height.max(1));
    lines
}

fn fitted(rows: &[(Row<'_>, String)], width: usize, room: usize) -> Vec<String> {
    let wrap = |rows: &[&(Row<'_>, String)]| -> Vec<String> {
        rows.iter().flat_map(|(_, line)| wrapped(line, width)).collect()
    };
    let mut shown: Vec<&(Row<'_>, String)> = rows.iter().collect();
    let mut hidden = 0;
    loop {
        let lines = wrap(&shown);
        if lines.len() + usize::from(hidden > 0) <= room {
            return with_note(lines, hidden, "healthy parts are not shown", width);
        }
        // From the bottom up, and never the root.
        let healthy = shown.iter().rposition(|(row, _)| row.depth > 0 && is_healthy(row));
        let Some(at) = healthy else { break };
        hidden += shown.remove(at).0.parts.len();
    }
    let lines: Vec<String> = shown.iter().map(|(_, line)| clipped(line, width)).collect();
    let most = room.saturating_sub(1).max(1);
    if lines.len() + usize::from(hidden > 0) <= room {
        return with_note(lines, hidden, "healthy parts are not shown", width);
    }
    let more = lines.len().saturating_sub(most) + hidden;
    with_note(lines.into_iter().take(most).collect(), more, "parts are not shown", width)
}

fn with_note(mut lines: Vec<String>, count: usize, what: &str, width: usize) -> Vec<String> {
    if count > 0 {
        lines.push(clipped(&format!("… {count} {what}"), width));
    }
    lines
}

fn is_healthy(row: &Row<'_>) -> bool {
    row.parts.iter().all(|part| matches!(part.state(), State::Healthy | State::NoConditions))
}

/// A line as lines of a visible width, broken at spaces where possible.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let visible = |text: &str| clipped_width(text);
    if visible(line) <= width || width <= 2 * INDENT {
        return vec![clipped(line, width)];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    // Leading spaces and branches stay together with the first word.
    let start = line.len() - line.trim_start().len();
    let (lead, rest) = line.split_at(start);
    current.push_str(lead);
    for word in rest.split_inclusive(' ') {
        let length = visible(word.trim_end());
        if visible(&current) + length > width && visible(&current) > INDENT {
            lines.push(current.trim_end().to_owned());
            current = " ".repeat(INDENT);
        }
        current.push_str(word);
    }
    lines.push(current.trim_end().to_owned());
    // A word that is longer than a line is cut.
    lines.iter().map(|line| clipped(line, width)).collect()
}

/// Columns of a text; colour codes have none.
fn clipped_width(text: &str) -> usize {
    let mut count = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_spaces_by_visible_width() {
        assert_eq!(wrapped("short", 20), ["short"]);
        assert_eq!(
            wrapped("Machine/a  Waiting: the node has not joined", 20),
            ["Machine/a  Waiting:", "    the node has not", "    joined"]
        );
        assert_eq!(wrapped("\u{1b}[32mReady\u{1b}[0m machine", 13), ["\u{1b}[32mReady\u{1b}[0m machine"]);
        assert!(wrapped(&"x".repeat(50), 20).iter().all(|line| clipped_width(line) <= 20));
    }
}
