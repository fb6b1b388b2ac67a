//! Paths such as `super::decide::waits` in Rust code.

/// A path by its parts.
pub type Path = Vec<String>;

/// All paths of two or more parts; those of import groups are spelled out.
pub fn paths(code: &str) -> Vec<Path> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(is_part) {
        rest = path(&rest[at..], &[], &mut found);
    }
    found
}

/// Paths of import statements.
pub fn imported(code: &str) -> Vec<Path> {
    let statements = code.split(';').map(str::trim_start);
    let imports = statements.filter_map(|statement| {
        let visible = statement.starts_with("pub").then(|| statement.split_once(" use ")).flatten();
        statement.strip_prefix("use ").or(visible.map(|(_, path)| path))
    });
    imports.flat_map(paths).collect()
}

/// The code without comments and without the tests at its end.
pub fn product_code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let lines = lines.take_while(|line| !line.starts_with("mod tests {"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Adds the path at the start of the code, or those of its group; returns the code after it.
fn path<'c>(code: &'c str, before: &[&'c str], found: &mut Vec<Path>) -> &'c str {
    let mut parts = before.to_vec();
    let mut rest = code;
    loop {
        let (part, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        parts.push(part);
        rest = after;
        let Some(next) = rest.strip_prefix("::") else { break };
        rest = next;
        if let Some(group) = next.strip_prefix('{') {
            return paths_of_group(group, &parts, found);
        }
        // A glob or type arguments.
        if !next.starts_with(is_part) {
            break;
        }
    }
    if parts.len() > 1 {
        found.push(parts.into_iter().map(str::to_owned).collect());
    }
    rest
}

fn paths_of_group<'c>(group: &'c str, before: &[&'c str], found: &mut Vec<Path>) -> &'c str {
    let mut rest = group.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('}') {
            return after;
        }
        if rest.starts_with(is_part) {
            rest = path(rest, before, found);
        }
        // What is left of an entry is its other name, or a glob.
        rest = rest.find([',', '}']).map_or("", |end| &rest[end..]);
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(paths: Vec<Path>) -> Vec<String> {
        paths.into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn groups_are_spelled_out() {
        let code = "use super::{\n    a::{self, b as c}, d,\n    e::*,\n};\nlet x = f::g(h::<I>(j));";
        let expected = ["super::a::self", "super::a::b", "super::d", "super::e", "f::g"];
        assert_eq!(joined(paths(code)), expected);
    }

    #[test]
    fn imports_are_told_from_calls() {
        let code = "mod a;\nuse a::b;\npub(crate) use c::d;\nfn e() { f::g(); }";
        assert_eq!(joined(imported(code)), ["a::b", "c::d"]);
    }

    #[test]
    fn comments_and_tests_are_left_out() {
        let text = "// use a::b;\nuse c::d;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        assert_eq!(joined(paths(&product_code(text))), ["c::d"]);
    }
}
