//! What users read, as snapshots.
//!
//! `INSTA_UPDATE=always cargo test -p capstan --test it output` writes them.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::program::{Server, capstan, succeeded};
use crate::sample::{quick, simulated};
use crate::verbs::on;

/// Snapshots a text without what differs from run to run.
pub fn assert_output(name: &str, text: &str, dir: &Path) {
    let text = text.replace(dir.to_str().unwrap(), "[DIR]");
    let filters = vec![
        (r"127\.\d+\.\d+\.\d+:\d+", "[ADDRESS]"),
        (r"quick-workers-[a-z0-9]{5}-[a-z0-9]{5}\b", "quick-workers-[SET]-[ID]"),
        (r"quick-workers-[a-z0-9]{5}\b", "quick-workers-[SET]"),
        (r"quick-[a-z0-9]{5}\b", "quick-[ID]"),
        // Whether the disk of the test is nearly full is not our concern.
        (r"warn   the disk of .*\n.*\n", ""),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[TIME]"),
        (r"\b\d+:\d\d  ", "[CLOCK]  "),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[UID]"),
        (r"about \d+ (s|min)", "about [SPAN]"),
        // Machines of one rollout may become ready in any order.
        (r"new machine \d+", "new machine [N]"),
        (r"(  |\(|since )\d+(m\d+)?[smh]\b", "$1[AGE]"),
        // The width of columns depends on ages and names.
        (r"(\S) {2,}", "$1  "),
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

/// What a command printed, as a user sees it.
fn transcript(arguments: &[&str], output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap();
    format!(
        "$ capstan {}\n{}{}[exit {code}]\n\n",
        arguments.join(" "),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Snapshots what commands print, one after the other.
fn assert_transcript(name: &str, server: &Server, commands: &[&[&str]]) {
    let text: String =
        commands.iter().map(|arguments| transcript(arguments, &on(server, arguments))).collect();
    assert_output(name, &text, &server.dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_is_possible() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    assert_transcript(
        "errors",
        &server,
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
    drop(server);
    let at = dir.path().to_str().unwrap();
    let mut text = String::new();
    for arguments in [
        &["get", "clusters", "--data-dir", at][..],
        &["get", "clusters", "--data-dir", "/nonexistent"],
        &["doctor", "--data-dir", at],
    ] {
        text.push_str(&transcript(arguments, &capstan(arguments)));
    }
    assert_output("errors-without-server", &text, dir.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_about_a_cluster() {
    let dir = TempDir::new().unwrap();
    let server = simulated(dir.path());
    quick(&server).await;
    succeeded(on(&server, &["wait", "quick", "--timeout", "5m"]));
    assert_transcript(
        "cluster",
        &server,
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
}
