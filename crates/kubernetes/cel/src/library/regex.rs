//! Regular expressions in RE2's syntax, as Go parses it, on the `regex` crate.
//!
//! Both are linear-time engines with the same matching rules but different syntax. Patterns are parsed with Go's
//! grammar, so that invalid ones fail with Go's errors, and translated for the crate: classes like `\d` are ASCII,
//! `[` and `&&` inside a class are literals, and so is a lone `{`.

use std::sync::Arc;

use ::regex::{Regex, RegexBuilder};

use super::{Outcome, no_such_overload};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::Value;

const SIZE_LIMIT: usize = 10 * 1024 * 1024;
const MAX_REPEAT: u32 = 1000;
const MAX_DEPTH: usize = 1000;

/// A call whose pattern is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexFunction {
    Matches,
    Find,
    FindAll,
}

impl RegexFunction {
    pub(crate) fn named(function: &str) -> Option<Self> {
        match function {
            "matches" => Some(Self::Matches),
            "find" => Some(Self::Find),
            "findAll" => Some(Self::FindAll),
            _ => None,
        }
    }

    /// Runs the function with its pattern compiled.
    pub(crate) fn run<'a>(self, meter: &mut Meter, regex: &Regex, args: &[Value<'a>]) -> Outcome<'a> {
        let Some(Value::String(s)) = args.first() else { return no_such_overload() };
        match self {
            Self::Matches => Ok(Value::Bool(regex.is_match(s))),
            Self::Find => {
                let found = regex.find(s).map_or("", |found| found.as_str());
                meter.allocate(found.len())?;
                Ok(Value::string(found))
            }
            Self::FindAll => {
                let limit = match args.get(2) {
                    None => usize::MAX,
                    Some(Value::Int(n)) => usize::try_from(*n).unwrap_or(usize::MAX),
                    Some(_) => return no_such_overload(),
                };
                let found: Vec<&str> = regex.find_iter(s).take(limit).map(|found| found.as_str()).collect();
                meter.allocate(s.len() + found.len() * std::mem::size_of::<Value<'_>>())?;
                Ok(Value::strings(found))
            }
        }
    }
}

/// Compiles a pattern.
///
/// # Errors
/// Go's text, if Go would not compile the pattern.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    let translated = translate(pattern)?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .nest_limit(MAX_DEPTH as u32 + 10)
        .build()
        .map(Arc::new)
        .map_err(|error| match error {
            ::regex::Error::CompiledTooBig(_) => parse_error("expression too large", pattern),
            _ => parse_error("invalid character class range", pattern),
        })
}

/// A pattern only known at run time. The last one is cached.
pub(crate) fn compiled(meter: &mut Meter, pattern: &str) -> Result<Arc<Regex>, EvalError> {
    if let Some(regex) = meter.cached_regex(pattern) {
        return Ok(regex);
    }
    let regex = compile(pattern).map_err(EvalError::new)?;
    meter.cache_regex(pattern, &regex);
    Ok(regex)
}

fn dynamic<'a>(function: RegexFunction, meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(Value::String(pattern)) = args.get(1) else { return no_such_overload() };
    let regex =
        compiled(meter, pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))?;
    function.run(meter, &regex, args)
}

pub(crate) fn find<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    dynamic(RegexFunction::Find, meter, args)
}

pub(crate) fn find_all<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    dynamic(RegexFunction::FindAll, meter, args)
}

fn parse_error(code: &str, expr: &str) -> String {
    format!("error parsing regexp: {code}: `{expr}`")
}

/// The pattern in the syntax of the `regex` crate.
pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator =
        Translator { pattern, rest: pattern, out: String::new(), groups: 0, repeatable: false, repeat: None };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    groups: usize,
    /// Whether a repetition operator may follow.
    repeatable: bool,
    /// Start of the repetition just parsed.
    repeat: Option<&'p str>,
}

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\t\\n\\f\\r ";

fn perl_class(c: char) -> Option<(&'static str, bool)> {
    Some(match c {
        'd' => (DIGIT, false),
        'D' => (DIGIT, true),
        'w' => (WORD, false),
        'W' => (WORD, true),
        's' => (SPACE, false),
        'S' => (SPACE, true),
        _ => return None,
    })
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.chars().next() {
            let repeat = self.repeat.take();
            match c {
                '(' => self.open_group()?,
                ')' => {
                    if self.groups == 0 {
                        return Err(parse_error("unexpected )", self.pattern));
                    }
                    self.groups -= 1;
                    self.advance(1);
                    self.out.push(')');
                    self.repeatable = true;
                }
                '|' => {
                    self.advance(1);
                    self.out.push('|');
                    self.repeatable = false;
                }
                '*' | '+' | '?' => {
                    let before = self.rest;
                    self.advance(1);
                    self.out.push(c);
                    self.repetition(before, repeat)?;
                }
                '{' => {
                    let before = self.rest;
                    if !self.counted_repetition()? {
                        self.advance(1);
                        self.literal('{');
                        continue;
                    }
                    self.repetition(before, repeat)?;
                }
                '[' => self.class()?,
                '\\' => self.escape()?,
                '.' | '^' | '$' => {
                    self.advance(1);
                    self.out.push(c);
                    self.repeatable = true;
                }
                c => {
                    self.advance(c.len_utf8());
                    self.literal(c);
                }
            }
        }
        if self.groups > 0 {
            return Err(parse_error("missing closing )", self.pattern));
        }
        Ok(())
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn literal(&mut self, c: char) {
        push_literal(&mut self.out, c);
        self.repeatable = true;
    }

    /// Ends a repetition operator. `before` is the text from its start on.
    fn repetition(&mut self, before: &'p str, previous: Option<&'p str>) -> Result<(), String> {
        if self.rest.starts_with('?') {
            self.advance(1);
            self.out.push('?');
        }
        let text = |from: &'p str, rest: &str| from[..from.len() - rest.len()].to_owned();
        if !self.repeatable {
            return Err(parse_error("missing argument to repetition operator", &text(before, self.rest)));
        }
        if let Some(previous) = previous {
            return Err(parse_error("invalid nested repetition operator", &text(previous, self.rest)));
        }
        self.repeat = Some(before);
        Ok(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}`. Anything else is a literal brace.
    fn counted_repetition(&mut self) -> Result<bool, String> {
        let Some(end) = self.rest.find('}') else { return Ok(false) };
        let body = &self.rest[1..end];
        let number = |text: &str| {
            let valid = !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_digit())
                && (text.len() == 1 || !text.starts_with('0'));
            valid.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let (min, max) = match body.split_once(',') {
            None => (number(body), number(body)),
            Some((min, "")) => (number(min), Some(0)),
            Some((min, max)) => (number(min), number(max)),
        };
        let (Some(min), Some(max)) = (min, max) else { return Ok(false) };
        let open_ended = body.ends_with(',');
        if min > MAX_REPEAT || max > MAX_REPEAT || (!open_ended && min > max) {
            return Err(parse_error("invalid repeat count", &self.rest[..=end]));
        }
        self.out.push_str(&self.rest[..=end]);
        self.advance(end + 1);
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), String> {
        self.groups += 1;
        if self.groups > MAX_DEPTH {
            return Err(parse_error("expression nests too deeply", self.pattern));
        }
        let whole = self.rest;
        let Some(after) = whole.strip_prefix("(?") else {
            self.advance(1);
            self.out.push('(');
            self.repeatable = false;
            return Ok(());
        };
        let name_start = ["P<", "<"].iter().find(|prefix| after.starts_with(**prefix));
        if let Some(prefix) = name_start
            && !after.starts_with("<=")
            && !after.starts_with("<!")
        {
            let Some(end) = whole.find('>') else {
                return Err(parse_error("invalid named capture", whole));
            };
            let name = &whole[2 + prefix.len()..end];
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err(parse_error("invalid named capture", &whole[..=end]));
            }
            // In Go a name may start with a digit. Captures are never accessed by name here.
            self.out.push('(');
            self.advance(end + 1);
            self.repeatable = false;
            return Ok(());
        }
        let unsupported = |upto: usize| {
            let end = whole.char_indices().nth(upto).map_or(whole.len(), |(at, c)| at + c.len_utf8());
            parse_error("invalid or unsupported Perl syntax", &whole[..end])
        };
        let mut negated = false;
        let mut any = false;
        for (i, c) in after.chars().enumerate() {
            match c {
                'i' | 'm' | 's' | 'U' => any = true,
                '-' if !negated => {
                    negated = true;
                    any = false;
                }
                ':' | ')' => {
                    if negated && !any {
                        return Err(unsupported(i + 2));
                    }
                    let len = 2 + after.chars().take(i + 1).map(char::len_utf8).sum::<usize>();
                    if c == ')' {
                        self.groups -= 1;
                        // Flags alone cannot be repeated.
                        if i > 0 {
                            self.out.push_str(&whole[..len]);
                        }
                    } else {
                        self.out.push_str(&whole[..len]);
                    }
                    self.advance(len);
                    self.repeatable = false;
                    return Ok(());
                }
                _ => return Err(unsupported(i + 2)),
            }
        }
        Err(parse_error("missing closing )", self.pattern))
    }

    fn escape(&mut self) -> Result<(), String> {
        let mut chars = self.rest.chars();
        chars.next();
        let Some(c) = chars.next() else {
            return Err(parse_error("trailing backslash at end of expression", ""));
        };
        if let Some((class, negated)) = perl_class(c) {
            self.advance(2);
            self.out.push_str(if negated { "[^" } else { "[" });
            self.out.push_str(class);
            self.out.push(']');
            self.repeatable = true;
            return Ok(());
        }
        match c {
            'A' | 'z' => {
                self.out.push('\\');
                self.out.push(c);
                self.advance(2);
            }
            'b' | 'B' => {
                self.out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                self.advance(2);
            }
            'C' => return Err(parse_error("invalid escape sequence", "\\C")),
            'Q' => {
                let (literal, after) = match self.rest[2..].split_once("\\E") {
                    Some((literal, after)) => (literal, after),
                    None => (&self.rest[2..], ""),
                };
                for c in literal.chars() {
                    self.literal(c);
                }
                self.rest = after;
                return Ok(());
            }
            'p' | 'P' => {
                let class = self.unicode_class()?;
                self.out.push_str(&class);
            }
            _ => {
                let c = self.escaped_char()?;
                self.literal(c);
            }
        }
        self.repeatable = true;
        Ok(())
    }

    /// Parses `\pL`, `\p{Greek}`, `\P…` or `\p{^…}`.
    fn unicode_class(&mut self) -> Result<String, String> {
        let whole = self.rest;
        let mut negated = whole.starts_with("\\P");
        let after = &whole[2..];
        let (name, len) = match after.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 4),
                None => return Err(parse_error("invalid character class range", whole)),
            },
            None => match after.chars().next() {
                Some(c) => (&after[..c.len_utf8()], 2 + c.len_utf8()),
                None => return Err(parse_error("invalid character class range", whole)),
            },
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        // Go only accepts the exact names of general categories and scripts.
        let known = !name.is_empty()
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && Regex::new(&format!("\\p{{{name}}}")).is_ok();
        if !known {
            return Err(parse_error("invalid character class range", &whole[..len]));
        }
        self.advance(len);
        Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }

    /// Parses an escape of one character.
    fn escaped_char(&mut self) -> Result<char, String> {
        let whole = self.rest;
        let mut chars = whole[1..].chars();
        let Some(c) = chars.next() else {
            return Err(parse_error("trailing backslash at end of expression", ""));
        };
        let invalid = |len: usize| {
            let end = whole.char_indices().nth(len).map_or(whole.len(), |(at, _)| at);
            Err(parse_error("invalid escape sequence", &whole[..end]))
        };
        let (value, len) = match c {
            '1'..='7' if !chars.clone().next().is_some_and(|c| ('0'..='7').contains(&c)) => {
                return invalid(2);
            }
            '0'..='7' => {
                let digits = whole[1..].bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                (u32::from_str_radix(&whole[1..=digits], 8).ok().and_then(char::from_u32), 1 + digits)
            }
            'x' => {
                if let Some(inner) = whole[2..].strip_prefix('{') {
                    let digits = inner.bytes().take_while(u8::is_ascii_hexdigit).count();
                    let closed = inner[digits..].starts_with('}');
                    if digits == 0 || !closed {
                        return invalid(4 + digits);
                    }
                    (u32::from_str_radix(&inner[..digits], 16).ok().and_then(char::from_u32), 4 + digits)
                } else {
                    let digits = whole[2..].bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
                    if digits < 2 {
                        return invalid(3 + digits);
                    }
                    (u32::from_str_radix(&whole[2..4], 16).ok().and_then(char::from_u32), 4)
                }
            }
            'a' => (Some('\x07'), 2),
            'f' => (Some('\x0c'), 2),
            'n' => (Some('\n'), 2),
            'r' => (Some('\r'), 2),
            't' => (Some('\t'), 2),
            'v' => (Some('\x0b'), 2),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => (Some(c), 2),
            _ => return invalid(2),
        };
        match value {
            Some(value) => {
                self.advance(len);
                Ok(value)
            }
            None => invalid(len),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        self.advance(1);
        let mut class = String::from("[");
        if self.rest.starts_with('^') {
            self.advance(1);
            class.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.rest.chars().next() else {
                return Err(parse_error("missing closing ]", whole));
            };
            if c == ']' && !first {
                self.advance(1);
                break;
            }
            first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest[2..].find(":]")
            {
                let name = &self.rest[..end + 4];
                if !POSIX.contains(&name[2..name.len() - 2].trim_start_matches('^')) {
                    return Err(parse_error("invalid character class range", name));
                }
                class.push_str(name);
                self.advance(name.len());
                continue;
            }
            if self.rest.starts_with("\\p") || self.rest.starts_with("\\P") {
                let unicode = self.unicode_class()?;
                class.push_str(&unicode);
                continue;
            }
            if c == '\\'
                && let Some((perl, negated)) = self.rest[1..].chars().next().and_then(perl_class)
            {
                self.advance(2);
                if negated {
                    class.push_str("[^");
                    class.push_str(perl);
                    class.push(']');
                } else {
                    class.push_str(perl);
                }
                continue;
            }
            let range = self.rest;
            let low = self.class_char(whole)?;
            let mut high = low;
            if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.advance(1);
                high = self.class_char(whole)?;
                if high < low {
                    let text = &range[..range.len() - self.rest.len()];
                    return Err(parse_error("invalid character class range", text));
                }
            }
            push_class_char(&mut class, low);
            if high != low {
                class.push('-');
                push_class_char(&mut class, high);
            }
        }
        class.push(']');
        self.out.push_str(&class);
        self.repeatable = true;
        Ok(())
    }

    fn class_char(&mut self, whole: &str) -> Result<char, String> {
        match self.rest.chars().next() {
            None => Err(parse_error("missing closing ]", whole)),
            Some('\\') => self.escaped_char(),
            Some(c) => {
                self.advance(c.len_utf8());
                Ok(c)
            }
        }
    }
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() && c != '_' && c != '<' && c != '>' && c != '\'' && c != '"' && c != '`' {
        out.push('\\');
    }
    out.push(c);
}

fn push_class_char(out: &mut String, c: char) {
    if matches!(c, '[' | ']' | '\\' | '^' | '-' | '&' | '~') {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        let table = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢٣", false),
            (r"^\w+$", "é", false),
            (r"a{,2}", "a{,2}", true),
            (r"a{", "a{", true),
            (r"[[a]", "[", true),
            (r"[a&&b]", "&", true),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            (r"[^\d]", "5", false),
            (r"[\D]", "5", false),
            (r"[]a]", "]", true),
            (r"(?i)abc", "ABC", true),
            (r"\bfoo\b", "a foo b", true),
            (r"\Boo", "foo", true),
            (r"[[:alpha:]]+", "abc", true),
            (r"\x41\x{42}\103", "ABC", true),
            (r"a$", "a\n", false),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"(?P<x>a)(?<y>b)", "ab", true),
            (r"\p{Greek}\pL\P{L}", "αa1", true),
            (r"[a-]", "-", true),
            (r"\/", "/", true),
        ];
        for (pattern, text, expected) in table {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn patterns_that_go_rejects_fail_with_its_error() {
        let table = [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            ("\\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<!a)", "invalid or unsupported Perl syntax: `(?<`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ];
        for (pattern, message) in table {
            let expected = format!("error parsing regexp: {message}");
            assert_eq!(translate(pattern), Err(expected), "{pattern}");
        }
    }
}
