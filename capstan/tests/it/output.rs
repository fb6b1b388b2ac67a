//! What users read, as snapshots.
//!
//! `INSTA_UPDATE=always cargo test -p capstan --test it output` writes them.

use std::path::Path;

use crate::program::{capstan, succeeded};

/// Snapshots a text without what differs from run to run.
fn assert_output(name: &str, text: &str, dir: &Path) {
    let text = text.replace(dir.to_str().unwrap(), "[DIR]");
    let filters = vec![
        (r"127\.0\.0\.1:\d+", "[ADDRESS]"),
        (r"quick-workers-[a-z0-9]{5}-[a-z0-9]{5}\b", "quick-workers-[SET]-[ID]"),
        (r"quick-workers-[a-z0-9]{5}\b", "quick-workers-[SET]"),
        (r"quick-[a-z0-9]{5}\b", "quick-[ID]"),
        // Whether the disk of the test is nearly full is not our concern.
        (r"warn   the disk of .*\n.*\n", ""),
    ];
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
    assert_output("help", &all, Path::new("/nonexistent"));
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = succeeded(capstan(&[name, "--help"]));
        assert_output(&format!("help-{name}"), &help, Path::new("/nonexistent"));
    }
}
