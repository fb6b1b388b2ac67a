//! `$(( … ))`: integer arithmetic.

/// Maximum nesting.
const DEPTH: usize = 32;

/// The value of an expression; `variable` returns the values of names.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> i64) -> Result<i64, String> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0, variable };
    let value = parser.level(0)?;
    parser.blanks();
    if parser.at < parser.text.len() { Err(parser.error()) } else { Ok(value) }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    variable: &'a dyn Fn(&str) -> i64,
}

/// Binary operators, lowest precedence first. Longer operators precede their prefixes.
const LEVELS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

impl Parser<'_> {
    fn error(&self) -> String {
        let rest = String::from_utf8_lossy(&self.text[self.at.min(self.text.len())..]);
        format!("arithmetic syntax error (error token is \"{rest}\")")
    }

    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn level(&mut self, level: usize) -> Result<i64, String> {
        let Some(signs) = LEVELS.get(level) else { return self.value() };
        let mut left = self.level(level + 1)?;
        loop {
            self.blanks();
            let rest = &self.text[self.at..];
            let Some(sign) = signs.iter().find(|sign| rest.starts_with(sign.as_bytes())) else {
                return Ok(left);
            };
            self.at += sign.len();
            let right = self.level(level + 1)?;
            left = match *sign {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                _ if right == 0 => return Err("division by 0".to_owned()),
                "/" => left.wrapping_div(right),
                _ => left.wrapping_rem(right),
            };
        }
    }

    fn value(&mut self) -> Result<i64, String> {
        self.blanks();
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("expression recursion level exceeded".to_owned());
        }
        let value = match self.text.get(self.at) {
            Some(b'(') => {
                self.at += 1;
                let value = self.level(0)?;
                self.blanks();
                if self.text.get(self.at) != Some(&b')') {
                    return Err(self.error());
                }
                self.at += 1;
                value
            }
            Some(b'-') => {
                self.at += 1;
                self.value()?.wrapping_neg()
            }
            Some(b'!') => {
                self.at += 1;
                i64::from(self.value()? == 0)
            }
            Some(byte) if byte.is_ascii_digit() => {
                let digits = self.run(|byte| byte.is_ascii_digit());
                digits.parse().map_err(|_| self.error())?
            }
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
                let name = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                (self.variable)(&name)
            }
            _ => return Err(self.error()),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn run(&mut self, test: fn(u8) -> bool) -> String {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|byte| test(*byte)) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let variable = |name: &str| if name == "n" { 3 } else { 0 };
        for (text, value) in [
            ("1 + 2 * n", Ok(7)),
            ("(1+2)*n", Ok(9)),
            ("-n - -1", Ok(-2)),
            ("n >= 3 && n != 4", Ok(1)),
            ("!n || unset", Ok(0)),
            ("7 % 4 / 2", Ok(1)),
            ("1 / 0", Err("division by 0".to_owned())),
            ("", Err("arithmetic syntax error (error token is \"\")".to_owned())),
            ("1 2", Err("arithmetic syntax error (error token is \"2\")".to_owned())),
        ] {
            assert_eq!(evaluate(text, &variable), value, "{text}");
        }
        assert!(evaluate(&"(".repeat(1000), &variable).is_err());
    }
}
