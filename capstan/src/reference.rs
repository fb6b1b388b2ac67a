//! Generated pages of `docs/`, and checks of all pages. `CAPSTAN_UPDATE_DOCS=1 cargo test -p capstan reference` writes the
//! generated ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};

use crate::plugins::Plugins;
use crate::{cli, codes};

fn plugins() -> Plugins {
    Plugins::new(crate::providers())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned()
}

/// Fails if a generated page is out of date, or writes it.
fn check_page(page: &str, generated: &str) {
    let path = root().join("docs").join(page);
    if std::env::var_os("CAPSTAN_UPDATE_DOCS").is_some() {
        return std::fs::write(path, generated).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let first =
        committed.lines().zip(generated.lines()).find(|(committed, generated)| committed != generated);
    assert!(
        committed == generated,
        "docs/{page} is out of date; `CAPSTAN_UPDATE_DOCS=1 cargo test -p capstan reference` writes it. First difference: {first:?}"
    );
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn command(out: &mut String, path: &str, command: &mut Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let _ = write!(out, "\n## {path}\n\n{}.\n\n```text\n{usage}\n```\n", about.trim_end_matches('.'));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .collect();
    if !arguments.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for argument in arguments {
        let _ = writeln!(out, "| `{}` | {} |", cell(&title(argument)), cell(&meaning(argument)));
    }
    for inner in
        command.get_subcommands_mut().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let name = inner.get_name().to_owned();
        self::command(out, &format!("{path} {name}"), inner);
    }
}

fn title(argument: &Arg) -> String {
    let values: Vec<&str> =
        argument.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
    let value = if argument.get_action().takes_values() { values.join(" ") } else { String::new() };
    let flag = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    [flag, value].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !choices.is_empty() {
        let _ = write!(text, "; one of {}", choices.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default = defaults.join(",");
    if !default.is_empty() && argument.get_action().takes_values() {
        let _ = write!(text, "; default `{default}`");
    }
    text
}

#[test]
fn the_command_reference_is_up_to_date() {
    let mut page = String::from(
        "# Commands\n\n<!-- Generated from the command definitions; see capstan/src/reference.rs. -->\n\n\
         Data goes to stdout, notes and errors to stderr. Colours are used on terminals unless `NO_COLOR` is set. `CAPSTAN_LOG`\n\
         sets the log filter of `server`, `manager` and `sim` (`info`, `capstan_apiserver=debug`, …).\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | done, or nothing to do |\n\
         | 1 | failed, including wrong arguments; the error is on stderr |\n\
         | 2 | a comparison found differences (`plan`, `orphans`, `adopt`) |\n\
         | 3 | timed out |\n\
         | 4 | blocked: a user or operator has to act first; `capstan why` shows the fix |\n",
    );
    let mut program = cli::command(&plugins());
    program.build();
    for inner in
        program.get_subcommands_mut().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let name = inner.get_name().to_owned();
        command(&mut page, &format!("capstan {name}"), inner);
    }
    check_page("cli.md", &page);
}

/// (command, has `--output`, has `--dry-run`)
const COMMANDS: [(&str, bool, bool); 33] = [
    // Run until they are stopped.
    ("server", false, false),
    ("demo", false, false),
    ("manager", false, false),
    ("sim", false, false),
    // Write or print manifests.
    ("init", false, false),
    ("generate", false, false),
    ("import-credentials", false, false),
    // Shows a live view, or a line for every transition.
    ("up", false, true),
    ("plan", true, false),
    ("get", true, false),
    ("describe", true, false),
    ("why", true, false),
    // The result is the exit code.
    ("wait", false, false),
    ("events", true, false),
    ("scale", true, true),
    ("upgrade", true, true),
    ("set", true, true),
    ("delete", true, true),
    // Have formats of their own.
    ("kubeconfig", false, true),
    ("console", false, false),
    ("pause", true, true),
    ("resume", true, true),
    ("orphans", true, true),
    ("adopt", true, true),
    ("backup", false, false),
    ("restore", false, true),
    // Its verbs have flags of their own.
    ("store", false, false),
    ("encryption", false, false),
    // Only verifies; the result is the exit code.
    ("audit", false, false),
    ("doctor", true, false),
    ("top", true, false),
    ("support-bundle", false, false),
    ("version", true, false),
];

#[test]
fn commands_that_print_data_have_output_formats_and_those_that_change_something_a_dry_run() {
    let program = cli::command(&plugins());
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
    let has = |verb: &Command, flag: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(flag));
    let found: BTreeSet<(&str, bool, bool)> = verbs
        .filter(|verb| verb.get_name() != "completion")
        .map(|verb| (verb.get_name(), has(verb, "output"), has(verb, "dry-run")))
        .collect();
    assert_eq!(found, BTreeSet::from(COMMANDS));
}

#[test]
fn the_error_reference_is_up_to_date() {
    let mut page = String::from(
        "# Error codes\n\n<!-- Generated from the catalogues in the code; see capstan/src/reference.rs. -->\n\n\
         The message of a condition or an event starts with the code. Codes keep their meaning from release to release.\n\
         `capstan why CLUSTER` prints the codes that block a cluster with their fixes. *Fixed by* is the `user` who wrote the\n\
         manifest, the operator of the `cloud`, the `operator` of the management plane, a user with access to the workload\n\
         `cluster`, or `capstan` itself, which is a bug to report.\n",
    );
    let mut ids = BTreeSet::new();
    for (part, codes) in codes::catalogues(&plugins()) {
        let _ = write!(page, "\n## {part}\n\n| code | what failed | fixed by | fix |\n|---|---|---|---|\n");
        for code in codes {
            assert!(ids.insert(code.id()), "{code} is in two catalogues");
            let entry = code.0;
            let _ = writeln!(
                page,
                "| `{code}` | {} | {} | {} |",
                cell(entry.title),
                entry.fault,
                cell(entry.mend)
            );
        }
    }
    check_page("errors.md", &page);
}

/// A page without code blocks.
fn prose(text: &str) -> String {
    let mut code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Markdown files of the repository's root, `docs/` and `docs/dev/`.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let folders = [root.clone(), root.join("docs"), root.join("docs/dev")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    for expected in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/cli.md", "docs/dev/interop.md"]
    {
        assert!(pages.contains(&root.join(expected)), "{expected} is not checked");
    }
    pages
}

#[test]
fn links_between_pages_work() {
    let root = root();
    let pages = pages();
    let mut dead = Vec::new();
    for page in &pages {
        let text = prose(&std::fs::read_to_string(page).expect("a page"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let found = match std::fs::read_to_string(&target) {
                Ok(text) if !heading.is_empty() => prose(&text)
                    .lines()
                    .filter_map(|line| {
                        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
                    })
                    .any(|line| anchor(line) == heading),
                Ok(_) => true,
                Err(_) => target.exists() && heading.is_empty(),
            };
            if !found {
                dead.push(format!("{}: {link}", page.strip_prefix(&root).expect("below").display()));
            }
        }
    }
    assert!(dead.is_empty(), "broken links: {dead:#?}");
}

#[test]
fn every_page_is_linked_from_the_readme_or_the_contributing_guide() {
    let root = root();
    let start: String = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
        .iter()
        .map(|page| std::fs::read_to_string(root.join(page)).expect("a page"))
        .collect();
    let paths = pages().into_iter().map(|page| page.strip_prefix(&root).expect("below").to_owned());
    let lost: Vec<String> = paths
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| path.starts_with("docs/") && !start.contains(&format!("({path}")))
        .collect();
    assert!(lost.is_empty(), "neither README.md nor CONTRIBUTING.md links to: {lost:?}");
}
