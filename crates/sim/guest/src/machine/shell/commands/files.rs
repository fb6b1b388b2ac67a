//! Programs for files.

use super::{Call, Program, test};
use crate::machine::files::{FileError, Kind};

pub(super) fn program(name: &str) -> Option<Program> {
    Some(match name {
        "cat" => cat,
        "mkdir" => mkdir,
        "rmdir" => rmdir,
        "cp" | "install" => copy,
        "mv" => rename,
        "rm" => remove,
        "ln" => link,
        "chmod" => chmod,
        "chown" | "chgrp" => chown,
        "touch" => touch,
        "tee" => tee,
        "ls" => ls,
        "readlink" | "realpath" => readlink,
        "basename" => basename,
        "dirname" => dirname,
        "mktemp" => mktemp,
        "test" | "[" | "[[" => test::test,
        _ => return None,
    })
}

fn cat(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    let (text, status) = call.contents(&names);
    call.out(&text);
    status
}

/// Applies a function to every operand; returns the exit status.
fn each(
    call: &mut Call<'_, '_, '_>,
    names: &[String],
    what: &str,
    mut work: impl FnMut(&mut Call<'_, '_, '_>, &str) -> Result<(), FileError>,
) -> i32 {
    let mut status = 0;
    if names.is_empty() {
        return call.fail("missing operand");
    }
    for name in names {
        let path = call.shell.path(name);
        if let Err(error) = work(call, &path) {
            status = call.fail(&format!("{what} '{name}': {error}"));
        }
    }
    status
}

fn mkdir(call: &mut Call<'_, '_, '_>) -> i32 {
    let (mut names, flags) = call.operands();
    let parents = flags.contains('p') || call.arguments.iter().any(|argument| argument == "--parents");
    // `-m 0755` takes the operand after it.
    let mut mode = None;
    if flags.contains('m') && names.len() > 1 {
        mode = u32::from_str_radix(&names.remove(0), 8).ok();
    }
    each(call, &names, "cannot create directory", |call, path| {
        let files = &mut call.shell.guest.files;
        if parents {
            files.make_directories(path)?
        } else {
            files.make_directory(path)?
        }
        mode.map_or(Ok(()), |mode| files.set_mode(path, mode))
    })
}

fn rmdir(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    each(call, &names, "failed to remove", |call, path| call.shell.guest.files.remove_directory(path))
}

fn remove(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let (force, recursive) = (flags.contains('f'), flags.contains(['r', 'R']));
    if force && names.is_empty() {
        return 0;
    }
    each(call, &names, "cannot remove", |call, path| match call.shell.guest.files.remove(path, recursive) {
        Err(FileError::NotFound) if force => Ok(()),
        done => done,
    })
}

/// Source and target paths: into the last operand if it is a directory.
fn targets(call: &mut Call<'_, '_, '_>) -> Option<(Vec<(String, String)>, String)> {
    let (names, flags) = call.operands();
    let Some((last, sources)) = names.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        call.fail("missing file operand");
        return None;
    };
    let target = call.shell.path(last);
    let into = call.shell.guest.files.is_directory(&target) && !flags.contains('T');
    if sources.len() > 1 && !into {
        call.fail(&format!("target '{last}': No such file or directory"));
        return None;
    }
    let link = |source: &String| match source.trim_end_matches('/').rsplit('/').next() {
        Some(base) if into => format!("{}/{base}", target.trim_end_matches('/')),
        _ => target.clone(),
    };
    Some((sources.iter().map(|source| (source.clone(), link(source))).collect(), flags))
}

fn copy(call: &mut Call<'_, '_, '_>) -> i32 {
    let mut mode = None;
    let without_mode: Vec<String>;
    if call.name == "install" {
        let mut rest = call.arguments.iter();
        let mut kept = Vec::new();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "-m" => mode = rest.next().and_then(|mode| u32::from_str_radix(mode, 8).ok()),
                "-o" | "-g" => drop(rest.next()),
                "-d" => {
                    let names: Vec<String> = rest.cloned().collect();
                    return each(call, &names, "cannot create directory", |call, path| {
                        call.shell.guest.files.make_directories(path)
                    });
                }
                _ => kept.push(argument.clone()),
            }
        }
        mode = mode.or(Some(0o755));
        without_mode = kept;
        let mut inner =
            Call { shell: &mut *call.shell, name: "install", arguments: &without_mode, io: call.io };
        return copy_all(&mut inner, mode);
    }
    copy_all(call, mode)
}

fn copy_all(call: &mut Call<'_, '_, '_>, mode: Option<u32>) -> i32 {
    let Some((targets, flags)) = targets(call) else { return 1 };
    let mut status = 0;
    for (name, target) in targets {
        let source = call.shell.path(&name);
        if call.shell.guest.files.is_directory(&source) && !flags.contains(['r', 'R', 'a']) {
            status = call.fail(&format!("-r not specified; omitting directory '{name}'"));
            continue;
        }
        let files = &mut call.shell.guest.files;
        let copied = files.copy(&source, &target);
        let copied = copied.and_then(|()| mode.map_or(Ok(()), |mode| files.set_mode(&target, mode)));
        if let Err(error) = copied {
            status = call.fail(&format!("cannot copy '{name}' to '{target}': {error}"));
        }
    }
    status
}

fn rename(call: &mut Call<'_, '_, '_>) -> i32 {
    let Some((targets, _)) = targets(call) else { return 1 };
    let mut status = 0;
    for (name, target) in targets {
        let source = call.shell.path(&name);
        if let Err(error) = call.shell.guest.files.rename(&source, &target) {
            status = call.fail(&format!("cannot move '{name}' to '{target}': {error}"));
        }
    }
    status
}

fn link(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let [target, link] = names.as_slice() else { return call.fail("missing file operand") };
    let mut path = call.shell.path(link);
    if call.shell.guest.files.is_directory(&path) && !flags.contains(['n', 'T']) {
        path = format!("{path}/{}", target.rsplit('/').next().unwrap_or(target));
    }
    if flags.contains('f') {
        // A missing link need not be removed.
        let _ = call.shell.guest.files.remove(&path, false);
    }
    let made = if flags.contains('s') {
        call.shell.guest.files.link(target, &path)
    } else {
        let source = call.shell.path(target);
        call.shell.guest.files.copy(&source, &path)
    };
    made.map_or_else(|error| call.fail(&format!("failed to create link '{link}': {error}")), |()| 0)
}

/// A mode after a change such as `0644`, `+x` or `go-rwx`.
fn changed_mode(held: u32, text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    }
    let mut mode = held;
    for clause in text.split(',') {
        let at = clause.find(['+', '-', '='])?;
        let who = &clause[..at];
        let mut mask = 0;
        for (letter, bits) in [('u', 0o700), ('g', 0o070), ('o', 0o007)] {
            if who.is_empty() || who.contains('a') || who.contains(letter) {
                mask |= bits;
            }
        }
        let mut bits = 0;
        for letter in clause[at + 1..].chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' | 'X' => 0o111,
                's' | 't' => 0,
                _ => return None,
            };
        }
        mode = match &clause[at..=at] {
            "+" => mode | (bits & mask),
            "-" => mode & !(bits & mask),
            _ => (mode & !mask) | (bits & mask),
        };
    }
    Some(mode)
}

fn chmod(call: &mut Call<'_, '_, '_>) -> i32 {
    // `-x` is a mode here, `-R` is not.
    let words: Vec<String> =
        call.arguments.iter().filter(|word| !matches!(word.as_str(), "-R" | "-f")).cloned().collect();
    let Some((change, names)) = words.split_first() else { return call.fail("missing operand") };
    let change = change.clone();
    if changed_mode(0, &change).is_none() {
        return call.fail(&format!("invalid mode: '{change}'"));
    }
    each(call, names, "cannot access", |call, path| {
        let files = &mut call.shell.guest.files;
        let held = files.get(path).ok_or(FileError::NotFound)?.mode;
        changed_mode(held, &change).map_or(Ok(()), |mode| files.set_mode(path, mode))
    })
}

fn chown(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    let Some((owner, names)) = words.split_first() else { return call.fail("missing operand") };
    let user = owner.split([':', '.']).next().unwrap_or_default().to_owned();
    let known = user.is_empty() || user.parse::<u32>().is_ok() || call.shell.guest.users.contains(&user);
    if call.name == "chown" && !known {
        return call.fail(&format!("invalid user: '{owner}'"));
    }
    each(call, names, "cannot access", |call, path| call.shell.guest.files.set_owner(path, owner))
}

fn touch(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    each(call, &names, "cannot touch", |call, path| {
        if call.shell.guest.files.is_directory(path) {
            return Ok(());
        }
        call.shell.guest.files.append(path, b"")
    })
}

fn tee(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let input = call.io.input.take();
    let mut status = 0;
    for name in &names {
        let path = call.shell.path(name);
        if path == "/dev/null" {
            continue;
        }
        let files = &mut call.shell.guest.files;
        let written =
            if flags.contains('a') { files.append(&path, &input) } else { files.write(&path, &input) };
        if let Err(error) = written {
            status = call.fail(&format!("{name}: {error}"));
        }
    }
    call.out(&String::from_utf8_lossy(&input));
    status
}

fn ls(call: &mut Call<'_, '_, '_>) -> i32 {
    let (mut names, flags) = call.operands();
    if names.is_empty() {
        names.push(".".to_owned());
    }
    let mut status = 0;
    for name in names {
        let path = call.shell.path(&name);
        let files = &call.shell.guest.files;
        let listed = match files.get(&path).map(|node| &node.kind) {
            None => {
                status = 2;
                call.fail(&format!("cannot access '{name}': No such file or directory"));
                continue;
            }
            Some(Kind::Directory) if !flags.contains('d') => files.list(&path).unwrap_or_default(),
            Some(_) => vec![name.clone()],
        };
        for entry in listed.iter().filter(|entry| flags.contains(['a', 'A']) || !entry.starts_with('.')) {
            call.line(entry);
        }
    }
    status
}

fn readlink(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, flags) = call.operands();
    let Some(name) = names.first() else { return call.fail("missing operand") };
    let path = call.shell.path(name);
    let shown = if call.name == "realpath" || flags.contains(['f', 'e', 'm']) {
        call.shell.guest.files.resolve(&path, true).ok()
    } else {
        match call.shell.guest.files.get_link(&path).map(|node| &node.kind) {
            Some(Kind::Link(target)) => Some(target.clone()),
            _ => None,
        }
    };
    let Some(shown) = shown else { return 1 };
    call.line(&shown);
    0
}

fn basename(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    let Some(name) = names.first() else { return call.fail("missing operand") };
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or("/");
    let base = names.get(1).and_then(|suffix| base.strip_suffix(suffix.as_str())).unwrap_or(base).to_owned();
    call.line(&base);
    0
}

fn dirname(call: &mut Call<'_, '_, '_>) -> i32 {
    let (names, _) = call.operands();
    let Some(name) = names.first() else { return call.fail("missing operand") };
    let shown = match name.trim_end_matches('/').rfind('/') {
        None => ".",
        Some(0) => "/",
        Some(at) => &name[..at],
    };
    call.line(shown);
    0
}

fn mktemp(call: &mut Call<'_, '_, '_>) -> i32 {
    let (_, flags) = call.operands();
    let taken = call.shell.guest.files.list("/tmp").map_or(0, |names| names.len());
    let path = format!("/tmp/tmp.{taken:010}");
    let files = &mut call.shell.guest.files;
    let made = if flags.contains('d') { files.make_directory(&path) } else { files.write(&path, b"") };
    match made {
        Ok(()) => {
            call.line(&path);
            0
        }
        Err(error) => call.fail(&format!("failed to create file: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::changed_mode;

    #[test]
    fn modes_are_parsed_as_chmod_does() {
        for (held, text, mode) in [
            (0o644, "0755", Some(0o755)),
            (0o644, "+x", Some(0o755)),
            (0o777, "go-rwx", Some(0o700)),
            (0o000, "u=rw,g=r", Some(0o640)),
            (0o644, "nonsense", None),
            (0o644, "99999", None),
        ] {
            assert_eq!(changed_mode(held, text), mode, "{text}");
        }
    }
}
