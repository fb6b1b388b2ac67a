//! Pages of `docs/` that are made from the code, and what holds of all pages. `CAPSTAN_UPDATE_DOCS=1 cargo test -p capstan
//! reference` writes them anew.

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

/// Fails if a page is not what the code says, or writes it.
fn holds(page: &str, made: &str) {
    let path = root().join("docs").join(page);
    if std::env::var_os("CAPSTAN_UPDATE_DOCS").is_some() {
        return std::fs::write(path, made).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "docs/{page} is not what the code says; `CAPSTAN_UPDATE_DOCS=1 cargo test -p capstan reference` writes it anew. First difference: {first:?}"
    );
}

/// Text in a cell of a table.
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
fn the_reference_of_commands_is_what_the_program_takes() {
    let mut page = String::from(
        "# Commands\n\n<!-- Made from the program's own definition; see capstan/src/reference.rs. -->\n\n\
         Data goes to stdout, talk to stderr. Colours are for terminals and not used where `NO_COLOR` is set. `CAPSTAN_LOG`\n\
         chooses what `server`, `manager` and `sim` log (`info`, `capstan_apiserver=debug`, …).\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | done, or nothing to do |\n\
         | 1 | failed, wrong arguments included; stderr says what |\n\
         | 2 | what is there differs from what was asked about |\n\
         | 3 | it was not there in time |\n\
         | 4 | blocked: it cannot get there until somebody does something about it |\n",
    );
    let mut program = cli::command(&plugins());
    program.build();
    for inner in
        program.get_subcommands_mut().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        let name = inner.get_name().to_owned();
        command(&mut page, &format!("capstan {name}"), inner);
    }
    holds("cli.md", &page);
}

/// What a verb does: shows data, changes something.
const VERBS: [(&str, bool, bool); 24] = [
    // These serve until they are stopped.
    ("server", false, false),
    ("demo", false, false),
    ("manager", false, false),
    ("sim", false, false),
    // What it follows is drawn, or told in lines.
    ("up", false, true),
    ("plan", true, false),
    ("get", true, false),
    ("describe", true, false),
    ("why", true, false),
    // Its exit code is its answer.
    ("wait", false, false),
    ("events", true, false),
    ("scale", true, true),
    ("upgrade", true, true),
    ("delete", true, true),
    // A kubeconfig has a form of its own, as consoles, backups, bundles and scripts have.
    ("kubeconfig", false, true),
    ("console", false, false),
    ("pause", true, true),
    ("resume", true, true),
    ("orphans", true, true),
    ("backup", false, false),
    ("restore", false, true),
    ("doctor", true, false),
    ("support-bundle", false, false),
    ("version", true, false),
];

#[test]
fn every_verb_shows_its_data_in_every_form_and_can_be_tried_if_it_changes_something() {
    let program = cli::command(&plugins());
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
    let has = |verb: &Command, flag: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(flag));
    let told: BTreeSet<(&str, bool, bool)> = verbs
        .filter(|verb| verb.get_name() != "completion")
        .map(|verb| (verb.get_name(), has(verb, "output"), has(verb, "dry-run")))
        .collect();
    assert_eq!(told, BTreeSet::from(VERBS));
}

#[test]
fn the_catalogue_of_errors_is_what_the_code_says() {
    let mut page = String::from(
        "# Error codes\n\n<!-- Made from the catalogues in the code; see capstan/src/reference.rs. -->\n\n\
         A code stands first in the message of a condition or an event and does not change its meaning from release to\n\
         release. `capstan why CLUSTER` shows the one that blocks, with its line of this page. *Whose turn* says who can do\n\
         something about it: the `user` who wrote the manifest, whoever runs the `cloud` or, as `operator`, the management\n\
         plane, the workload `cluster` or a machine of it, or `capstan` itself, which is a bug to report.\n",
    );
    let mut ids = BTreeSet::new();
    for (part, codes) in codes::catalogues(&plugins()) {
        let _ = write!(
            page,
            "\n## {part}\n\n| code | what failed | whose turn | how to mend it |\n|---|---|---|---|\n"
        );
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
    holds("errors.md", &page);
}

/// The text of a page without its blocks of code.
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

/// What a heading is linked by.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = root();
    let docs =
        std::fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root.join(name));
    let pages: Vec<PathBuf> =
        docs.chain(top).filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    let mut dead = Vec::new();
    for page in &pages {
        let text = prose(&std::fs::read_to_string(page).expect("a page"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let found = match std::fs::read_to_string(&target) {
                Ok(text) if !place.is_empty() => prose(&text)
                    .lines()
                    .filter_map(|line| {
                        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
                    })
                    .any(|heading| anchor(heading) == place),
                Ok(_) => true,
                Err(_) => target.exists() && place.is_empty(),
            };
            if !found {
                dead.push(format!("{}: {link}", page.strip_prefix(&root).expect("below").display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere: {dead:#?}");
}

#[test]
fn every_page_is_found_from_the_readme() {
    let root = root();
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a readme");
    let docs =
        std::fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").file_name());
    let lost: Vec<String> = docs
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md") && !readme.contains(&format!("docs/{name}")))
        .collect();
    assert!(lost.is_empty(), "README.md does not lead to: {lost:?}");
}
