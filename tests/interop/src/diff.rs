//! Line diffs.

use std::fmt::Write as _;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// `-` for lines only on the left, `+` for lines only on the right, with context.
pub fn lines(left: &str, right: &str) -> String {
    let (left, right): (Vec<_>, Vec<_>) = (left.lines().collect(), right.lines().collect());
    let edits = edits(&left, &right);
    let mut shown = vec![false; edits.len()];
    for (position, edit) in edits.iter().enumerate() {
        if edit.0 != ' ' {
            let end = (position + CONTEXT + 1).min(edits.len());
            shown[position.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    let mut out = String::new();
    let mut gap = false;
    for ((mark, line), shown) in edits.iter().zip(shown) {
        if shown {
            writeln!(out, "    {mark} {line}").unwrap_or_default();
        } else if !gap && !out.is_empty() {
            out.push_str("      …\n");
        }
        gap = !shown;
    }
    out
}

/// Cuts the common head and tail; compares the rest by longest common subsequence.
fn edits<'a>(left: &[&'a str], right: &[&'a str]) -> Vec<(char, &'a str)> {
    let head = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let (left_rest, right_rest) = (&left[head..], &right[head..]);
    let tail = left_rest.iter().rev().zip(right_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&left_rest[..left_rest.len() - tail], &right_rest[..right_rest.len() - tail]);

    let mut out: Vec<_> = left[..head].iter().map(|line| (' ', *line)).collect();
    // Larger texts are shown as removed and added: the table would take too much memory.
    if a.len() * b.len() > 4_000_000 {
        out.extend(a.iter().map(|line| ('-', *line)));
        out.extend(b.iter().map(|line| ('+', *line)));
    } else {
        let width = b.len() + 1;
        let mut common = vec![0u32; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                common[i * width + j] = if a[i] == b[j] {
                    common[(i + 1) * width + j + 1] + 1
                } else {
                    common[(i + 1) * width + j].max(common[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                out.push((' ', a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len()
                || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
            {
                out.push(('-', a[i]));
                i += 1;
            } else {
                out.push(('+', b[j]));
                j += 1;
            }
        }
    }
    out.extend(left_rest[left_rest.len() - tail..].iter().map(|line| (' ', *line)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown_with_context() {
        let left = "a\nb\nc\nd\ne\nf\ng";
        let right = "a\nb\nc\nX\ne\nf\ng";
        assert_eq!(lines(left, right), "      b\n      c\n    - d\n    + X\n      e\n      f\n      …\n");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(lines("a\nb", "a\nb"), "");
    }
}
