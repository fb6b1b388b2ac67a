//! `test`, `[` and `[[`.

use super::Call;
use crate::machine::files::Kind;
use crate::machine::shell::pattern;

/// Returns 0 if the expression is true, 1 if false, 2 if invalid.
pub(super) fn test(call: &mut Call<'_, '_, '_>) -> i32 {
    let mut words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    let close = match call.name {
        "[" => Some("]"),
        "[[" => Some("]]"),
        _ => None,
    };
    if let Some(close) = close
        && words.pop() != Some(close)
    {
        call.fail(&format!("missing `{close}'"));
        return 2;
    }
    let mut expression = Expression { call, words, at: 0 };
    let value = expression.any();
    match value {
        Some(value) if expression.at == expression.words.len() => i32::from(!value),
        _ => {
            let word = expression.words.get(expression.at).copied().unwrap_or("").to_owned();
            expression.call.fail(&format!("{word}: binary operator expected"));
            2
        }
    }
}

struct Expression<'e, 'c, 'g, 'a> {
    call: &'e mut Call<'c, 'g, 'a>,
    words: Vec<&'e str>,
    at: usize,
}

impl Expression<'_, '_, '_, '_> {
    fn take(&mut self, words: &[&str]) -> bool {
        let there = self.words.get(self.at).is_some_and(|word| words.contains(word));
        self.at += usize::from(there);
        there
    }

    fn any(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take(&["-o", "||"]) {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.take(&["-a", "&&"]) {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        let rest = self.words.len() - self.at;
        if rest == 0 {
            // An empty expression is false; an operator needs an operand.
            return (self.at == 0).then_some(false);
        }
        let binary = self.words.get(self.at + 1).copied().filter(|word| is_binary(word) && rest >= 3);
        if let Some(sign) = binary {
            let (left, right) = (self.words[self.at], self.words[self.at + 2]);
            self.at += 3;
            return self.compare(left, sign, right);
        }
        if rest > 1 && self.take(&["!"]) {
            let negated = self.one()?;
            return Some(!negated);
        }
        if rest > 2 && self.take(&["("]) {
            let value = self.any()?;
            return self.take(&[")"]).then_some(value);
        }
        let word = self.words[self.at];
        if rest > 1 && word.len() == 2 && word.starts_with('-') {
            let operand = self.words[self.at + 1];
            if let Some(value) = self.unary(word, operand) {
                self.at += 2;
                return Some(value);
            }
        }
        self.at += 1;
        Some(!word.is_empty())
    }

    fn unary(&self, sign: &str, operand: &str) -> Option<bool> {
        let shell = &*self.call.shell;
        let path = shell.path(operand);
        let node = shell.guest.files.get(&path).filter(|_| !operand.is_empty());
        Some(match sign {
            "-z" => operand.is_empty(),
            "-n" => !operand.is_empty(),
            "-e" | "-r" | "-w" => node.is_some(),
            "-f" => node.is_some_and(|node| matches!(node.kind, Kind::File(_))),
            "-d" => node.is_some_and(|node| node.kind == Kind::Directory),
            "-s" => node.is_some_and(|node| matches!(&node.kind, Kind::File(content) if !content.is_empty())),
            "-x" => node.is_some_and(|node| node.mode & 0o111 != 0),
            "-L" | "-h" => {
                let link = shell.guest.files.get_link(&path);
                link.is_some_and(|node| matches!(node.kind, Kind::Link(_)))
            }
            "-b" | "-c" | "-p" | "-S" | "-t" => false,
            "-v" => shell.state.variables.contains_key(operand),
            _ => return None,
        })
    }

    fn compare(&mut self, left: &str, sign: &str, right: &str) -> Option<bool> {
        let equal = || match self.call.name {
            "[[" => pattern::matches(right, left),
            _ => left == right,
        };
        Some(match sign {
            "=" | "==" => equal(),
            "!=" => !equal(),
            "<" => left < right,
            ">" => left > right,
            "=~" => regex::Regex::new(right).is_ok_and(|regex| regex.is_match(left)),
            _ => {
                let (a, b): (i64, i64) = (left.trim().parse().ok()?, right.trim().parse().ok()?);
                match sign {
                    "-eq" => a == b,
                    "-ne" => a != b,
                    "-lt" => a < b,
                    "-le" => a <= b,
                    "-gt" => a > b,
                    _ => a >= b,
                }
            }
        })
    }
}

fn is_binary(word: &str) -> bool {
    matches!(word, "=" | "==" | "!=" | "<" | ">" | "=~" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}
