//! The console as programs of the machine write to it: with the time since power-on, and without secrets.

use tokio::time::Instant;

use crate::console::Console;

/// What stands in place of a secret.
const MASK: &str = "********";
/// Shorter lines of a secret file say nothing that must be hidden, and would hide much else.
const SHORTEST: usize = 8;
/// A run of base64 this long is a key or a file.
const LONG_RUN: usize = 120;
/// What is longer is cut: a console is no file.
const LONGEST: usize = 1024;

/// A machine's console.
pub(super) struct Screen {
    console: Console,
    powered: Instant,
    /// Who writes, such as `cloud-init[812]`.
    writer: String,
    /// A line that has not ended yet.
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

    /// Says who writes from here on.
    pub(super) fn written_by(&mut self, writer: &str) {
        self.flush();
        self.writer = writer.to_owned();
    }

    /// Nothing that is in this text is ever shown, line by line.
    pub(super) fn hide(&mut self, text: &str) {
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
        self.secrets.extend(lines.map(str::to_owned));
    }

    /// Seconds since power-on.
    pub(super) fn uptime(&self) -> f64 {
        self.powered.elapsed().as_secs_f64()
    }

    /// Prints a line.
    pub(super) fn line(&mut self, text: &str) {
        self.flush();
        self.print(text);
    }

    /// Prints bytes, of which the last line may still go on.
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

    /// A line without secrets: private keys, tokens, certificate keys, long runs of base64, and what was hidden.
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

/// Masks words that are secrets by their form.
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

/// What is shown of a run, if it has the form of a secret.
fn secret_form(run: &str) -> Option<String> {
    // In `--token=…` the run begins with the flag.
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

/// Whether a word has the form of a bootstrap token.
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
        let said: Vec<&str> = text.lines().filter_map(|line| line.split(": ").nth(1)).collect();
        assert_eq!(said, ["one", "two", "three", "four"]);
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_are_not_shown() {
        let mut screen = Screen::new(Console::default(), Instant::now());
        screen.hide("hunter-two\n");
        let key = "a".repeat(64);
        for (said, shown) in [
            ("password hunter-two!", "password ********!"),
            ("token: abcdef.0123456789abcdef", "token: abcdef.********"),
            ("join --token=abcdef.0123456789abcdef.", "join --token=abcdef.********"),
            ("not.a.token 1.2.3", "not.a.token 1.2.3"),
            ("clear\u{1b}[31m", "clear[31m"),
        ] {
            assert_eq!(screen.masked(said), shown);
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
