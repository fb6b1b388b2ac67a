//! The console of programs on the machine: with uptime, and without secrets.

use tokio::time::Instant;

use crate::console::Console;

const MASK: &str = "********";
/// Shorter lines of a secret file are not hidden: they would match too much.
const SHORTEST: usize = 8;
/// Longer base64 is a key or a file.
const LONG_RUN: usize = 120;
/// Longer lines are truncated.
const LONGEST: usize = 1024;

pub(super) struct Screen {
    console: Console,
    powered: Instant,
    /// Program that prints, such as `cloud-init[812]`.
    writer: String,
    /// The current incomplete line.
    partial: String,
    secrets: Vec<String>,
    in_key: bool,
}

impl Screen {
    pub(super) fn new(console: Console, powered: Instant) -> Self {
        Self {
            console,
            powered,
            writer: "kernel".to_owned(),
            partial: String::new(),
            secrets: Vec::new(),
            in_key: false,
        }
    }

    /// Sets the program that prints.
    pub(super) fn written_by(&mut self, writer: &str) {
        self.flush();
        self.writer = writer.to_owned();
    }

    /// Hides every line of this text from now on.
    pub(super) fn hide(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
        self.secrets.extend(lines.map(str::to_owned));
    }

    /// Seconds since power-on.
    pub(super) fn uptime(&self) -> f64 {
        self.powered.elapsed().as_secs_f64()
    }

    pub(super) fn line(&mut self, text: &str) {
        self.flush();
        self.print(text);
    }

    /// Prints bytes; the last line may be incomplete.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.partial.push_str(&String::from_utf8_lossy(bytes));
        while let Some(end) = self.partial.find('\n') {
            let rest = self.partial.split_off(end + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            self.print(line.trim_end_matches(['\n', '\r']));
        }
        if self.partial.len() > LONGEST {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.print(&line);
        }
    }

    fn print(&mut self, text: &str) {
        let text = self.masked(text);
        self.console.line(format!("[{:12.6}] {}: {text}", self.uptime(), self.writer));
    }

    /// Masks secrets in a line: private keys, tokens, certificate keys, long base64, and hidden texts.
    pub(super) fn masked(&mut self, text: &str) -> String {
        if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
            self.in_key = true;
        }
        if self.in_key {
            self.in_key = !text.contains("-----END");
            return MASK.to_owned();
        }
        let mut text: String = text.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        let mut text = mask_runs(&text);
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        text
    }
}

/// Masks words with the format of a secret.
fn mask_runs(text: &str) -> String {
    let in_run = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '/' | '=' | '_' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(in_run) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !in_run(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let is_hash = out.ends_with("sha256:");
        match secret_form(run) {
            Some(shown) if !is_hash => out.push_str(&shown),
            _ => out.push_str(run),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The replacement of a word with the format of a secret.
fn secret_form(run: &str) -> Option<String> {
    // In `--token=…` the word starts with the flag.
    if let Some((flag, value)) = run.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
        return secret_form(value).map(|shown| format!("{flag}={shown}"));
    }
    let word = run.trim_end_matches('.');
    if is_token(word) {
        return Some(format!("{}.{MASK}", &word[..6]));
    }
    let hex = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let base64 = run.len() >= LONG_RUN
        && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    (hex || base64).then(|| MASK.to_owned())
}

/// Whether a word has the format of a bootstrap token.
pub(super) fn is_token(word: &str) -> bool {
    word.split_once('.').is_some_and(|(id, secret)| {
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_carry_the_time_since_power_on() {
        let console = Console::default();
        let mut screen = Screen::new(console.clone(), Instant::now());
        screen.written_by("cloud-init[1]");
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        screen.write(b"one\ntw");
        screen.write(b"o\nthree");
        screen.line("four");
        let text = console.text();
        assert!(text.starts_with("[    1.500000] cloud-init[1]: one\n"), "{text}");
        let lines: Vec<&str> = text.lines().filter_map(|line| line.split(": ").nth(1)).collect();
        assert_eq!(lines, ["one", "two", "three", "four"]);
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_are_not_shown() {
        let mut screen = Screen::new(Console::default(), Instant::now());
        screen.hide("hunter-two\n");
        let key = "a".repeat(64);
        for (line, shown) in [
            ("password hunter-two!", "password ********!"),
            ("token: abcdef.0123456789abcdef", "token: abcdef.********"),
            ("join --token=abcdef.0123456789abcdef.", "join --token=abcdef.********"),
            ("not.a.token 1.2.3", "not.a.token 1.2.3"),
            ("clear\u{1b}[31m", "clear[31m"),
        ] {
            assert_eq!(screen.masked(line), shown);
        }
        assert_eq!(screen.masked(&format!("--certificate-key {key}")), "--certificate-key ********");
        assert_eq!(screen.masked(&format!("sha256:{key}")), format!("sha256:{key}"));
        assert_eq!(screen.masked(&format!("{}==", "A".repeat(LONG_RUN))), MASK);
        for line in ["-----BEGIN EC PRIVATE KEY-----", "MHcCAQ", "-----END EC PRIVATE KEY-----"] {
            assert_eq!(screen.masked(line), MASK);
        }
        assert_eq!(screen.masked("after"), "after");
        assert!(screen.masked(&"word ".repeat(1000)).len() <= LONGEST + 4);
    }
}
