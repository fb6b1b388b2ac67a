//! `capstan completion`: scripts of shells, with names of clusters and machines from the server.

use clap::Command;
use clap_complete::Shell;

/// Commands whose first argument is the name of a cluster.
const CLUSTERS: [&str; 11] = [
    "describe",
    "why",
    "wait",
    "events",
    "scale",
    "upgrade",
    "set",
    "delete",
    "kubeconfig",
    "pause",
    "resume",
];
/// Commands whose first argument is the name of a machine.
const MACHINES: [&str; 1] = ["console"];

/// The script of a shell.
pub fn script(shell: Shell, mut command: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "capstan", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => format!("{script}{}", bash()),
        Shell::Fish => format!("{script}{}", fish()),
        Shell::Zsh => zsh(&script),
        _ => script,
    }
}

/// A kind and the commands that take its names.
fn kinds() -> [(&'static str, &'static [&'static str]); 2] {
    [("clusters", &CLUSTERS), ("machines", &MACHINES)]
}

/// Asks the server after the flags were completed. A server that does not answer completes nothing.
fn bash() -> String {
    let arms: String =
        kinds().map(|(kind, verbs)| format!("        {}) kind={kind} ;;\n", verbs.join("|"))).concat();
    format!(
        "
_capstan_names() {{
    _capstan \"$@\"
    local kind=\"\"
    case \"${{COMP_WORDS[1]}}\" in
{arms}    esac
    if [[ -n \"$kind\" && \"$2\" != -* && \"$3\" != -* ]]; then
        COMPREPLY=($(compgen -W \"$(capstan get $kind -o name 2>/dev/null | sed 's|.*/||')\" -- \"$2\"))
    fi
}}
complete -F _capstan_names -o bashdefault -o default capstan
"
    )
}

fn fish() -> String {
    let line = |(kind, verbs): (&str, &[&str])| {
        format!(
            "complete -c capstan -n \"__fish_capstan_using_subcommand {}\" -f -a \"(capstan get {kind} -o name \
             2>/dev/null | string replace -r '.*/' '')\"\n",
            verbs.join(" ")
        )
    };
    kinds().map(line).concat()
}

/// Arguments for names complete by functions instead of files.
fn zsh(script: &str) -> String {
    let functions: String = kinds()
        .map(|(kind, _)| {
            format!(
                "_capstan_{kind}() {{\n    local -a names\n    \
                 names=(${{(f)\"$(capstan get {kind} -o name 2>/dev/null | sed 's|.*/||')\"}})\n    compadd -a names\n}}\n"
            )
        })
        .concat();
    let named = |line: &str| {
        let positional = line.trim_start().starts_with("':") || line.trim_start().starts_with("'::");
        let kind = match positional {
            true if line.contains(" -- Name of a cluster") || line.contains(" -- Name of the cluster") => {
                "clusters"
            }
            true if line.contains(" -- Name of the machine") => "machines",
            _ => return line.to_owned(),
        };
        line.replace(":_default'", &format!(":_capstan_{kind}'"))
    };
    let lines: Vec<String> = script.lines().map(named).collect();
    // The first line names the command.
    match lines.split_first() {
        Some((first, rest)) => format!("{first}\n{functions}{}\n", rest.join("\n")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::Plugins;

    #[test]
    fn names_are_completed_by_the_server() {
        let command = || crate::cli::command(&Plugins::new(crate::providers()));
        for verb in CLUSTERS.iter().chain(&MACHINES) {
            assert!(command().find_subcommand(verb).is_some(), "{verb}");
        }
        let bash = script(Shell::Bash, command());
        assert!(
            bash.contains("|why|")
                && bash.ends_with("complete -F _capstan_names -o bashdefault -o default capstan\n")
        );
        let fish = script(Shell::Fish, command());
        assert!(fish.contains("(capstan get machines -o name"), "{fish}");
        let zsh = script(Shell::Zsh, command());
        assert!(zsh.starts_with("#compdef capstan\n_capstan_clusters()"), "{}", &zsh[..200]);
        assert!(zsh.contains("Name of a cluster or a machine:_capstan_clusters'"));
        assert!(zsh.contains("Name of the machine:_capstan_machines'"));
    }
}
