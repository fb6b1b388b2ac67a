//! Resolves the content of files and the passwords of users: inline, from Secrets, or from templates.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::bootstrap::{
    File, FileContentFormat, FileSource, KubeadmConfigSpec, PasswdSource, SecretFileSource, User,
};

use super::template::{self, Data};
use crate::Error;
use crate::config::kubernetes_version;
use capstan_capi_core::secret::Secret;

/// Names of the Secrets that files and passwords refer to.
pub fn needed_secrets(spec: &KubeadmConfigSpec) -> BTreeSet<String> {
    let files = spec.files.iter().map(|file| &file.content_from.secret);
    let users = spec.users.iter().map(|user| &user.passwd_from.secret);
    files.chain(users).filter(|source| is_named(source)).map(|source| source.name.clone()).collect()
}

fn is_named(source: &SecretFileSource) -> bool {
    *source != SecretFileSource::default()
}

/// Resolves the content of files. Templates can use the control plane version, if it is known.
pub fn resolve_files(
    files: &[File],
    secrets: &BTreeMap<String, Secret>,
    control_plane_version: Option<&str>,
) -> Result<Vec<File>, Error> {
    let version = control_plane_version.filter(|version| !version.is_empty());
    let version =
        version.map(|text| kubernetes_version(text).map(|parsed| format!("v{parsed}"))).transpose()?;
    let data = Data::with_control_plane(version);
    let resolve = |file: &File| {
        let mut file = file.clone();
        if is_named(&file.content_from.secret) {
            file.content = secret_text(&file.content_from.secret, secrets)?;
            file.content_from = FileSource::default();
        }
        if file.content_format == Some(FileContentFormat::Template) {
            file.content = template::render(&file.content, &data)
                .map_err(|message| Error::Template { path: file.path.clone(), message })?;
        }
        file.content_format = None;
        Ok(file)
    };
    files.iter().map(resolve).collect()
}

pub fn resolve_users(users: &[User], secrets: &BTreeMap<String, Secret>) -> Result<Vec<User>, Error> {
    let resolve = |user: &User| {
        let mut user = user.clone();
        if is_named(&user.passwd_from.secret) {
            user.passwd = secret_text(&user.passwd_from.secret, secrets)?;
            user.passwd_from = PasswdSource::default();
        }
        Ok(user)
    };
    users.iter().map(resolve).collect()
}

fn secret_text(source: &SecretFileSource, secrets: &BTreeMap<String, Secret>) -> Result<String, Error> {
    let secret = secrets.get(&source.name).ok_or_else(|| Error::SecretMissing(source.name.clone()))?;
    Ok(secret.text(&source.key)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_object::OwnerReference;

    fn secrets() -> BTreeMap<String, Secret> {
        let data = [("key", &b"from the secret"[..]), ("binary", &b"\xff"[..])];
        let secret =
            capstan_capi_core::secret::cluster_secret("ns", "source", "c", OwnerReference::default(), data);
        BTreeMap::from([("source".to_owned(), secret)])
    }

    fn from_secret(name: &str, key: &str) -> File {
        let secret = SecretFileSource { name: name.to_owned(), key: key.to_owned() };
        File { path: "/a".to_owned(), content_from: FileSource { secret }, ..File::default() }
    }

    #[test]
    fn content_comes_from_the_named_key() {
        let files = resolve_files(&[from_secret("source", "key")], &secrets(), None).expect("files");
        assert_eq!(files[0].content, "from the secret");
        assert_eq!(files[0].content_from, FileSource::default());
    }

    #[test]
    fn missing_secrets_and_keys_are_named_without_content() {
        for (name, key, message) in [
            ("other", "key", "secret other does not exist"),
            ("source", "other", "secret source has no key \"other\""),
            ("source", "binary", "secret source key \"binary\" is not UTF-8 text"),
        ] {
            let error = resolve_files(&[from_secret(name, key)], &secrets(), None).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn templates_get_the_full_version() {
        let template = |content: &str| File {
            path: "/a".to_owned(),
            content: content.to_owned(),
            content_format: Some(FileContentFormat::Template),
            ..File::default()
        };
        let files = [template("{{ .controlPlane.version }}")];
        for (version, expected) in [("1.35", "v1.35.0"), ("v1.35.2+rke2r1", "v1.35.2+rke2r1")] {
            let resolved = resolve_files(&files, &BTreeMap::new(), Some(version)).expect("files");
            assert_eq!(resolved[0].content, expected);
        }
        let guarded = [template("{{ if .controlPlane }}x{{ else }}none{{ end }}")];
        assert_eq!(resolve_files(&guarded, &BTreeMap::new(), None).expect("files")[0].content, "none");
        let raw = [File { content: "{{ .x }}".to_owned(), ..File::default() }];
        assert_eq!(resolve_files(&raw, &BTreeMap::new(), None).expect("files")[0].content, "{{ .x }}");
    }
}
