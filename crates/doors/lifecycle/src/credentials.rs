//! Credentials in the INI form of EKS Anywhere's command line, as Secrets.
//!
//! Each section is a profile: its name in lower case is the name of the Secret.

use std::collections::BTreeMap;
use std::path::PathBuf;

use capstan_provider_kit::{ProviderError, Subcommand};
use clap::{Arg, Command, value_parser};
use serde_json::{Value, json};

use crate::names::SYSTEM_NAMESPACE;

/// Largest file that is read.
const MOST: u64 = 1_000_000;
const REQUIRED: [&str; 3] = ["api-key", "secret-key", "api-url"];
const VERIFY: &str = "verify-ssl";

/// The Secrets of a file. Errors name lines, sections and keys, and never values.
pub fn secrets(text: &str) -> Result<Vec<Value>, String> {
    let mut profiles: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.trim().to_lowercase();
            if let Some(why) = capstan_schema::meta::dns1123_subdomain(&name).first() {
                return Err(format!("line {number}: section {name:?} is not a valid Secret name: {why}"));
            }
            if profiles.insert(name.clone(), BTreeMap::new()).is_some() {
                return Err(format!("line {number}: duplicate section {name:?}: merge the two"));
            }
            section = Some(name);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!("line {number}: neither a section nor KEY = VALUE"));
        };
        let Some(profile) = section.as_ref().and_then(|name| profiles.get_mut(name)) else {
            return Err(format!(
                "line {number}: a key outside of a section: begin with a line like [global]"
            ));
        };
        let key = key.trim().to_owned();
        if !REQUIRED.contains(&key.as_str()) && key != VERIFY {
            return Err(format!(
                "line {number}: unknown key {key:?}: use api-key, secret-key, api-url, verify-ssl"
            ));
        }
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        profile.insert(key, quoted.unwrap_or(value).to_owned());
    }
    if profiles.is_empty() {
        return Err("there is no section: begin with a line like [global]".to_owned());
    }
    profiles.iter().map(|(name, profile)| secret(name, profile)).collect()
}

fn secret(name: &str, profile: &BTreeMap<String, String>) -> Result<Value, String> {
    for key in REQUIRED {
        if profile.get(key).is_none_or(String::is_empty) {
            return Err(format!("section {name:?} has no value for {key}"));
        }
    }
    let verify = profile.get(VERIFY).map_or("true", String::as_str);
    if verify.parse::<bool>().is_err() {
        return Err(format!("section {name:?}: {VERIFY} is neither true nor false"));
    }
    let mut data = profile.clone();
    data.insert(VERIFY.to_owned(), verify.to_owned());
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        "stringData": data,
    }))
}

/// `capstan import-credentials FILE`.
pub(crate) fn command() -> Subcommand {
    let file = Arg::new("file")
        .value_name("FILE")
        .help("INI file with one section per profile: api-key, secret-key, api-url, verify-ssl")
        .required(true)
        .value_parser(value_parser!(PathBuf));
    Subcommand {
        command: Command::new("import-credentials")
            .about("Print the Secrets of EKS Anywhere's CloudStack credentials file, for kubectl apply")
            .arg(file),
        run: |matches, terminal| {
            let Some(path) = matches.get_one::<PathBuf>("file") else {
                return Err(ProviderError::new("name a FILE"));
            };
            let failed = |error| ProviderError::caused_by(format!("cannot read {}", path.display()), error);
            if std::fs::metadata(path).map_err(failed)?.len() > MOST {
                return Err(ProviderError::new(format!("{}: more than {MOST} bytes", path.display())));
            }
            let text = std::fs::read_to_string(path).map_err(failed)?;
            let wrong = |why: String| ProviderError::new(format!("{}: {why}", path.display()));
            for secret in secrets(&text).map_err(wrong)? {
                let text = serde_saphyr::to_string(&secret)
                    .map_err(|error| ProviderError::caused_by("a Secret cannot be written", error))?;
                terminal.print(&format!("---\n{}\n", text.trim_end()))?;
            }
            Ok(())
        },
    }
}

#[cfg(test)]
mod tests {
    use super::secrets;

    const WHOLE: &str =
        "; profiles\n[Global]\napi-key = a\nsecret-key = s=cret\napi-url = https://c/client/api\n";

    #[test]
    fn sections_become_secrets() {
        let two =
            format!("{WHOLE}\n[second]\napi-key=b\nsecret-key=t\napi-url=\"http://d\"\nverify-ssl=false\n");
        let found = secrets(&two).expect("secrets");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["metadata"]["name"], "global");
        assert_eq!(found[0]["metadata"]["namespace"], "eksa-system");
        assert_eq!(found[0]["stringData"]["secret-key"], "s=cret");
        assert_eq!(found[0]["stringData"]["verify-ssl"], "true");
        assert_eq!(found[1]["stringData"]["verify-ssl"], "false");
        assert_eq!(found[1]["stringData"]["api-url"], "http://d");
    }

    #[test]
    fn mistakes_are_named_and_values_are_not() {
        let without = |key: &str| {
            let kept: Vec<&str> = WHOLE.lines().filter(|line| !line.starts_with(key)).collect();
            kept.join("\n")
        };
        for (text, why) in [
            (String::new(), "there is no section"),
            ("api-key = hidden".to_owned(), "line 1: a key outside of a section"),
            ("[a]\nhidden".to_owned(), "line 2: neither a section nor KEY = VALUE"),
            ("[a b]\n".to_owned(), "is not a valid Secret name"),
            (format!("{WHOLE}[global]\n"), "duplicate section"),
            (format!("{WHOLE}token = hidden\n"), "unknown key \"token\""),
            (format!("{WHOLE}verify-ssl = hidden\n"), "verify-ssl is neither true nor false"),
            (without("api-key"), "has no value for api-key"),
            (without("secret-key"), "has no value for secret-key"),
            (without("api-url"), "has no value for api-url"),
        ] {
            let error = secrets(&text).expect_err(&text);
            assert!(error.contains(why), "{error}");
            assert!(!error.contains("hidden") && !error.contains("s=cret"), "{error}");
        }
    }
}
