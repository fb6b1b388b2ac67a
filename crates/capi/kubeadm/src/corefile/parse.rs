//! Parses Corefiles: tokens, lines and blocks.

use super::{Corefile, MigrateError, Plugin, Server, Setting};

/// A token and the line it begins on.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

impl Token {
    /// Whether `other` begins on the line where this token ends; quoted tokens may span lines.
    fn same_line(&self, next: &Self) -> bool {
        self.line + self.text.matches('\n').count() == next.line
    }
}

impl Corefile {
    /// Parses a Corefile as CoreDNS' parser splits it. Blocks nested below options are skipped.
    pub(super) fn parse(text: &str) -> Result<Self, MigrateError> {
        let tokens = tokens(text);
        let mut corefile = Self::default();
        let mut depth = 0;
        // Options belong to the last plugin, in whichever server it is.
        let mut last = None;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                name => {
                    let name = name.to_owned();
                    let mut args = Vec::new();
                    while let Some(next) = tokens.get(at)
                        && tokens[at - 1].same_line(next)
                        && next.text != "{"
                    {
                        args.push(next.text.clone());
                        at += 1;
                    }
                    corefile.take(depth, name, args, &mut last)?;
                }
            }
        }
        Ok(corefile)
    }

    fn take(
        &mut self,
        depth: i32,
        name: String,
        mut args: Vec<String>,
        last: &mut Option<(usize, usize)>,
    ) -> Result<(), MigrateError> {
        match depth {
            0 => {
                args.insert(0, name);
                self.servers.push(Server { domains: args, plugins: Vec::new() });
            }
            1 => {
                let index = self.servers.len().checked_sub(1);
                let index = index.ok_or(MigrateError::Malformed("a plugin is outside of a server block"))?;
                let plugins = &mut self.servers[index].plugins;
                plugins.push(Plugin { name, args, options: Vec::new() });
                *last = Some((index, plugins.len() - 1));
            }
            2 => {
                let (server, plugin) =
                    last.ok_or(MigrateError::Malformed("an option is outside of a plugin"))?;
                self.servers[server].plugins[plugin].options.push(Setting { name, args });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Splits a text into tokens. A token that begins with a quote extends to the closing quote; only quotes can be
/// escaped in it. `#` starts a comment to the end of the line or, inside a token, to the end of that token.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut characters = text.strip_prefix('\u{feff}').unwrap_or(text).chars();
    let mut line = 1;
    while let Some(token) = token(&mut characters, &mut line) {
        tokens.push(token);
    }
    tokens
}

fn token(characters: &mut std::str::Chars<'_>, line: &mut usize) -> Option<Token> {
    let mut token = Token { text: String::new(), line: *line };
    let mut hidden = false;
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            if character == '\n' {
                *line += 1;
                hidden = false;
            }
            if character != '\r' && !token.text.is_empty() {
                return Some(token);
            }
            continue;
        }
        hidden |= character == '#';
        if hidden {
            continue;
        }
        if token.text.is_empty() {
            token.line = *line;
            if character == '"' {
                return quoted(characters, line, token);
            }
        }
        token.text.push(character);
    }
    Some(token).filter(|token| !token.text.is_empty())
}

/// The rest of a quoted token; `None` if it is empty and unterminated.
fn quoted(characters: &mut std::str::Chars<'_>, line: &mut usize, mut token: Token) -> Option<Token> {
    let mut escaped = false;
    for character in characters.by_ref() {
        if !escaped && character == '\\' {
            escaped = true;
            continue;
        }
        if !escaped && character == '"' {
            return Some(token);
        }
        if character == '\n' {
            *line += 1;
        }
        if escaped && character != '"' {
            token.text.push('\\');
        }
        token.text.push(character);
        escaped = false;
    }
    Some(token).filter(|token| !token.text.is_empty())
}
