//! Mail addresses as Go's `mail.ParseAddress` accepts them: `a@b`, `Name <a@b>`, a group of one.

use std::net::{Ipv4Addr, Ipv6Addr};

pub fn is_email(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address(true) == Some(1) && parser.skip_comments() && parser.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom_text(c: char) -> bool {
    is_visible(c) && !matches!(c, '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"')
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn consume(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Comments in parentheses, nested and escaped.
    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.consume('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut chars = self.rest.char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '\\' => _ = chars.next(),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[index + 1..];
                return true;
            }
        }
        self.rest = "";
        false
    }

    /// Number of mailboxes of an address. A group may have several.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        if self.address_spec() {
            self.skip_space();
            if self.consume('(') && !self.comment() {
                return None;
            }
            return Some(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') && !self.phrase() {
            return None;
        }
        self.skip_space();
        if groups && self.consume(':') {
            return self.group();
        }
        (self.consume('<') && self.address_spec() && self.consume('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.consume(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.consume(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.consume(',') {
                return None;
            }
        }
    }

    fn address_spec(&mut self) -> bool {
        self.skip_space();
        let local = if self.rest.starts_with('"') {
            self.quoted().is_some_and(|length| length > 0)
        } else {
            self.atom(false)
        };
        if !(local && self.consume('@')) {
            return false;
        }
        self.skip_space();
        if self.consume('[') {
            let Some((literal, rest)) = self.rest.split_once(']') else { return false };
            self.rest = rest;
            literal.parse::<Ipv4Addr>().is_ok() || literal.parse::<Ipv6Addr>().is_ok()
        } else {
            self.atom(false)
        }
    }

    fn phrase(&mut self) -> bool {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return true;
            }
            let word = if self.rest.starts_with('"') { self.quoted().is_some() } else { self.atom(true) };
            if !word {
                return words > 0;
            }
            words += 1;
        }
    }

    /// Length of a quoted text.
    fn quoted(&mut self) -> Option<usize> {
        let (mut length, mut escaped) = (0, false);
        for (index, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if escaped => {
                    if !(is_visible(c) || matches!(c, ' ' | '\t')) {
                        return None;
                    }
                    escaped = false;
                    length += 1;
                }
                '"' => {
                    self.rest = &self.rest[index + 1..];
                    return Some(length);
                }
                '\\' => escaped = true,
                c if is_visible(c) || matches!(c, ' ' | '\t') => length += 1,
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self, permissive: bool) -> bool {
        let end = self.rest.find(|c| !is_atom_text(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return false;
        }
        self.rest = rest;
        permissive || !(atom.starts_with('.') || atom.ends_with('.') || atom.contains(".."))
    }
}
