//! Names as CloudStack takes them: it finds them in any case, and manifests that were written for CAPC rely on it.

/// What has a name: those that have it exactly, else those that have it in another case.
pub(crate) fn named<'a, T>(found: &'a [T], wanted: &str, name: impl Fn(&T) -> Option<&str>) -> Vec<&'a T> {
    let exact: Vec<&T> = found.iter().filter(|it| name(it) == Some(wanted)).collect();
    if !exact.is_empty() {
        return exact;
    }
    found.iter().filter(|it| name(it).is_some_and(|name| is_same(name, wanted))).collect()
}

/// The names differ in nothing but their case.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_comes_before_the_same_in_another_case() {
        let found = ["prod", "Prod", "PROD", "product"];
        for (wanted, expected) in [
            ("Prod", vec!["Prod"]),
            ("pROD", vec!["prod", "Prod", "PROD"]),
            ("PRODUCT", vec!["product"]),
            ("pro", vec![]),
        ] {
            let names: Vec<&str> = named(&found, wanted, |name| Some(*name)).into_iter().copied().collect();
            assert_eq!(names, expected, "{wanted}");
        }
        assert!(is_same("Größe", "GRÖßE"));
    }
}
