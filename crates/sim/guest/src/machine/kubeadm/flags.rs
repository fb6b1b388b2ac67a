//! Flags of `kubeadm init` and `kubeadm join`.

use std::collections::BTreeMap;

/// Flags with a value, and whether they may be combined with `--config`.
const VALUES: [(&str, bool); 28] = [
    ("apiserver-advertise-address", false),
    ("apiserver-bind-port", false),
    ("apiserver-cert-extra-sans", false),
    ("cert-dir", false),
    ("certificate-key", false),
    ("config", true),
    ("control-plane-endpoint", false),
    ("cri-socket", false),
    ("discovery-file", false),
    ("discovery-token", false),
    ("discovery-token-ca-cert-hash", false),
    ("feature-gates", false),
    ("ignore-preflight-errors", true),
    ("image-repository", false),
    ("kubeconfig", true),
    ("kubernetes-version", false),
    ("node-name", true),
    ("output", true),
    ("patches", false),
    ("pod-network-cidr", false),
    ("rootfs", true),
    ("service-cidr", false),
    ("service-dns-domain", false),
    ("skip-phases", true),
    ("tls-bootstrap-token", false),
    ("token", false),
    ("token-ttl", false),
    ("v", true),
];

/// Flags without a value.
const SWITCHES: [(&str, bool); 9] = [
    ("control-plane", false),
    ("discovery-token-unsafe-skip-ca-verification", false),
    ("dry-run", true),
    ("force", true),
    ("skip-certificate-key-print", true),
    ("skip-token-print", true),
    ("upload-certs", true),
    ("one-output", true),
    ("help", true),
];

/// Flags by name; repeated ones keep their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<&'static str, Vec<String>>);

impl Flags {
    /// Positional arguments and flags of a command line.
    pub(super) fn parse(arguments: &[String]) -> Result<(Vec<String>, Self), String> {
        let (mut words, mut flags) = (Vec::new(), Self::default());
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(name) = argument.strip_prefix('-').filter(|name| !name.is_empty()) else {
                words.push(argument.clone());
                continue;
            };
            let (name, given) = match name.strip_prefix('-') {
                Some(long) => long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value))),
                None if name.starts_with('v') => {
                    ("v", Some(name[1..].trim_start_matches('=')).filter(|v| !v.is_empty()))
                }
                None if name == "o" => ("output", None),
                None if name == "f" => ("force", None),
                None => {
                    return Err(format!(
                        "unknown shorthand flag: '{}' in {argument}",
                        &name[..name.chars().next().map_or(0, char::len_utf8)]
                    ));
                }
            };
            if let Some((name, _)) = VALUES.iter().find(|(known, _)| *known == name) {
                let value = match given {
                    Some(value) => value.to_owned(),
                    None => {
                        rest.next().cloned().ok_or_else(|| format!("flag needs an argument: --{name}"))?
                    }
                };
                flags.0.entry(name).or_default().push(value);
            } else if let Some((name, _)) = SWITCHES.iter().find(|(known, _)| *known == name) {
                flags.0.entry(name).or_default().push(given.unwrap_or("true").to_owned());
            } else {
                return Err(format!("unknown flag: --{name}"));
            }
        }
        flags.check()?;
        Ok((words, flags))
    }

    fn check(&self) -> Result<(), String> {
        if !self.0.contains_key("config") {
            return Ok(());
        }
        let mixed: Vec<&str> = VALUES
            .iter()
            .chain(&SWITCHES)
            .filter(|(name, allowed)| !allowed && self.0.contains_key(name))
            .map(|(name, _)| *name)
            .collect();
        if mixed.is_empty() {
            return Ok(());
        }
        Err(format!("can not mix '--config' with arguments [{}]", mixed.join(" ")))
    }

    /// The last value of a flag.
    pub(super) fn get(&self, name: &str) -> Option<&String> {
        self.0.get(name).and_then(|values| values.last())
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "false")
    }

    /// All values of a flag that takes lists.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let values = self.0.get(name).into_iter().flatten();
        values
            .flat_map(|value| value.split(','))
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(Vec<String>, Flags), String> {
        Flags::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_parsed_in_all_forms() {
        let line =
            "init --config /a --skip-phases=x,y -v=5 --v 6 --ignore-preflight-errors all --upload-certs";
        let (words, flags) = parse(line).expect("flags");
        assert_eq!(words, ["init"]);
        assert_eq!(flags.get("config").map(String::as_str), Some("/a"));
        assert_eq!(flags.list("skip-phases"), ["x", "y"]);
        assert_eq!(flags.get("v").map(String::as_str), Some("6"));
        assert!(flags.is_set("upload-certs") && !flags.is_set("dry-run"));
    }

    #[test]
    fn unknown_flags_are_rejected() {
        for (line, why) in [
            ("init --foo", "unknown flag: --foo"),
            ("init --config", "flag needs an argument: --config"),
            ("join --config /a --token b", "can not mix '--config' with arguments [token]"),
            ("init -x", "unknown shorthand flag: 'x' in -x"),
        ] {
            assert_eq!(parse(line).expect_err(line), why);
        }
    }
}
