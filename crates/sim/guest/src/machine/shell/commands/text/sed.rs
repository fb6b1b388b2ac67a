//! `sed`: substitution, deletion and insertion, which boot scripts use.

use regex::{Regex, RegexBuilder};

use super::super::Call;

/// One command of a script.
struct Edit {
    from: Option<Address>,
    to: Option<Address>,
    negated: bool,
    action: Action,
}

enum Address {
    Line(usize),
    Last,
    Like(Regex),
}

enum Action {
    Substitute { regex: Regex, with: String, all: bool, print: bool },
    Delete,
    Print,
    Append(String),
    Insert(String),
    Change(String),
    Quit,
}

pub(super) fn sed(call: &mut Call<'_, '_, '_>) -> i32 {
    let (mut scripts, mut names) = (Vec::new(), Vec::new());
    let (mut in_place, mut backup, mut silent, mut extended) = (false, String::new(), false, false);
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-e" | "--expression" => scripts.extend(words.next().cloned()),
            "-n" | "--quiet" => silent = true,
            "-E" | "-r" | "--regexp-extended" => extended = true,
            word if word.starts_with("-i") => {
                in_place = true;
                backup = word[2..].to_owned();
            }
            "--in-place" => in_place = true,
            word if word.len() > 1 && word.starts_with('-') => {
                for letter in word[1..].chars() {
                    match letter {
                        'n' => silent = true,
                        'E' | 'r' => extended = true,
                        'e' => scripts.extend(words.next().cloned()),
                        'i' => in_place = true,
                        _ => return call.fail(&format!("invalid option -- '{letter}'")),
                    }
                }
            }
            word if scripts.is_empty() => scripts.push(word.to_owned()),
            word => names.push(word.to_owned()),
        }
    }
    let mut edits = Vec::new();
    for script in &scripts {
        match parse(script, extended) {
            Ok(more) => edits.extend(more),
            Err(why) => return call.fail(&format!("-e expression #1: {why}")),
        }
    }
    if !in_place {
        let (text, status) = call.contents(&names);
        let out = edited(&text, &edits, silent);
        call.out(&out);
        return status;
    }
    let mut status = 0;
    for name in &names {
        let path = call.shell.path(name);
        let files = &mut call.shell.guest.files;
        let written = files.text(&path).and_then(|text| {
            if !backup.is_empty() {
                files.write(&format!("{path}{backup}"), text.as_bytes())?;
            }
            files.write(&path, edited(&text, &edits, silent).as_bytes())
        });
        if let Err(error) = written {
            status = call.fail(&format!("can't read {name}: {error}"));
        }
    }
    status
}

fn edited(text: &str, edits: &[Edit], silent: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut open = vec![false; edits.len()];
    let mut out = String::new();
    'lines: for (index, line) in lines.iter().enumerate() {
        let (number, last) = (index + 1, index + 1 == lines.len());
        let mut line = (*line).to_owned();
        let mut after = String::new();
        for (edit, open) in edits.iter().zip(&mut open) {
            if applies(edit, open, number, last, &line) == edit.negated {
                continue;
            }
            match &edit.action {
                Action::Substitute { regex, with, all, print } => {
                    if regex.is_match(&line) {
                        let count = usize::from(!*all);
                        line = regex.replacen(&line, count, with.as_str()).into_owned();
                        if *print {
                            out.push_str(&line);
                            out.push('\n');
                        }
                    }
                }
                Action::Delete => continue 'lines,
                Action::Print => {
                    out.push_str(&line);
                    out.push('\n');
                }
                Action::Append(text) => {
                    after.push_str(text);
                    after.push('\n');
                }
                Action::Insert(text) => {
                    out.push_str(text);
                    out.push('\n');
                }
                Action::Change(text) => {
                    out.push_str(text);
                    out.push('\n');
                    continue 'lines;
                }
                Action::Quit => {
                    out.push_str(&line);
                    out.push('\n');
                    break 'lines;
                }
            }
        }
        if !silent {
            out.push_str(&line);
            out.push('\n');
        }
        out.push_str(&after);
    }
    if !text.ends_with('\n') && out.ends_with('\n') {
        out.pop();
    }
    out
}

fn applies(edit: &Edit, open: &mut bool, number: usize, last: bool, line: &str) -> bool {
    let fits = |address: &Address| match address {
        Address::Line(wanted) => *wanted == number,
        Address::Last => last,
        Address::Like(regex) => regex.is_match(line),
    };
    match (&edit.from, &edit.to) {
        (None, _) => true,
        (Some(from), None) => fits(from),
        (Some(from), Some(to)) => {
            if *open {
                *open = !fits(to);
                return true;
            }
            let starts = fits(from);
            *open = starts && !matches!(to, Address::Line(end) if *end <= number);
            starts
        }
    }
}

/// Reads a script: commands on lines of their own or after semicolons.
fn parse(script: &str, extended: bool) -> Result<Vec<Edit>, String> {
    let mut edits = Vec::new();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        if rest.is_empty() {
            return Ok(edits);
        }
        let (from, after) = address(rest, extended)?;
        let (to, after) = match after.strip_prefix(',') {
            Some(after) => address(after, extended)?,
            None => (None, after),
        };
        let after = after.trim_start();
        let (negated, after) =
            after.strip_prefix('!').map_or((false, after), |after| (true, after.trim_start()));
        let command = after.chars().next().ok_or("missing command")?;
        let after = &after[command.len_utf8()..];
        let (action, after) = match command {
            's' => substitute(after, extended)?,
            'd' => (Action::Delete, after),
            'p' => (Action::Print, after),
            'q' => (Action::Quit, after),
            'a' | 'i' | 'c' => {
                let text = after.strip_prefix('\\').unwrap_or(after);
                let text = text.trim_start_matches([' ', '\t']).trim_start_matches('\n');
                let (text, after) = text.split_once('\n').unwrap_or((text, ""));
                let text = text.replace("\\n", "\n").replace("\\t", "\t");
                let action = match command {
                    'a' => Action::Append(text),
                    'i' => Action::Insert(text),
                    _ => Action::Change(text),
                };
                (action, after)
            }
            other => return Err(format!("unknown command: `{other}'")),
        };
        edits.push(Edit { from, to, negated, action });
        rest = after;
    }
}

fn address(text: &str, extended: bool) -> Result<(Option<Address>, &str), String> {
    let text = text.trim_start();
    if let Some(after) = text.strip_prefix('$') {
        return Ok((Some(Address::Last), after));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if digits > 0 {
        let line = text[..digits].parse().map_err(|_| "invalid address".to_owned())?;
        return Ok((Some(Address::Line(line)), &text[digits..]));
    }
    let (delimiter, body) = match text.strip_prefix('\\') {
        Some(body) => match body.chars().next() {
            Some(delimiter) => (delimiter, &body[delimiter.len_utf8()..]),
            None => return Ok((None, text)),
        },
        None if text.starts_with('/') => ('/', &text[1..]),
        None => return Ok((None, text)),
    };
    let (pattern, after) = part(body, delimiter).ok_or("unterminated address regex")?;
    let (ignore_case, after) = after.strip_prefix('I').map_or((false, after), |after| (true, after));
    Ok((Some(Address::Like(compile(&pattern, extended, ignore_case)?)), after))
}

fn substitute(text: &str, extended: bool) -> Result<(Action, &str), String> {
    let unterminated = "unterminated `s' command";
    let delimiter = text.chars().next().ok_or(unterminated)?;
    let (pattern, after) = part(&text[delimiter.len_utf8()..], delimiter).ok_or(unterminated)?;
    let (with, mut after) = part(after, delimiter).ok_or(unterminated)?;
    let (mut all, mut print, mut ignore_case) = (false, false, false);
    while let Some(flag) = after.chars().next() {
        match flag {
            'g' => all = true,
            'p' => print = true,
            'I' | 'i' => ignore_case = true,
            '1' => {}
            ';' | '\n' | '}' | ' ' => break,
            _ => return Err("unknown option to `s'".to_owned()),
        }
        after = &after[1..];
    }
    let regex = compile(&pattern, extended, ignore_case)?;
    Ok((Action::Substitute { regex, with: replacement(&with), all, print }, after))
}

/// Text up to a delimiter; a backslash escapes it.
fn part(text: &str, delimiter: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == delimiter {
            return Some((out, &text[at + c.len_utf8()..]));
        }
        if c == '\\' {
            match chars.next() {
                Some((_, next)) if next == delimiter => out.push(next),
                Some((_, next)) => {
                    out.push('\\');
                    out.push(next);
                }
                None => return None,
            }
        } else {
            out.push(c);
        }
    }
    None
}

fn compile(pattern: &str, extended: bool, ignore_case: bool) -> Result<Regex, String> {
    let pattern = if extended { pattern.to_owned() } else { from_basic(pattern) };
    RegexBuilder::new(&pattern)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|_| "invalid regular expression".to_owned())
}

/// Converts a basic regular expression to an extended one.
pub(super) fn from_basic(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(c) = chars.next() {
        match c {
            '[' if !in_set => {
                in_set = true;
                out.push('[');
                if let Some(negation) = chars.next_if_eq(&'^') {
                    out.push(negation);
                }
                // A closing bracket at the start is a member.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if in_set => {
                in_set = false;
                out.push(']');
            }
            '[' if in_set && chars.peek() != Some(&':') => out.push_str("\\["),
            c if in_set => out.push(c),
            '\\' => match chars.next() {
                Some(sign @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(sign),
                Some(sign) => {
                    out.push('\\');
                    out.push(sign);
                }
                None => out.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => {
                out.push('\\');
                out.push(c);
            }
            '*' if out.is_empty() || out == "^" => out.push_str("\\*"),
            c => out.push(c),
        }
    }
    out
}

/// Converts sed's replacement (`\1`, `&`) to the regex crate's.
fn replacement(with: &str) -> String {
    let mut out = String::new();
    let mut chars = with.chars();
    while let Some(c) = chars.next() {
        match c {
            '&' => out.push_str("${0}"),
            '$' => out.push_str("$$"),
            '\\' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => out.push_str(&format!("${{{digit}}}")),
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_edit_as_sed_does() {
        let text = "one\ntwo (2)\n# three\n";
        for (script, extended, silent, expected) in [
            ("s/o/0/", false, false, "0ne\ntw0 (2)\n# three\n"),
            ("s/o/0/g;s#t#T#", false, false, "0ne\nTw0 (2)\n# Three\n"),
            (r"s/(\([0-9]\))/<\1&>/", false, false, "one\ntwo <2(2)>\n# three\n"),
            (r"s/\((\d)\)/$1/", true, false, "one\ntwo $1\n# three\n"),
            ("/^#/d", false, false, "one\ntwo (2)\n"),
            ("/one/,/two/d", false, false, "# three\n"),
            ("2p", false, true, "two (2)\n"),
            ("$a four", false, false, "one\ntwo (2)\n# three\nfour\n"),
            ("1i zero", false, false, "zero\none\ntwo (2)\n# three\n"),
            ("/two/!d", false, false, "two (2)\n"),
            ("/two/s/2/3/", false, false, "one\ntwo (3)\n# three\n"),
            ("s/x$//", false, false, "one\ntwo (2)\n# three\n"),
        ] {
            let edits = parse(script, extended).unwrap_or_else(|why| panic!("{script}: {why}"));
            assert_eq!(edited(text, &edits, silent), expected, "{script}");
        }
        for (script, why) in [("s/a/b", "unterminated `s' command"), ("y/a/b/", "unknown command: `y'")] {
            assert_eq!(parse(script, false).err().as_deref(), Some(why));
        }
    }
}
