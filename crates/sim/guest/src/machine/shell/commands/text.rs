//! Programs for text.

mod sed;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Call, Program};

pub(super) fn program(name: &str) -> Option<Program> {
    Some(match name {
        "echo" => echo,
        "printf" => printf,
        "sed" => sed::sed,
        "grep" | "egrep" | "fgrep" => grep,
        "tr" => tr,
        "cut" => cut,
        "head" | "tail" => ends,
        "wc" => count,
        "sort" => sort,
        "uniq" => uniq,
        "envsubst" => envsubst,
        "base64" => base64,
        "seq" => seq,
        _ => return None,
    })
}

fn echo(call: &mut Call<'_, '_, '_>) -> i32 {
    let is_flag = |word: &&String| {
        word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
    };
    let flags = call.arguments.iter().take_while(is_flag).count();
    let (flags, words) = call.arguments.split_at(flags);
    let letters = flags.concat();
    let mut text = words.join(" ");
    if letters.contains('e') {
        text = unescaped(&text);
    }
    if !letters.contains('n') {
        text.push('\n');
    }
    call.out(&text);
    0
}

/// Resolves escapes such as `
/// `, as `echo -e` and `printf` do.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some('"') => out.push('"'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out
}

fn printf(call: &mut Call<'_, '_, '_>) -> i32 {
    let mut words = call.arguments;
    if words.first().is_some_and(|word| word == "--") {
        words = &words[1..];
    }
    let Some((format, mut rest)) = words.split_first() else {
        return call.fail("usage: printf format [arguments]");
    };
    let format = unescaped(format);
    let mut out = String::new();
    // The format is reused until no argument is left.
    loop {
        let before = rest.len();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut width = String::new();
            while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | '.')) {
                width.push(c);
            }
            let conversion = chars.next();
            if conversion == Some('%') {
                out.push('%');
                continue;
            }
            let (value, after) =
                rest.split_first().map_or(("", rest), |(value, after)| (value.as_str(), after));
            rest = after;
            let shown = match conversion {
                Some('s') => value.to_owned(),
                Some('b') => unescaped(value),
                Some('d' | 'i' | 'u') => value.trim().parse::<i64>().unwrap_or(0).to_string(),
                Some('q') => format!("'{}'", value.replace('\'', "'\\''")),
                _ => return call.fail("invalid format character"),
            };
            let left = width.starts_with('-');
            let zeros = width.starts_with('0');
            let columns: usize =
                width.trim_start_matches('-').split('.').next().unwrap_or("").parse().unwrap_or(0);
            let padding = columns.min(1000).saturating_sub(shown.chars().count());
            let fill = if zeros { "0" } else { " " }.repeat(padding);
            out.push_str(&if left { format!("{shown}{fill}") } else { format!("{fill}{shown}") });
        }
        if rest.is_empty() || rest.len() == before {
            break;
        }
    }
    call.out(&out);
    0
}

fn grep(call: &mut Call<'_, '_, '_>) -> i32 {
    let mut patterns = Vec::new();
    let (mut names, mut flags) = (Vec::new(), String::new());
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-e" => patterns.extend(words.next().cloned()),
            word if word.len() > 1 && word.starts_with('-') && !word.starts_with("--") => {
                flags.push_str(&word[1..])
            }
            "--quiet" | "--silent" => flags.push('q'),
            word if word.starts_with("--") => {}
            word => names.push(word.to_owned()),
        }
    }
    if patterns.is_empty() {
        if names.is_empty() {
            call.fail("no pattern");
            return 2;
        }
        patterns.push(names.remove(0));
    }
    let form = |pattern: &String| {
        let pattern = if call.name == "fgrep" || flags.contains('F') {
            regex::escape(pattern)
        } else if call.name == "egrep" || flags.contains(['E', 'P']) {
            pattern.clone()
        } else {
            sed::from_basic(pattern)
        };
        let pattern = if flags.contains('w') { format!(r"\b(?:{pattern})\b") } else { pattern };
        let pattern = if flags.contains('x') { format!("^(?:{pattern})$") } else { pattern };
        format!("(?:{pattern})")
    };
    let all = patterns.iter().map(form).collect::<Vec<_>>().join("|");
    let regex = regex::RegexBuilder::new(&all).case_insensitive(flags.contains('i')).build();
    let Ok(regex) = regex else {
        call.fail("invalid pattern");
        return 2;
    };
    let (text, status) = if flags.contains('s') {
        let known: Vec<String> = names
            .iter()
            .filter(|name| call.shell.guest.files.exists(&call.shell.path(name)))
            .cloned()
            .collect();
        if known.len() < names.len() && known.is_empty() { (String::new(), 2) } else { call.contents(&known) }
    } else {
        call.contents(&names)
    };
    let found: Vec<&str> = text.lines().filter(|line| regex.is_match(line) != flags.contains('v')).collect();
    if flags.contains('c') {
        call.line(&found.len().to_string());
    } else if flags.contains('o') {
        let parts: String = found
            .iter()
            .flat_map(|line| regex.find_iter(line))
            .map(|part| format!("{}\n", part.as_str()))
            .collect();
        call.out(&parts);
    } else if !flags.contains('q') {
        let shown: String = found.iter().map(|line| format!("{line}\n")).collect();
        call.out(&shown);
    }
    match (found.is_empty(), status) {
        (false, 0) => 0,
        (false, _) if flags.contains('q') => 0,
        (_, status) if status != 0 => 2,
        _ => 1,
    }
}

/// The characters of a set such as `a-z` or `[:upper:]`.
fn set(text: &str) -> Vec<char> {
    let named = |from: char, to: char| (from..=to).collect::<Vec<char>>();
    let text = text
        .replace("[:lower:]", &named('a', 'z').into_iter().collect::<String>())
        .replace("[:upper:]", &named('A', 'Z').into_iter().collect::<String>())
        .replace("[:digit:]", "0123456789")
        .replace("[:space:]", " \t\n\r")
        .replace("[:alnum:]", "a-zA-Z0-9");
    let chars: Vec<char> = unescaped(&text).chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if at + 2 < chars.len()
            && chars[at + 1] == '-'
            && chars[at] <= chars[at + 2]
            && chars[at + 2].is_ascii()
        {
            out.extend(chars[at]..=chars[at + 2]);
            at += 3;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

fn tr(call: &mut Call<'_, '_, '_>) -> i32 {
    let (operands, flags) = call.operands();
    let Some(first) = operands.first() else { return call.fail("missing operand") };
    let complement = flags.contains(['c', 'C']);
    let (from, to) = (set(first), operands.get(1).map(|text| set(text)).unwrap_or_default());
    let within = |c: char| from.contains(&c) != complement;
    let text = String::from_utf8_lossy(&call.io.input.take()).into_owned();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let shown = if !within(c) {
            c
        } else if flags.contains('d') {
            continue;
        } else if complement {
            to.last().copied().unwrap_or(c)
        } else {
            let at = from.iter().position(|held| *held == c).unwrap_or(0);
            to.get(at).or(to.last()).copied().unwrap_or(c)
        };
        let squeezed = flags.contains('s') && within(c) && out.ends_with(shown);
        if !squeezed {
            out.push(shown);
        }
    }
    call.out(&out);
    0
}

/// Positions such as `1`, `2-` or `1,3`.
fn chosen(list: &str, position: usize) -> bool {
    list.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let from = from.parse().unwrap_or(1);
        let to = if to.is_empty() { usize::MAX } else { to.parse().unwrap_or(0) };
        (from..=to).contains(&position)
    })
}

fn cut(call: &mut Call<'_, '_, '_>) -> i32 {
    let (mut delimiter, mut fields, mut characters, mut names) = ('\t', None, None, Vec::new());
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let mut value = |flag: &str| match word[flag.len()..].is_empty() {
            true => words.next().cloned(),
            false => Some(word[flag.len()..].to_owned()),
        };
        if word.starts_with("-d") {
            delimiter = value("-d").and_then(|text| text.chars().next()).unwrap_or('\t');
        } else if word.starts_with("-f") {
            fields = value("-f");
        } else if word.starts_with("-c") || word.starts_with("-b") {
            characters = value("-c");
        } else if !word.starts_with('-') {
            names.push(word.clone());
        }
    }
    let (text, status) = call.contents(&names);
    let mut out = String::new();
    for line in text.lines() {
        match (&fields, &characters) {
            (Some(list), _) if line.contains(delimiter) => {
                let parts = line.split(delimiter).enumerate();
                let kept: Vec<&str> =
                    parts.filter(|(n, _)| chosen(list, n + 1)).map(|(_, part)| part).collect();
                out.push_str(&kept.join(&delimiter.to_string()));
            }
            (None, Some(list)) => {
                out.extend(line.chars().enumerate().filter(|(n, _)| chosen(list, n + 1)).map(|(_, c)| c));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    call.out(&out);
    status
}

/// `head` and `tail`: lines with `-n`, bytes with `-c`.
fn ends(call: &mut Call<'_, '_, '_>) -> i32 {
    let (mut count, mut by_bytes, mut names) = (10usize, false, Vec::new());
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
            names.push(word.clone());
            continue;
        };
        by_bytes |= flag.starts_with('c');
        let number = match flag.trim_start_matches(['n', 'c']) {
            "" => words.next().map(String::as_str).unwrap_or_default(),
            number => number,
        };
        count = number.parse().unwrap_or(count);
    }
    let (text, status) = call.contents(&names);
    let head = call.name == "head";
    let out: String = if by_bytes {
        let all = text.chars();
        let skipped = if head { 0 } else { text.chars().count().saturating_sub(count) };
        all.skip(skipped).take(count).collect()
    } else {
        let lines: Vec<&str> = text.lines().collect();
        let kept =
            if head { &lines[..count.min(lines.len())] } else { &lines[lines.len().saturating_sub(count)..] };
        kept.iter().map(|line| format!("{line}\n")).collect()
    };
    call.out(&out);
    status
}

fn count(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let (text, status) = call.contents(&names);
    let lines = text.matches('\n').count();
    let words = text.split_whitespace().count();
    let shown = match flags.chars().next() {
        Some('l') => lines.to_string(),
        Some('w') => words.to_string(),
        Some('c' | 'm') => text.len().to_string(),
        _ => format!("{lines} {words} {}", text.len()),
    };
    call.line(&shown);
    status
}

fn sort(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let (text, status) = call.contents(&names);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    if flags.contains('u') {
        lines.dedup();
    }
    if flags.contains('r') {
        lines.reverse();
    }
    let out: String = lines.iter().map(|line| format!("{line}\n")).collect();
    call.out(&out);
    status
}

fn uniq(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    let (text, status) = call.contents(&names);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    let out: String = lines.iter().map(|line| format!("{line}\n")).collect();
    call.out(&out);
    status
}

/// Substitutes exported variables, `$NAME` or `${NAME}`.
fn envsubst(call: &mut Call<'_, '_, '_>) -> i32 {
    let text = String::from_utf8_lossy(&call.io.input.take()).into_owned();
    let state = &call.shell.state;
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (braced, inner) = after.strip_prefix('{').map_or((false, after), |inner| (true, inner));
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let name = &inner[..end];
        let closed = !braced || inner[end..].starts_with('}');
        if end == 0 || !closed || name.starts_with(|c: char| c.is_ascii_digit()) {
            out.push('$');
            rest = after;
            continue;
        }
        if state.exported.contains(name) {
            out.push_str(state.variables.get(name).map_or("", String::as_str));
        }
        rest = &inner[end + usize::from(braced)..];
    }
    out.push_str(rest);
    call.out(&out);
    0
}

fn base64(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let (text, status) = call.contents(&names);
    if flags.contains('d') || call.arguments.iter().any(|argument| argument == "--decode") {
        return match capstan_user_data::base64(text.as_bytes()) {
            Some(bytes) => {
                call.out(&String::from_utf8_lossy(&bytes));
                status
            }
            None => call.fail("invalid input"),
        };
    }
    let encoded = STANDARD.encode(text.as_bytes());
    let columns = if call.arguments.iter().any(|argument| argument == "-w0" || argument == "-w") {
        usize::MAX
    } else {
        76
    };
    let lines: Vec<String> = if columns == usize::MAX {
        vec![encoded]
    } else {
        encoded.as_bytes().chunks(columns).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    };
    call.line(&lines.join("\n"));
    status
}

fn seq(call: &mut Call<'_, '_, '_>) -> i32 {
    let numbers: Option<Vec<i64>> = call.arguments.iter().map(|argument| argument.parse().ok()).collect();
    let (from, step, to) = match numbers.as_deref() {
        Some([to]) => (1, 1, *to),
        Some([from, to]) => (*from, 1, *to),
        Some([from, step, to]) if *step > 0 => (*from, *step, *to),
        _ => return call.fail("invalid argument"),
    };
    let mut out = String::new();
    let mut at = from;
    for _ in 0..10_000 {
        if at > to {
            break;
        }
        out.push_str(&format!("{at}\n"));
        at = at.saturating_add(step);
    }
    call.out(&out);
    0
}
