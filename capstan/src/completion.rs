//! `capstan completion`: scripts of shells, with names of clusters and machines from the server.

use std::collections::BTreeSet;

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

/// Words after `delete` that name a kind, before the name.
const MACHINE_KINDS: [&str; 3] = ["machine", "machines", "ma"];
const CLUSTER_KINDS: [&str; 3] = ["cluster", "clusters", "cl"];
/// Flags of [`ConnectionArgs`](crate::connection::ConnectionArgs): where the names are.
const CONNECTION: [&str; 4] = ["-n", "--namespace", "--data-dir", "--kubeconfig"];

/// The script of a shell.
pub fn script(shell: Shell, mut command: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "capstan", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => format!("{script}{}", bash(&command)),
        Shell::Fish => format!("{script}{}", fish()),
        Shell::Zsh => zsh(&script),
        _ => script,
    }
}

/// A kind and the commands that take its names.
fn kinds() -> [(&'static str, &'static [&'static str]); 2] {
    [("clusters", &CLUSTERS), ("machines", &MACHINES)]
}

/// The flags of commands with names that are followed by a value.
fn flags_with_values(command: &Command) -> BTreeSet<String> {
    let commands = CLUSTERS.iter().chain(&MACHINES).filter_map(|verb| command.find_subcommand(verb));
    let flags = commands.flat_map(Command::get_arguments);
    let flags = flags.filter(|it| !it.is_positional() && it.get_action().takes_values());
    flags
        .flat_map(|flag| {
            let long = flag.get_long().map(|long| format!("--{long}"));
            [long, flag.get_short().map(|short| format!("-{short}"))]
        })
        .flatten()
        .collect()
}

/// Asks the server after the flags were completed. A server that does not answer completes nothing.
fn bash(command: &Command) -> String {
    let words = |before: &str, words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{before}{word}\"")).collect();
        quoted.join("|")
    };
    let verbs: String = kinds()
        .map(|(kind, verbs)| {
            let verbs: Vec<String> = verbs.iter().map(|verb| format!("\"{verb} \"")).collect();
            format!("        {}) kind={kind} ;;\n", verbs.join("|"))
        })
        .concat();
    let values: Vec<String> = flags_with_values(command).into_iter().collect();
    format!(
        "
_capstan_names() {{
    _capstan \"$@\"
    local word=\"\" verb=\"\" target=\"\" kind=\"\" index
    local -a from=()
    if [[ \"$2\" == -* ]]; then
        return 0
    fi
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=\"${{COMP_WORDS[index]}}\"
        case \"$word\" in
        {values})
            if [[ \"${{COMP_WORDS[index + 1]}}\" == \"=\" ]]; then
                index=$((index + 1))
            fi
            index=$((index + 1))
            # It is the value that is completed.
            if ((index >= COMP_CWORD)); then
                return 0
            fi
            case \"$word\" in
            {connection}) from+=(\"$word\" \"${{COMP_WORDS[index]/#\\~/$HOME}}\") ;;
            esac
            ;;
        -* | =) ;;
        *)
            if [[ -z \"$verb\" ]]; then
                verb=\"$word\"
            elif [[ -z \"$target\" ]]; then
                target=\"$word\"
            else
                return 0
            fi
            ;;
        esac
    done
    case \"$verb $target\" in
        {machine_kinds}) kind=machines ;;
        {cluster_kinds}) kind=clusters ;;
{verbs}    esac
    if [[ -n \"$kind\" ]]; then
        COMPREPLY=($(compgen -W \"$(capstan get $kind \"${{from[@]}}\" -o name 2>/dev/null | sed 's|.*/||')\" -- \"$2\"))
    fi
}}
complete -F _capstan_names -o bashdefault -o default capstan
",
        values = values.join(" | "),
        connection = CONNECTION.join(" | "),
        machine_kinds = words("delete ", &MACHINE_KINDS),
        cluster_kinds = words("delete ", &CLUSTER_KINDS),
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
    let functions: String =
        kinds().map(|(kind, _)| format!("_capstan_{kind}() {{\n    _capstan_names {kind}\n}}\n")).concat();
    let functions = format!(
        "_capstan_names() {{
    local -a from names
    local flag
    for flag in {}; do
        [[ -n \"${{opt_args[$flag]}}\" ]] && from+=(\"$flag\" \"${{(Q)opt_args[$flag]}}\")
    done
    names=(${{(f)\"$(capstan get $1 $from -o name 2>/dev/null | sed 's|.*/||')\"}})
    compadd -a names
}}
{functions}_capstan_targets() {{
    case \"${{words[CURRENT-1]}}\" in
        {}) _capstan_names machines ;;
        *) _capstan_names clusters ;;
    esac
}}
",
        CONNECTION.join(" "),
        MACHINE_KINDS.join("|"),
    );
    let named = |line: &str| {
        let start = line.trim_start();
        let positional = ["':", "'::", "'*:"].iter().any(|begin| start.starts_with(begin));
        let kind = match positional {
            true if line.contains(" -- Name of a cluster") || line.contains(" -- Name of the cluster") => {
                "clusters"
            }
            true if line.contains(" -- Name of the machine") => "machines",
            true if line.contains(" KIND is cluster ") => "targets",
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
            bash.contains("|\"why \"|")
                && bash.ends_with("complete -F _capstan_names -o bashdefault -o default capstan\n")
        );
        let fish = script(Shell::Fish, command());
        assert!(fish.contains("(capstan get machines -o name"), "{fish}");
        let zsh = script(Shell::Zsh, command());
        assert!(zsh.starts_with("#compdef capstan\n_capstan_names()"), "{}", &zsh[..200]);
        assert!(zsh.contains("Name of a cluster or a machine:_capstan_clusters'"));
        assert!(zsh.contains("Name of the machine:_capstan_machines'"));
        let delete = zsh.lines().find(|line| line.contains("KIND is cluster")).expect("the target of delete");
        assert!(delete.trim_end_matches([' ', '\\']).ends_with(":_capstan_targets'"), "{delete}");
    }

    /// What bash offers after these words, from a server whose objects are named after the arguments of `get`.
    fn offered(script: &std::path::Path, words: &[&str]) -> String {
        let line = "source \"$1\"; shift; capstan() { echo \"x/$*\" | tr ' ' '_'; }; compopt() { :; }
            COMP_WORDS=(capstan \"$@\"); COMP_CWORD=$#
            _capstan_names capstan \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
            [[ ${#COMPREPLY[@]} == 1 ]] && echo \"${COMPREPLY[0]}\"; true";
        let mut command = std::process::Command::new("bash");
        let output = command.args(["-c", line, "bash"]).arg(script).args(words).output().expect("bash");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    #[test]
    fn bash_offers_names_of_the_kind_and_place_that_the_line_has() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("capstan.bash");
        let command = crate::cli::command(&Plugins::new(crate::providers()));
        std::fs::write(&file, script(Shell::Bash, command)).expect("written");
        for (words, expected) in [
            (&["why", ""][..], "get_clusters_-o_name"),
            (&["console", ""], "get_machines_-o_name"),
            (&["delete", ""], "get_clusters_-o_name"),
            (&["delete", "cluster", ""], "get_clusters_-o_name"),
            (&["delete", "machine", ""], "get_machines_-o_name"),
            (&["delete", "--yes", "machine", ""], "get_machines_-o_name"),
            (&["delete", "--yes", ""], "get_clusters_-o_name"),
            (&["delete", "--timeout", ""], ""),
            (&["why", "-n", "team", ""], "get_clusters_-n_team_-o_name"),
            (&["why", "--namespace", "=", "team", ""], "get_clusters_--namespace_team_-o_name"),
            (&["-n", "team", "why", ""], "get_clusters_-n_team_-o_name"),
            (&["pause", "--data-dir", "d", ""], "get_clusters_--data-dir_d_-o_name"),
            (&["wait", "--for", ""], ""),
            (&["scale", "demo", ""], ""),
        ] {
            let found = offered(&file, words);
            match expected {
                // Flags, or the values of one.
                "" => assert!(!found.starts_with("get_"), "{words:?}: {found}"),
                expected => assert_eq!(found, expected, "{words:?}"),
            }
        }
    }
}
