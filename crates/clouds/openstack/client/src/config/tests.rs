//! Claims about settings.

use serde_json::json;

use super::*;
use crate::auth::{DomainRef, ProjectRef, Scope, UserRef};

const CLOUDS: &str = "
clouds:
  one:
    profile: vendor
    auth:
      username: alice
      user_domain_name: Default
      project_name: p1
      project_domain_id: default
    regions:
      - name: here
        values: { interface: internal }
      - there
  two:
    auth_type: v3applicationcredential
    auth: { auth_url: 'http://k2.example:5000/v3/', application_credential_id: ac }
    verify: false
    region_name: r2
";
const SECURE: &str = "
clouds:
  one: { auth: { password: 12345 } }
  two: { auth: { application_credential_secret: hidden } }
";
const PUBLIC: &str = "
public-clouds:
  vendor:
    auth: { auth_url: 'https://vendor.example/identity', username: nobody }
    interface: admin
";

fn clouds() -> Clouds {
    Clouds::parse(CLOUDS, Some(SECURE), Some(PUBLIC)).unwrap()
}

#[test]
fn clouds_are_named_in_the_order_of_the_file() {
    for (clouds, secure, names) in [
        (
            "clouds: { zone: { auth: { a: [1] } }, admin: {}, Middle: }",
            None,
            &["zone", "admin", "Middle"][..],
        ),
        ("clouds:\n  b: &b { verify: false }\n  a: *b\nother: [1]", None, &["b", "a"]),
        (r#"{"clouds": {"b": {"x": 1}, "a": {}}}"#, None, &["b", "a"]),
        ("clouds: { b: {} }", Some("clouds: { d: {}, c: {} }"), &["b", "c", "d"]),
        ("clouds:", None, &[]),
        ("", None, &[]),
    ] {
        assert_eq!(Clouds::parse(clouds, secure, None).unwrap().names(), names, "{clouds}");
    }
}

#[test]
fn files_are_merged_as_other_clients_merge_them() {
    let one = clouds().cloud(Some("one"), None).unwrap();
    assert_eq!(one.identity_url.as_str(), "https://vendor.example/identity/v3");
    // The first region counts, and its values beat those of the profile.
    assert_eq!((one.region.as_deref(), one.interface), (Some("here"), Interface::Internal));
    let user = UserRef::Name("alice".to_owned(), DomainRef::Name("Default".to_owned()));
    let project = ProjectRef::Name("p1".to_owned(), DomainRef::Id("default".to_owned()));
    match &one.credentials {
        Credentials::Password { user: who, password, scope } => {
            assert_eq!((who, scope), (&user, &Scope::Project(project)));
            assert_eq!(password.expose(), "12345");
        }
        other => panic!("{other:?}"),
    }
    let there = clouds().cloud(Some("one"), Some("there")).unwrap();
    assert_eq!((there.region.as_deref(), there.interface), (Some("there"), Interface::Admin));
    let error = clouds().cloud(Some("one"), Some("nowhere")).unwrap_err();
    assert_eq!(error.to_string(), r#"cloud one: region "nowhere" is none of its regions: here, there"#);
    let two = clouds().cloud(Some("two"), Some("r3")).unwrap();
    assert!(matches!(two.trust, Trust::Anyone));
    assert_eq!(two.region.as_deref(), Some("r3"));
    assert!(matches!(&two.credentials, Credentials::ApplicationCredential { id, .. } if id == "ac"));
    let shown = format!("{:?} {one:?} {two:?}", clouds());
    assert!(!shown.contains("12345") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn a_cloud_is_chosen_by_name_or_because_it_is_the_only_one() {
    let error = clouds().cloud(None, None).unwrap_err();
    assert_eq!(error.to_string(), "clouds.yaml has several clouds: name one of one, two");
    let error = clouds().cloud(Some("three"), None).unwrap_err();
    assert_eq!(error.to_string(), r#"there is no cloud "three" in clouds.yaml; it has one, two"#);
    let only = "clouds: { x: { auth: { auth_url: 'http://k', token: t } } }";
    assert_eq!(Clouds::parse(only, None, None).unwrap().cloud(None, None).unwrap().name, "x");
}

/// One cloud with this `auth` and these settings beside it.
fn resolve(auth: Value, beside: Value) -> Result<Cloud, ConfigError> {
    let mut entry = beside;
    entry["auth"] = auth;
    let text = json!({ "clouds": { "c": entry } }).to_string();
    Clouds::parse(&text, None, None).unwrap().cloud(Some("c"), None)
}

#[test]
fn every_kind_of_credentials_is_understood() {
    let url = "https://k.example";
    let domain = |name: &str| DomainRef::Name(name.to_owned());
    let table = [
        (
            json!({ "auth_url": url, "user_id": "u", "password": "x", "tenant_id": "p" }),
            json!({}),
            "Password { user: Id(\"u\"), password: [redacted], scope: Project(Id(\"p\")) }".to_owned(),
        ),
        (
            json!({ "auth_url": url, "username": "u", "password": "x", "domain_name": "D" }),
            json!({}),
            format!(
                "Password {{ user: Name(\"u\", {0:?}), password: [redacted], scope: Domain({0:?}) }}",
                domain("D")
            ),
        ),
        (
            json!({ "auth_url": url, "username": "u", "password": "x", "default_domain": "default", "project_name": "p" }),
            json!({}),
            "Password { user: Name(\"u\", Id(\"default\")), password: [redacted], \
             scope: Project(Name(\"p\", Id(\"default\"))) }"
                .to_owned(),
        ),
        (
            json!({ "auth_url": url, "user_id": "u", "password": "x", "trust_id": "t" }),
            json!({}),
            "Password { user: Id(\"u\"), password: [redacted], scope: Trust(\"t\") }".to_owned(),
        ),
        (
            json!({ "auth_url": url, "user_id": "u", "password": "x", "system_scope": "all" }),
            json!({ "auth_type": "v3password" }),
            "Password { user: Id(\"u\"), password: [redacted], scope: System }".to_owned(),
        ),
        (
            json!({ "auth_url": url, "application_credential_name": "n", "user_id": "u", "application_credential_secret": "x" }),
            json!({}),
            "NamedApplicationCredential { user: Id(\"u\"), name: \"n\", secret: [redacted] }".to_owned(),
        ),
        (
            json!({ "auth_url": url, "token": "x" }),
            json!({ "auth_type": "v3token", "project_id": "p" }),
            "Token { token: [redacted], scope: Project(Id(\"p\")) }".to_owned(),
        ),
    ];
    for (auth, beside, expected) in table {
        assert_eq!(format!("{:?}", resolve(auth, beside).unwrap().credentials), expected);
    }
}

#[test]
fn a_setting_that_is_missing_or_wrong_is_named_with_its_mend() {
    let good = || json!({ "auth_url": "https://k.example", "user_id": "u", "password": "very-secret", "project_id": "p" });
    let with = |key: &str, value: Value| {
        let mut auth = good();
        auth[key] = value;
        auth
    };
    let table = [
        (
            with("auth_url", json!(null)),
            json!({}),
            "cloud c: auth.auth_url is missing: set it to Keystone's URL",
        ),
        (
            with("auth_url", json!(null)),
            json!({ "profile": "vexx" }),
            "cloud c: auth.auth_url is missing: profile vexx is not in clouds-public.yaml, so write auth.auth_url out",
        ),
        (
            with("auth_url", json!("k.example")),
            json!({}),
            "cloud c: auth.auth_url is not an http or https URL",
        ),
        (
            with("password", json!(null)),
            json!({}),
            "cloud c: auth.password is missing: set it, or put it into secure.yaml",
        ),
        (with("password", json!(["very-secret"])), json!({}), "cloud c: auth.password must be a text"),
        (with("user_id", json!(null)), json!({}), "cloud c: auth.username is missing: set it, or user_id"),
        (good(), json!({ "interface": "secret" }), "cloud c: interface must be public, internal or admin"),
        (good(), json!({ "verify": "maybe" }), "cloud c: verify must be true or false"),
        (
            good(),
            json!({ "auth_type": "v3oidcpassword" }),
            "cloud c: auth_type is not supported: use password, v3applicationcredential or token",
        ),
        (
            good(),
            json!({ "cert": "/c.pem" }),
            "cloud c: cert is not supported: client certificates cannot be used",
        ),
        (
            good(),
            json!({ "compute_endpoint_override": "nova" }),
            "cloud c: compute_endpoint_override is not an http or https URL",
        ),
    ];
    for (auth, beside, expected) in table {
        assert_eq!(resolve(auth, beside).unwrap_err().to_string(), expected);
    }
    // A parser's message would quote the password.
    let error = Clouds::parse("clouds: { x: { auth: { password: very-secret, : ] }", None, None).unwrap_err();
    assert_eq!(error.to_string(), "clouds.yaml cannot be read: it is not valid YAML");
}

#[test]
fn files_are_looked_for_where_other_clients_look() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let entry = |url: &str| format!("clouds: {{ x: {{ auth: {{ auth_url: 'http://{url}', token: t }} }} }}");
    let files =
        Files { folders: ["a", "b", "c"].map(|name| folder.path().join(name)).to_vec(), ..Files::default() };
    assert!(
        files.read().unwrap_err().to_string().starts_with("clouds.yaml cannot be read: it is in none of ")
    );
    let host = |files: &Files| {
        files.read().unwrap().cloud(None, None).unwrap().identity_url.host_str().unwrap().to_owned()
    };
    write("c/clouds.json", r#"{"clouds":{"x":{"auth":{"auth_url":"http://json","token":"t"}}}}"#);
    assert_eq!(host(&files), "json");
    write("b/clouds.yml", &entry("yml"));
    assert_eq!(host(&files), "yml");
    write("b/clouds.yaml", &entry("yaml"));
    assert_eq!(host(&files), "yaml");
    // Secrets may be in another folder than the rest.
    write("c/secure.yaml", "clouds: { x: { auth: { auth_url: 'http://secure' } } }");
    assert_eq!(host(&files), "secure");
    let given = Files { config_file: Some(write("given.yaml", &entry("given"))), ..files.clone() };
    assert_eq!(given.read().unwrap().cloud(None, None).unwrap().identity_url.host_str(), Some("secure"));
    write("a/clouds.yaml", "[");
    assert!(
        files.read().unwrap_err().to_string().ends_with("a/clouds.yaml cannot be read: it is not valid YAML")
    );
}

#[test]
fn variables_count_only_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    std::fs::write(
        &file,
        CLOUDS.replace(
            "auth_url: 'http://k2.example:5000/v3/', ",
            "auth_url: 'http://k2.example', application_credential_secret: x, ",
        ),
    )
    .unwrap();
    let variables = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Environment::new(move |name| {
            pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        })
    };
    let path = file.display().to_string();
    let named =
        [("OS_CLIENT_CONFIG_FILE", path.as_str()), ("OS_CLOUD", "two"), ("OS_AUTH_URL", "http://other")];
    let two = variables(&named).cloud(None, None).unwrap();
    assert_eq!((two.name.as_str(), two.identity_url.as_str()), ("two", "http://k2.example/v3"));
    let alone = [
        ("OS_AUTH_URL", "http://env.example/v3"),
        ("OS_USERNAME", "u"),
        ("OS_PASSWORD", "x"),
        ("OS_USER_DOMAIN_NAME", "Default"),
        ("OS_PROJECT_ID", "p"),
        ("OS_REGION_NAME", "r"),
        ("OS_INTERFACE", "internal"),
    ];
    let cloud = variables(&alone).cloud(None, None).unwrap();
    assert_eq!((cloud.name.as_str(), cloud.region.as_deref()), ("envvars", Some("r")));
    assert_eq!(cloud.interface, Interface::Internal);
}

#[test]
fn authorities_come_from_a_file_only_when_asked_for() {
    let auth = json!({ "auth_url": "https://k.example", "token": "t" });
    let cloud = resolve(auth.clone(), json!({ "cacert": "/does/not/exist.pem" })).unwrap();
    assert!(matches!(cloud.trust, Trust::System));
    let error = cloud.clone().read_ca_file().unwrap_err();
    assert_eq!(error.to_string(), "/does/not/exist.pem cannot be read: entity not found");
    assert!(matches!(cloud.with_ca(b"pem".to_vec()).trust, Trust::Bundle(pem) if pem == b"pem"));
    let off = resolve(auth, json!({ "insecure": true })).unwrap();
    assert!(matches!(off.with_ca(Vec::new()).trust, Trust::Anyone));
}
