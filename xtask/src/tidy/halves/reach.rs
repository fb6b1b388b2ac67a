//! What a half of a controller uses, by way of other files of the controller's folder too.

use std::collections::BTreeMap;

use super::paths::{self, Path};
use crate::tidy::Finding;

/// Modules by their place: the file without `.rs`, `/mod.rs` or `/lib.rs`.
pub type Modules = BTreeMap<String, Module>;

/// What a check reads of a file.
pub struct Module {
    file: String,
    paths: Vec<Path>,
    imports: Vec<Path>,
    /// Functions of `decide` that it calls, with the numbers of the lines.
    decides: Vec<(usize, String)>,
}

impl Module {
    /// The place of a file in a crate's source, and the module.
    pub fn of(file: &str, text: &str) -> Option<(String, Self)> {
        if !file.contains("/src/") {
            return None;
        }
        let place = file.strip_suffix(".rs")?;
        let place = place.strip_suffix("/mod").or_else(|| place.strip_suffix("/lib")).unwrap_or(place);
        let code = paths::product_code(text);
        let module = Self {
            file: file.to_owned(),
            paths: paths::paths(&code),
            imports: paths::imported(&code),
            decides: calls_of_decide(text),
        };
        Some((place.to_owned(), module))
    }
}

/// Calls such as `decide::waits(`.
fn calls_of_decide(text: &str) -> Vec<(usize, String)> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    let calls = lines.flat_map(|(number, line)| {
        line.split("decide::").skip(1).filter_map(move |after| {
            let (name, _) = after.split_once('(')?;
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            is_name.then(|| (number, name.to_owned()))
        })
    });
    calls.collect()
}

/// Folders of controllers whose halves are files.
pub fn controllers(files: &[String]) -> Vec<&str> {
    let in_source = files.iter().filter(|file| file.contains("/src/"));
    in_source
        .filter_map(|file| file.strip_suffix("/observe.rs").or_else(|| file.strip_suffix("/observe/mod.rs")))
        .collect()
}

/// Halves that reach each other through third files, and controllers that decide outside of `decide`.
pub fn circles(modules: &Modules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in modules.keys() {
        let Some(controller) = place.strip_suffix("/decide") else { continue };
        if !modules.contains_key(&format!("{controller}/observe")) {
            continue;
        }
        findings.extend(beside_decide(controller, modules));
        for (half, other) in [("observe", "decide"), ("decide", "observe")] {
            findings.extend(reached(controller, half, other, modules));
        }
    }
    findings
}

fn beside_decide(controller: &str, modules: &Modules) -> Vec<Finding> {
    let Some(module) = modules.get(controller) else { return Vec::new() };
    let others = module.decides.iter().filter(|(_, name)| name != "decide");
    let finding = |(line, name): &(usize, String)| Finding {
        place: format!("{}:{line}", module.file),
        what: format!("calls decide::{name}: move it to a module that both halves may use"),
    };
    others.map(finding).collect()
}

/// Files that name the other half and that a half uses through others.
fn reached(controller: &str, half: &str, other: &str, modules: &Modules) -> Vec<Finding> {
    let part_of = |place: &str| -> Option<String> {
        let inside = place.strip_prefix(controller)?.strip_prefix('/')?;
        inside.split('/').next().map(str::to_owned)
    };
    let mut open: Vec<(&str, Vec<String>)> = modules
        .keys()
        .filter(|place| part_of(place).as_deref() == Some(half))
        .map(|place| (place.as_str(), vec![half.to_owned()]))
        .collect();
    let mut seen: Vec<&str> = open.iter().map(|(place, _)| *place).collect();
    let mut findings = Vec::new();
    while let Some((place, way)) = open.pop() {
        let Some(module) = modules.get(place) else { continue };
        for path in &module.paths {
            let Some(used) = used(place, path, controller, modules) else { continue };
            let Some(part) = part_of(used) else { continue };
            // The line that names the other half in the half itself is found without this.
            let named = way.len() == 1 && path.iter().any(|name| name == other);
            if part == other && !named {
                let users = way.split_last().map_or(&[][..], |(_, users)| users);
                let users = (!users.is_empty()).then(|| format!(" and is reached by {}", users.join(" → ")));
                let what = format!(
                    "uses {other} ({}){}: move what both need to `observed` or a module of its own",
                    path.join("::"),
                    users.unwrap_or_default()
                );
                findings.push(Finding { place: module.file.clone(), what });
            }
            if part != other && part != "observed" && !seen.contains(&used) {
                seen.push(used);
                let mut further = way.clone();
                further.extend((part != half).then(|| used[controller.len() + 1..].replace('/', "::")));
                open.push((used, further));
            }
        }
    }
    findings
}

/// The module that a path leads to.
fn used<'m>(from: &str, path: &[String], controller: &str, modules: &'m Modules) -> Option<&'m str> {
    let (place, name) = resolved(from, path, modules)?;
    let reexport = || {
        let name = name.filter(|name| place == controller && name.starts_with(char::is_lowercase))?;
        let imports = &modules.get(controller)?.imports;
        let import = imports.iter().find(|import| import.last().map(String::as_str) == Some(name))?;
        Some(resolved(controller, import, modules)?.0)
    };
    let place = reexport().unwrap_or(place);
    modules.get_key_value(&place).map(|(place, _)| place.as_str())
}

/// A file is there, or files are below it.
fn is_module(place: &str, modules: &Modules) -> bool {
    let below = format!("{place}/");
    modules.contains_key(place)
        || modules.range(below.clone()..).next().is_some_and(|(it, _)| it.starts_with(&below))
}

/// The place that a path leads to, and the name there.
fn resolved<'p>(from: &str, path: &'p [String], modules: &Modules) -> Option<(String, Option<&'p str>)> {
    let up = |place: &str| place.rsplit_once('/').map(|(above, _)| above.to_owned());
    let mut place = from.to_owned();
    let mut names = path.iter().map(String::as_str).peekable();
    match *names.peek()? {
        "crate" => {
            place = format!("{}/src", from.split("/src").next()?);
            names.next();
        }
        "self" | "super" => {}
        child if is_module(&format!("{place}/{child}"), modules) => {}
        _ => return None,
    }
    for name in names {
        let inside = format!("{place}/{name}");
        match name {
            "super" => place = up(&place)?,
            "self" => {}
            _ if is_module(&inside, modules) => place = inside,
            name => return Some((place, Some(name))),
        }
    }
    Some((place, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let modules = files.iter().filter_map(|(file, text)| {
            let file = format!("crates/a/src/machine/{file}.rs");
            Module::of(&file, text)
        });
        circles(&modules.collect()).into_iter().map(|it| format!("{}: {}", it.place, it.what)).collect()
    }

    #[test]
    fn halves_that_meet_in_a_third_file_are_found() {
        let mirror = ("mirror", "use super::{\n    decide::Decision,\n};");
        let halves = [("observe", "use super::mirror::find;"), ("decide", "use super::mirror;"), mirror];
        let [finding] = found(&halves).try_into().expect("one finding");
        assert!(finding.starts_with("crates/a/src/machine/mirror.rs: uses decide"), "{finding}");
        assert!(finding.contains("and is reached by observe:"), "{finding}");
    }

    #[test]
    fn a_circle_of_several_files_is_found_whatever_the_paths_look_like() {
        for (observe, hints, routed, circle) in [
            ("use super::hints;", "super::routed::text(a);", "use super::decide::ready;", true),
            (
                "super::hints::text(a);",
                "use crate::machine::routed;",
                "crate::machine::decide::ready(a);",
                true,
            ),
            ("use super::hints;", "use super::routed;", "use super::rules::ready;", false),
            ("use super::hints;", "use super::observed::A;", "use super::decide::ready;", false),
            ("use crate::hints;", "use super::routed;", "use super::decide::ready;", false),
        ] {
            let files = [
                ("mod", ""),
                ("observe", observe),
                ("hints", hints),
                ("routed", routed),
                ("decide", ""),
                ("rules", ""),
            ];
            assert_eq!(found(&files).len(), usize::from(circle), "{observe} {hints} {routed}");
        }
    }

    #[test]
    fn a_function_that_the_folder_reexports_is_that_of_its_file() {
        for (import, circle) in [("use super::is_tier;", true), ("use super::Tier;", false)] {
            let files = [
                ("mod", "pub use observe::{Tier, is_tier};"),
                ("observe", ""),
                ("decide", "use super::order;"),
                ("order", import),
            ];
            assert_eq!(found(&files).len(), usize::from(circle), "{import}");
            let [folder, observe, ..] = files;
            assert_eq!(found(&[folder, observe, ("decide", import)]).len(), usize::from(circle), "{import}");
        }
    }

    #[test]
    fn a_controller_decides_in_decide_alone() {
        let controller =
            "// decide::a(b)\nlet ill = decide::is_ill(a);\ndecide::decide(look)\nlet a = decide::A;";
        let files = [("mod", controller), ("observe", ""), ("decide", "")];
        let [finding] = found(&files).try_into().expect("one finding");
        assert!(finding.starts_with("crates/a/src/machine/mod.rs:2: calls decide::is_ill"), "{finding}");
    }
}
