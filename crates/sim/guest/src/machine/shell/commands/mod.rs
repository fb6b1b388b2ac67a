//! Commands: shell builtins, and the programs of a machine.

mod files;
mod system;
mod test;
mod text;

use std::time::Duration;

use super::{Flow, Io, Shell};
use crate::machine::files::Kind;
use crate::machine::{kubeadm, systemd};

/// Directories of programs.
const PROGRAMS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Maximum sleep.
const LONGEST_SLEEP: Duration = Duration::from_hours(24);

/// A program; returns its exit status.
type Program = fn(&mut Call<'_, '_, '_>) -> i32;

/// A program with its arguments.
pub(super) struct Call<'c, 'g, 'a> {
    shell: &'c mut Shell<'g, 'a>,
    name: &'c str,
    arguments: &'c [String],
    io: &'c Io,
}

impl Call<'_, '_, '_> {
    fn out(&mut self, text: &str) {
        self.shell.guest.write(&self.io.out, text.as_bytes());
    }

    fn line(&mut self, text: &str) {
        self.shell.guest.print(&self.io.out, text);
    }

    /// Prints an error prefixed with the program's name; returns the exit status.
    fn fail(&mut self, what: &str) -> i32 {
        self.shell.guest.print(&self.io.err, &format!("{}: {what}", self.name));
        1
    }

    /// Arguments without flags, and the letters of the flags. Arguments after `--` are not flags.
    fn operands(&self) -> (Vec<String>, String) {
        let (mut operands, mut flags) = (Vec::new(), String::new());
        let mut only_operands = false;
        for argument in self.arguments {
            match argument.strip_prefix('-') {
                Some("-") if !only_operands => only_operands = true,
                Some(long) if !only_operands && long.starts_with('-') => {}
                Some(letters) if !only_operands && !letters.is_empty() => flags.push_str(letters),
                _ => operands.push(argument.clone()),
            }
        }
        (operands, flags)
    }

    /// Content of the named files, or the input if there are none; `-` is the input.
    fn contents(&mut self, names: &[String]) -> (String, i32) {
        if names.is_empty() {
            return (String::from_utf8_lossy(&self.io.input.take()).into_owned(), 0);
        }
        let (mut all, mut status) = (String::new(), 0);
        for name in names {
            if name == "-" {
                all.push_str(&String::from_utf8_lossy(&self.io.input.take()));
                continue;
            }
            match self.shell.guest.files.text(&self.shell.path(name)) {
                Ok(text) => all.push_str(&text),
                Err(error) => status = self.fail(&format!("{name}: {error}")),
            }
        }
        (all, status)
    }
}

fn program(name: &str) -> Option<Program> {
    files::program(name).or_else(|| text::program(name)).or_else(|| system::program(name))
}

/// Programs of Kubernetes.
fn comes_with_kubernetes(name: &str) -> bool {
    matches!(name, "kubeadm" | "kubelet" | "kubectl" | "crictl" | "ctr")
}

/// Whether the machine has a program.
fn has_program(shell: &Shell<'_, '_>, name: &str) -> bool {
    const RUNNERS: [&str; 12] = [
        "sh",
        "bash",
        "sudo",
        "env",
        "nohup",
        "timeout",
        "sleep",
        "systemctl",
        "time",
        "xargs",
        "kubeadm",
        "setsid",
    ];
    let known = program(name).is_some() || RUNNERS.contains(&name);
    known && (!comes_with_kubernetes(name) || shell.guest.vm.image.kubernetes.is_some())
}

/// The path of a program, as `command -v` prints it.
fn path_of(shell: &Shell<'_, '_>, name: &str) -> Option<String> {
    if name.contains('/') {
        return shell.guest.files.exists(&shell.path(name)).then(|| name.to_owned());
    }
    let written = PROGRAMS.iter().map(|directory| format!("{directory}/{name}"));
    written
        .into_iter()
        .find(|path| shell.guest.files.exists(path))
        .or_else(|| has_program(shell, name).then(|| format!("/usr/bin/{name}")))
}

/// Runs a command.
pub(super) async fn run(shell: &mut Shell<'_, '_>, name: &str, arguments: &[String], io: &Io) -> Flow {
    if let Some(flow) = builtin(shell, name, arguments, io).await {
        return flow;
    }
    shell.state.status = external(shell, name, arguments, io).await;
    Flow::Next
}

/// Commands that change the shell or the control flow of its script.
async fn builtin(shell: &mut Shell<'_, '_>, name: &str, arguments: &[String], io: &Io) -> Option<Flow> {
    let number = |default: i32| arguments.first().and_then(|n| n.parse().ok()).unwrap_or(default);
    let mut status = 0;
    match name {
        ":" | "true" | "trap" | "umask" | "wait" | "ulimit" | "disown" | "shopt" => {}
        "false" => status = 1,
        "exit" | "return" => {
            shell.state.status = number(shell.state.status) & 0xff;
            return Some(if name == "exit" { Flow::Exit } else { Flow::Return });
        }
        "break" => return Some(Flow::Break(number(1).max(1).unsigned_abs())),
        "continue" => return Some(Flow::Continue(number(1).max(1).unsigned_abs())),
        "cd" => {
            let target = shell.path(arguments.first().map_or("/root", String::as_str));
            if shell.guest.files.is_directory(&target) {
                let target = shell.guest.files.resolve(&target, true).unwrap_or(target);
                shell.state.variables.insert("PWD".to_owned(), target.clone());
                shell.state.directory = target;
            } else {
                let shown = arguments.first().map_or("", String::as_str).to_owned();
                shell.print_error(io, &format!("cd: {shown}: No such file or directory"));
                status = 1;
            }
        }
        "pwd" => {
            let directory = shell.state.directory.clone();
            shell.guest.print(&io.out, &directory);
        }
        "export" | "local" | "declare" | "readonly" | "typeset" => {
            for argument in arguments.iter().filter(|argument| !argument.starts_with('-')) {
                let (variable, value) = match argument.split_once('=') {
                    Some((variable, value)) => (variable, Some(value)),
                    None => (argument.as_str(), None),
                };
                if let Some(value) = value {
                    shell.state.variables.insert(variable.to_owned(), value.to_owned());
                }
                if name == "export" {
                    shell.state.exported.insert(variable.to_owned());
                }
            }
        }
        "unset" => {
            for argument in arguments {
                shell.state.variables.remove(argument);
                shell.state.exported.remove(argument);
            }
        }
        "set" => set(shell, arguments),
        "shift" => {
            let count = usize::try_from(number(1)).unwrap_or(0);
            if count > shell.state.arguments.len() {
                status = 1;
            } else {
                shell.state.arguments.drain(..count);
            }
        }
        "eval" => {
            let text = arguments.join(" ");
            return Some(shell.run_text(&text, io).await);
        }
        "." | "source" => {
            let path = shell.path(arguments.first().map_or("", String::as_str));
            match shell.guest.files.text(&path) {
                Ok(text) => {
                    let flow = shell.run_text(&text, io).await;
                    return Some(if flow == Flow::Return { Flow::Next } else { flow });
                }
                Err(error) => {
                    shell.print_error(io, &format!("{path}: {error}"));
                    status = 1;
                }
            }
        }
        "read" => {
            let names: Vec<&String> =
                arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
            let line = io.input.line();
            status = i32::from(line.is_none());
            let line = line.unwrap_or_default();
            let mut rest = line.trim();
            for (index, variable) in names.iter().enumerate() {
                let (word, after) = match rest.split_once([' ', '\t']) {
                    Some((word, after)) if index + 1 < names.len() => (word, after.trim_start()),
                    _ => (rest, ""),
                };
                shell.state.variables.insert((*variable).clone(), word.to_owned());
                rest = after;
            }
        }
        "command" | "type" | "which" if name != "command" || arguments.first().is_some_and(|a| a == "-v") => {
            for wanted in arguments.iter().filter(|argument| !argument.starts_with('-')) {
                match path_of(shell, wanted) {
                    Some(place) => shell.guest.print(&io.out, &place),
                    None => status = 1,
                }
            }
        }
        "exec" => {
            if !arguments.is_empty() {
                shell.invoke(arguments.to_vec(), io).await;
                return Some(Flow::Exit);
            }
        }
        "command" | "builtin" | "nohup" | "sudo" | "time" | "setsid" => {
            let command =
                arguments.iter().skip_while(|argument| argument.starts_with('-')).cloned().collect();
            return Some(shell.invoke(command, io).await);
        }
        _ => return None,
    }
    shell.state.status = status;
    Some(Flow::Next)
}

fn set(shell: &mut Shell<'_, '_>, arguments: &[String]) {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let on = argument.starts_with('-');
        let Some(letters) = argument.strip_prefix(['-', '+']) else {
            shell.state.arguments = std::iter::once(argument).chain(rest).cloned().collect();
            return;
        };
        if letters == "-" {
            shell.state.arguments = rest.cloned().collect();
            return;
        }
        let state = &mut shell.state;
        for letter in letters.chars() {
            match letter {
                'e' => state.errexit = on,
                'u' => state.nounset = on,
                'x' => state.trace = on,
                'o' => match rest.next().map(String::as_str) {
                    Some("errexit") => state.errexit = on,
                    Some("nounset") => state.nounset = on,
                    Some("pipefail") => state.pipefail = on,
                    Some("xtrace") => state.trace = on,
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Programs and scripts.
async fn external(shell: &mut Shell<'_, '_>, name: &str, arguments: &[String], io: &Io) -> i32 {
    // A program by path is the program itself, unless a user's file is there.
    let mut name = name;
    let written = if name.contains('/') { Some(shell.path(name)) } else { None };
    let written = written.filter(|path| shell.guest.files.exists(path)).or_else(|| {
        let places = PROGRAMS.iter().map(|directory| format!("{directory}/{name}"));
        places.into_iter().find(|path| !name.contains('/') && shell.guest.files.exists(path))
    });
    if let Some(path) = written {
        return script(shell, name, &path, arguments, io).await;
    }
    if let Some((directory, base)) = name.rsplit_once('/') {
        if !PROGRAMS.contains(&directory) || !has_program(shell, base) {
            shell.print_error(io, &format!("{name}: No such file or directory"));
            return 127;
        }
        name = base;
    }
    if !has_program(shell, name) {
        shell.print_error(io, &format!("{name}: command not found"));
        if name == "kubeadm" {
            // The script may still succeed: its purpose has failed all the same.
            let line = shell.located("kubeadm: command not found");
            shell.guest.kubeadm_failure.get_or_insert(line);
        }
        return 127;
    }
    match name {
        "kubeadm" => kubeadm::run(shell.guest, arguments, io).await,
        "sleep" => {
            let total = arguments.iter().filter_map(|text| duration(text)).sum::<Duration>();
            tokio::time::sleep(total.min(LONGEST_SLEEP)).await;
            0
        }
        "systemctl" => systemd::control(shell.guest, arguments, io).await,
        "sh" | "bash" => interpreter(shell, name, arguments, io).await,
        "env" => {
            let words =
                arguments.iter().skip_while(|argument| argument.starts_with('-') || argument.contains('='));
            let command: Vec<String> = words.cloned().collect();
            if command.is_empty() {
                let shown: Vec<String> = shell
                    .state
                    .exported
                    .iter()
                    .filter_map(|name| Some(format!("{name}={}", shell.state.variables.get(name)?)))
                    .collect();
                shell.guest.print(&io.out, &shown.join("\n"));
                return 0;
            }
            let saved = shell.state.clone();
            for assignment in &arguments[..arguments.len() - command.len()] {
                if let Some((name, value)) = assignment.split_once('=') {
                    shell.export(name, value);
                }
            }
            shell.invoke(command, io).await;
            let status = shell.state.status;
            shell.state = saved;
            status
        }
        "timeout" => {
            let mut words = arguments.iter().skip_while(|argument| argument.starts_with('-'));
            let Some(limit) = words.next().and_then(|text| duration(text)) else { return 125 };
            let command: Vec<String> = words.cloned().collect();
            match tokio::time::timeout(limit, shell.invoke(command, io)).await {
                Ok(_) => shell.state.status,
                Err(_) => 124,
            }
        }
        "xargs" => {
            let mut command: Vec<String> =
                arguments.iter().skip_while(|argument| argument.starts_with('-')).cloned().collect();
            let input = io.input.take();
            command.extend(String::from_utf8_lossy(&input).split_whitespace().map(str::to_owned));
            shell.invoke(command, io).await;
            shell.state.status
        }
        name => match program(name) {
            Some(program) => program(&mut Call { shell, name, arguments, io }),
            None => 127,
        },
    }
}

/// Runs a script file.
async fn script(shell: &mut Shell<'_, '_>, name: &str, path: &str, arguments: &[String], io: &Io) -> i32 {
    let executable = match shell.guest.files.get(path) {
        Some(node) if node.kind == Kind::Directory => {
            shell.print_error(io, &format!("{name}: Is a directory"));
            return 126;
        }
        Some(node) => node.mode & 0o111 != 0,
        None => false,
    };
    if !executable {
        shell.print_error(io, &format!("{name}: Permission denied"));
        return 126;
    }
    let text = shell.guest.files.text(path).unwrap_or_default();
    let interpreter = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).map(str::trim);
    let known = interpreter.is_none_or(|line| {
        line.split_whitespace().any(|word| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "dash")))
    });
    if !known {
        let interpreter = interpreter.unwrap_or_default().to_owned();
        shell.print_error(io, &format!("{name}: {interpreter}: bad interpreter: No such file or directory"));
        return 126;
    }
    shell.run_script(path, &text, arguments, io).await;
    shell.state.status
}

/// `sh -c`, `bash -ex file`, or a script on the input.
async fn interpreter(shell: &mut Shell<'_, '_>, name: &str, arguments: &[String], io: &Io) -> i32 {
    let count = arguments.iter().take_while(|argument| argument.starts_with(['-', '+'])).count();
    let (flags, rest) = arguments.split_at(count);
    let letters: String = flags.iter().map(|flag| flag.trim_start_matches(['-', '+'])).collect();
    // Flags before the text, as if the script began with them.
    let prelude = |text: String| {
        let kept: String = letters.chars().filter(|c| "eux".contains(*c)).collect();
        if kept.is_empty() { text } else { format!("set -{kept}\n{text}") }
    };
    let (script_name, text, rest) = if letters.contains('c') {
        match rest.split_first() {
            Some((text, rest)) => {
                let script = rest.first().cloned().unwrap_or_else(|| name.to_owned());
                (script, text.clone(), rest.get(1..).unwrap_or_default().to_vec())
            }
            None => return 2,
        }
    } else if let Some((file, rest)) = rest.split_first() {
        match shell.guest.files.text(&shell.path(file)) {
            Ok(text) => (file.clone(), text, rest.to_vec()),
            Err(error) => {
                shell.guest.print(&io.err, &format!("{name}: {file}: {error}"));
                return 127;
            }
        }
    } else {
        (name.to_owned(), String::from_utf8_lossy(&io.input.take()).into_owned(), Vec::new())
    };
    shell.run_script(&script_name, &prelude(text), &rest, io).await;
    shell.state.status
}

/// `5`, `0.5`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let (number, scale) = match text.chars().last()? {
        's' => (&text[..text.len() - 1], 1.0),
        'm' => (&text[..text.len() - 1], 60.0),
        'h' => (&text[..text.len() - 1], 3600.0),
        'd' => (&text[..text.len() - 1], 86_400.0),
        _ => (text, 1.0),
    };
    if text == "infinity" {
        return Some(LONGEST_SLEEP);
    }
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds * scale).ok().map(|duration| duration.min(LONGEST_SLEEP))
}
