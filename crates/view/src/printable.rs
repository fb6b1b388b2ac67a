//! Text of others on a terminal. Names, messages and addresses come from servers, clouds and workload clusters: a terminal
//! acts on escape sequences in them, and shows text in another order after some characters.
//!
//! Everything that is drawn goes through here before colours are added.

use std::borrow::Cow;

/// The text as lines, without the characters that a terminal acts on.
pub fn printable(text: &str) -> Cow<'_, str> {
    without(text, |character| is_unprintable(character) && character != '\n')
}

/// The text as a part of one line.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    without(text, is_unprintable)
}

/// Control characters (C0, DEL, C1) and those that change the direction of what follows.
pub(crate) fn is_unprintable(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn without(text: &str, dropped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&dropped) {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().filter_map(|character| match character {
        // They stand between words.
        '\t' | '\n' if dropped(character) => Some(' '),
        _ => (!dropped(character)).then_some(character),
    });
    Cow::Owned(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_not_printed() {
        for (text, lines, line) in [
            ("plain ─ ü → 日本 \u{200d}", "plain ─ ü → 日本 \u{200d}", "plain ─ ü → 日本 \u{200d}"),
            ("a\nb\tc\r\n", "a\nb c\n", "a b c "),
            ("\u{1b}[2J\u{1b}]0;title\u{7}x", "[2J]0;titlex", "[2J]0;titlex"),
            ("\u{9b}31mred\u{85}\u{7f}\u{0}\u{8}", "31mred", "31mred"),
            ("\u{202e}gnp.exe\u{202c} \u{2066}x\u{2069}", "gnp.exe x", "gnp.exe x"),
            ("", "", ""),
        ] {
            assert_eq!(printable(text), lines, "{text:?}");
            assert_eq!(in_line(text), line, "{text:?}");
        }
        assert!(matches!(printable("two\nlines"), Cow::Borrowed(_)), "ordinary text is not copied");
    }
}
