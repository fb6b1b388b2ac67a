//! Kubernetes minor versions, as the lifecycle API writes them: `1.33`.

/// Minor versions that kubelets may be behind the API server, by Kubernetes' own policy.
pub const MOST_SKEW: u32 = 3;

/// The minor version of `1.NN`.
pub fn minor(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is not a Kubernetes version of the form \"1.33\"");
    let number = text.strip_prefix("1.").ok_or_else(wrong)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (number == "0" || !number.starts_with('0'));
    if plain { number.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// Whether the name of a template shows that it is for a minor version: `1.27`, `1-27`, `1_27` or `127`. The patch may
/// follow at once where nothing separates the numbers: `1274`.
pub fn is_in_template_name(minor: u32, name: &str) -> bool {
    let forms = [format!("1.{minor}"), format!("1-{minor}"), format!("1_{minor}"), format!("1{minor}")];
    let joined = &forms[3];
    forms.iter().any(|form| {
        name.match_indices(form.as_str()).any(|(at, found)| {
            let digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
            let before = at.checked_sub(1).map(|at| name.as_bytes()[at]);
            let after = name.as_bytes().get(at + found.len()).copied();
            !digit(before) && (form == joined || !digit(after))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_minor_versions() {
        assert_eq!(minor("1.33"), Ok(33));
        for wrong in ["", "1", "1.", "v1.33", "1.33.1", "2.1", "1.x", "1.033"] {
            assert!(minor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_templates_show_their_version() {
        for name in ["ubuntu-kube-v1.27.4", "rhel8-1-27", "kubernetes_1_27", "rhel-127", "rhel-v1274"] {
            assert!(is_in_template_name(27, name), "{name}");
        }
        for name in ["ubuntu-kube-v1.28.0", "kube-1.270", "kube-11.27", "build-20127", "plain"] {
            assert!(!is_in_template_name(27, name), "{name}");
        }
    }
}
