//! What users read, as snapshots.
//!
//! `INSTA_UPDATE=always cargo test -p capstan --test it output` writes them.

use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::program::{capstan, capstan_in, succeeded};
use crate::sample::{quick, simulated};
use crate::verbs::{on, on_dir};

/// Commands of a test and what they print, as a user sees them.
pub struct Transcript {
    text: String,
    /// Directories of the test, and what stands for them.
    dirs: Vec<(PathBuf, &'static str)>,
}

impl Transcript {
    /// For a test that has its files below a directory.
    pub fn new(dir: &Path) -> Self {
        Self { text: String::new(), dirs: vec![(dir.to_owned(), "[DIR]")] }
    }

    /// Shows another directory under a name of its own.
    pub fn with_dir(mut self, dir: &Path, name: &'static str) -> Self {
        self.dirs.push((dir.to_owned(), name));
        self
    }

    /// Runs a command.
    pub fn run(&mut self, arguments: &[&str]) -> Output {
        self.add(arguments, capstan(arguments))
    }

    /// Runs a command with environment variables, which are not shown.
    pub fn run_in(&mut self, environment: &[(&str, &Path)], arguments: &[&str]) -> Output {
        self.add(arguments, capstan_in(environment, arguments))
    }

    /// Runs a command on the server of a data directory, which is not shown.
    pub fn run_on(&mut self, dir: &Path, arguments: &[&str]) -> Output {
        self.add(arguments, on_dir(dir, arguments))
    }

    /// Runs `capstan up` on the server of a data directory. Its progress, which differs from run to run, is not shown.
    pub fn run_up(&mut self, dir: &Path, arguments: &[&str]) {
        let arguments = [&["up"], arguments].concat();
        let output = Output { stdout: Vec::new(), ..on_dir(dir, &arguments) };
        self.add(&arguments, output);
    }

    fn run_each_on(&mut self, dir: &Path, commands: &[&[&str]]) {
        for arguments in commands {
            self.run_on(dir, arguments);
        }
    }

    /// Adds a command that has run.
    pub fn add(&mut self, arguments: &[&str], output: Output) -> Output {
        let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
        let words: Vec<String> = arguments.iter().map(quoted).collect();
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part).into_owned());
        let code = output.status.code().unwrap();
        self.text.push_str(&format!("$ capstan {}\n{stdout}{stderr}[exit {code}]\n\n", words.join(" ")));
        output
    }

    /// Adds a comment: what is different when the next command runs.
    pub fn note(&mut self, what: &str) {
        self.text.push_str(&format!("# {what}\n"));
    }

    /// Adds a file that a command has written.
    pub fn add_file(&mut self, path: &Path) {
        let content = std::fs::read_to_string(path).unwrap();
        self.text.push_str(&format!("$ cat {}\n{content}\n", path.display()));
    }

    /// Snapshots all of it, without what differs from run to run.
    pub fn assert(self, name: &str) {
        let replaced =
            |text: String, (dir, shown): &(PathBuf, &str)| text.replace(dir.to_str().unwrap(), shown);
        let text = self.dirs.iter().fold(self.text, replaced);
        assert_filtered(name, &text);
    }
}

/// Snapshots a text without what differs from run to run.
fn assert_filtered(name: &str, text: &str) {
    let filters = vec![
        (r"127\.\d+\.\d+\.\d+:\d{5}\b", "[ADDRESS]"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[UID]"),
        // Names are generated without vowels.
        (r"-[b-df-hj-np-tv-xz24-9]{5}-[b-df-hj-np-tv-xz24-9]{5}\b", "-[SET]-[ID]"),
        (r"-workers-[b-df-hj-np-tv-xz24-9]{5}\b", "-workers-[SET]"),
        (r"-[b-df-hj-np-tv-xz24-9]{5}\b", "-[ID]"),
        (r"\b[0-9a-f]{64}\b", "[HASH]"),
        (r"fingerprint [0-9a-f]+", "fingerprint [FINGERPRINT]"),
        // Whether the disk of the test is nearly full is not our concern.
        (r"warn   the disk of .*\n.*\n", ""),
        // Progress of work that takes long.
        (r"    \d+ values are encrypted so far\n", ""),
        // What a server has written by itself until it was stopped.
        (r"\d+ objects (up to|from) resource version \d+", "[N] objects $1 resource version [VERSION]"),
        (r"the restored server starts at \d+", "the restored server starts at [VERSION]"),
        (r"\d+ objects (would be )?(imported|removed)", "[N] objects $1$2"),
        (r"a snapshot of \d+ objects", "a snapshot of [N] objects"),
        (r"\d+ values: not to be encrypted", "[N] values: not to be encrypted"),
        (r"wal-\d+\.log was cut off: it has \d+ bytes", "wal-[N].log was cut off: it has [N] bytes"),
        (r"changes from resource version \d+ on", "changes from resource version [VERSION] on"),
        (r"damaged at byte \d+", "damaged at byte [OFFSET]"),
        // The first that the file system lists.
        (r"is not empty \(it has [^)]+\)", "is not empty (it has [FILE])"),
        (r"(ENDPOINT_PORT=|port: )\d{5}\b", "$1[PORT]"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[TIME]"),
        (r"\b\d+:\d\d  ", "[CLOCK]  "),
        (r"about \d+ (s|min)", "about [SPAN]"),
        // Machines of one rollout may become ready in any order.
        (r"new machine \d+", "new machine [N]"),
        (r"(  |\(|since )\d+(m\d+)?[smh]\b", "$1[AGE]"),
        // The width of columns depends on ages and names.
        (r"([^\s#]) {2,}", "$1  "),
    ];
    insta::with_settings!({filters => filters, omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, text);
    });
}

/// Snapshots a help text, which is the same in every run.
fn assert_help(name: &str, text: &str) {
    let filters = vec![(r"127\.0\.0\.1:\d+", "[ADDRESS]")];
    insta::with_settings!({filters => filters, omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn help_of_every_command() {
    let all = succeeded(capstan(&["--help"]));
    let lines =
        all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"why") && names.len() > 20, "{all}");
    assert_help("help", &all);
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = succeeded(capstan(&[name, "--help"]));
        assert_help(&format!("help-{name}"), &help);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_is_possible() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    let mut transcript = Transcript::new(dir.path());
    transcript.run_each_on(
        dir.path(),
        &[
            &["get", "pods"],
            &["get", "cluster", "x"],
            &["get", "clusters"],
            &["describe", "x"],
            &["why", "x"],
            &["wait", "x"],
            &["wait", "x", "--for", "done"],
            &["wait", "x", "--timeout", "soon"],
            &["events", "x"],
            &["scale", "x", "--control-plane", "3"],
            &["scale", "x"],
            &["upgrade", "x", "--to", "v1.36.0"],
            &["pause", "x"],
            &["delete", "x"],
            &["delete", "pod", "x"],
            &["kubeconfig", "x"],
            &["console", "x"],
            &["plan", "--delete", "md/x"],
            &["plan", "--delete", "x"],
        ],
    );
    transcript.assert("errors");
    drop(server);
    let at = dir.path().to_str().unwrap();
    let mut transcript = Transcript::new(dir.path());
    transcript.run(&["get", "clusters", "--data-dir", at]);
    transcript.run(&["get", "clusters", "--data-dir", "/nonexistent"]);
    transcript.run(&["doctor", "--data-dir", at]);
    transcript.assert("errors-without-server");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_about_a_cluster() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    let mut transcript = Transcript::new(dir.path());
    transcript.run_each_on(
        dir.path(),
        &[
            &["describe", "quick"],
            &["describe", "quick", "--all"],
            &["why", "quick"],
            &["get", "clusters"],
            &["get", "clusters", "-o", "wide"],
            &["doctor"],
            &["orphans"],
            &["scale", "quick", "--control-plane", "2"],
            &["scale", "quick", "--workers", "nobody=2"],
            &["scale", "quick", "--workers", "workers=2", "--dry-run"],
            &["upgrade", "quick", "--to", "v1.38.0"],
            &["upgrade", "quick", "--to", "v1.35.0"],
            &["upgrade", "quick", "--to", "v1.36.1", "--dry-run"],
            &["plan", "--delete", "md/quick-workers"],
            &["plan", "--delete", "cluster/quick"],
            &["pause", "quick"],
            &["pause", "quick"],
            &["why", "quick"],
            &["resume", "quick"],
        ],
    );
    transcript.assert("cluster");
}
