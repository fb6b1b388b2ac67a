//! `capstan kubeconfig`: access to a workload cluster, printed or merged into a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_capi_core::secret::Secret;
use capstan_capi_types::core::Cluster;
use capstan_object::Key;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::connection::ConnectionArgs;
use crate::exit::Exit;
use crate::output::{eprint_line, print_as_it_is, print_line};
use crate::plugins::Plugins;

/// Arguments of `capstan kubeconfig`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    cluster: String,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Merge into this file as context NAME-admin@NAME and keep everything else in it; printed if not given
    #[arg(long, value_name = "FILE")]
    merge: Option<PathBuf>,
    /// With --merge: make it the current context
    #[arg(long, requires = "merge")]
    switch: bool,
    /// With --merge: replace entries of the same name that point to another server
    #[arg(long, requires = "merge")]
    force: bool,
    /// With --merge: check whether it can be merged; leave the file unchanged
    #[arg(long, requires = "merge")]
    dry_run: bool,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let name = &args.cluster;
    let secret = args.connection.run(plugins, async |management| {
        let _: Cluster = management.find(name).await?;
        let key = Key::new(&management.namespace, format!("{name}-kubeconfig"));
        let found = management.client.get::<Secret>(&key).await?;
        found.with_context(|| {
            let namespace = &management.namespace;
            format!(
                "cluster {name} has no kubeconfig yet (no Secret {key}); run `capstan why {name} -n {namespace}`"
            )
        })
    })?;
    let own = named(&secret.text("value")?, name)
        .with_context(|| format!("the kubeconfig of cluster {name}, in Secret {name}-kubeconfig"))?;
    let refused = check(&own).with_context(|| {
        format!(
            "the kubeconfig in Secret {name}-kubeconfig cannot be merged: a user who can write the Secret would decide \
             what kubectl runs on this machine"
        )
    });
    let Some(file) = &args.merge else {
        if let Err(error) = refused {
            eprint_line(&format!("warning: {error:#}"));
        }
        print_as_it_is(yaml(&own)?.trim_end())?;
        return Ok(Exit::Done);
    };
    refused?;
    let existing = match std::fs::read_to_string(file) {
        Ok(text) => parsed(&text).with_context(|| format!("{} was not changed", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            json!({"apiVersion": "v1", "kind": "Config"})
        }
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", file.display())),
    };
    let context = own["current-context"].as_str().unwrap_or_default().to_owned();
    let merged = merged(existing, &own, args.switch, args.force)
        .with_context(|| format!("{} was not changed", file.display()))?;
    if args.dry_run {
        print_line(&format!("{}: context {context} would be merged into it", file.display()))?;
        return Ok(Exit::Done);
    }
    replace(file, &yaml(&merged)?).with_context(|| format!("{} cannot be written", file.display()))?;
    print_line(&format!(
        "{}: context {context}\nnext: kubectl --kubeconfig {0} --context {context} get nodes",
        file.display()
    ))?;
    Ok(Exit::Done)
}

/// The three lists of a kubeconfig.
const LISTS: [&str; 3] = ["clusters", "users", "contexts"];

fn parsed(text: &str) -> Result<Value> {
    let config: Option<Value> = serde_saphyr::from_str(text).ok();
    // An empty file is a kubeconfig to kubectl.
    let config =
        if text.trim().is_empty() { Some(json!({"apiVersion": "v1", "kind": "Config"})) } else { config };
    match config {
        Some(config)
            if config.is_object()
                && LISTS.iter().all(|list| config[*list].is_array() || config[*list].is_null()) =>
        {
            Ok(config)
        }
        // The content may be secret: do not print it.
        _ => bail!("it is not a kubeconfig"),
    }
}

/// Fields that hold data only. Others run programs, read files of this machine, or redirect or weaken the connection.
const CLUSTER_FIELDS: [&str; 5] =
    ["server", "certificate-authority-data", "tls-server-name", "disable-compression", "extensions"];
const USER_FIELDS: [&str; 6] =
    ["client-certificate-data", "client-key-data", "token", "username", "password", "extensions"];

/// Refuses a kubeconfig with more than an address and credentials.
fn check(config: &Value) -> Result<()> {
    let cluster = (&config["clusters"][0]["cluster"], "cluster", &CLUSTER_FIELDS[..]);
    let user = (&config["users"][0]["user"], "user", &USER_FIELDS[..]);
    for (entry, kind, allowed) in [cluster, user] {
        let fields = entry.as_object().into_iter().flatten();
        // Clients treat these as absent.
        let set = fields
            .filter(|(_, value)| !matches!(value, Value::Null | Value::Bool(false)) && **value != json!(""));
        if let Some((field, _)) = set.into_iter().find(|(field, _)| !allowed.contains(&field.as_str())) {
            let why = meaning(field);
            // Whoever writes the Secret chooses the name: it stays on this line.
            let field = field.escape_debug();
            bail!(
                "its {kind} has {field}, which {why}: remove {field} from the Secret, or use `capstan kubeconfig` without \
                 --merge and review what it prints"
            );
        }
    }
    Ok(())
}

fn meaning(field: &str) -> &'static str {
    match field {
        "exec" | "auth-provider" => "runs a program",
        "certificate-authority" | "client-certificate" | "client-key" | "tokenFile" => "reads a file",
        "proxy-url" => "sends all requests through a proxy",
        "insecure-skip-tls-verify" => "turns off the check of the server's certificate",
        "as" | "as-uid" | "as-groups" | "as-user-extra" => "acts as another user",
        _ => "is not an address or a credential",
    }
}

/// Only the current context of a kubeconfig, renamed after the cluster.
fn named(text: &str, cluster: &str) -> Result<Value> {
    let config = parsed(text)?;
    let entry = |list: &str, name: &Value| {
        let found = config[list].as_array().and_then(|list| list.iter().find(|item| item["name"] == *name));
        found.cloned().with_context(|| format!("it refers to an entry in {list} that does not exist"))
    };
    let context = entry("contexts", &config["current-context"])?;
    let server = entry("clusters", &context["context"]["cluster"])?;
    let user = entry("users", &context["context"]["user"])?;
    let admin = format!("{cluster}-admin");
    let name = format!("{admin}@{cluster}");
    let mut inner = context["context"].clone();
    inner["cluster"] = cluster.into();
    inner["user"] = admin.as_str().into();
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": cluster, "cluster": server["cluster"]}],
        "contexts": [{"name": name, "context": inner}],
        "users": [{"name": admin, "user": user["user"]}],
    }))
}

/// Adds `own` to `existing`; entries of the same name are replaced.
fn merged(mut existing: Value, own: &Value, switch: bool, force: bool) -> Result<Value> {
    let cluster = &own["clusters"][0];
    let held = existing["clusters"]
        .as_array()
        .and_then(|list| list.iter().find(|item| item["name"] == cluster["name"]));
    if let Some(held) = held
        && held["cluster"]["server"] != cluster["cluster"]["server"]
        && !force
    {
        bail!(
            "its entry {} points to another server ({}); --force replaces it",
            cluster["name"],
            held["cluster"]["server"].as_str().unwrap_or("none")
        );
    }
    for list in LISTS {
        let item = &own[list][0];
        let mut items = existing[list].as_array().cloned().unwrap_or_default();
        match items.iter_mut().find(|held| held["name"] == item["name"]) {
            Some(held) => *held = item.clone(),
            None => items.push(item.clone()),
        }
        existing[list] = items.into();
    }
    if switch || existing["current-context"].as_str().is_none_or(str::is_empty) {
        existing["current-context"] = own["current-context"].clone();
    }
    Ok(existing)
}

fn yaml(config: &Value) -> Result<String> {
    Ok(serde_saphyr::to_string(config)?)
}

/// Replaces a file atomically. A symbolic link is kept and its target replaced.
fn replace(file: &Path, text: &str) -> Result<()> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Created with mode 0600.
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(&file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_runs_programs_or_reads_files_is_refused() {
        let with = |cluster: &str, user: &str| {
            let text = format!(
                "current-context: c\nclusters: [{{name: k, cluster: {{server: 'https://a', {cluster}}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: t, {user}}}}}]\n"
            );
            check(&named(&text, "demo").expect("a kubeconfig"))
        };
        for (cluster, user) in [
            ("", ""),
            ("certificate-authority-data: YQ==, tls-server-name: a", "client-key-data: YQ=="),
            ("insecure-skip-tls-verify: false", "tokenFile: ''"),
        ] {
            with(cluster, user).expect("data only");
        }
        for (cluster, user, expected) in [
            (
                "",
                "exec: {command: sh}",
                "its user has exec, which runs a program: remove exec from the Secret",
            ),
            ("", "auth-provider: {name: x}", "auth-provider, which runs a program"),
            ("", "tokenFile: /etc/passwd", "tokenFile, which reads a file"),
            ("", "client-certificate: /a", "client-certificate, which reads a file"),
            ("", "client-key: /a", "client-key, which reads a file"),
            ("certificate-authority: /a", "", "its cluster has certificate-authority, which reads a file"),
            ("proxy-url: 'http://evil'", "", "proxy-url, which sends all requests through a proxy"),
            ("insecure-skip-tls-verify: true", "", "insecure-skip-tls-verify, which turns off"),
            ("", "as: root", "as, which acts as another user"),
            ("", r#""x\e[2J\ny": 1"#, r"its user has x\u{1b}[2J\ny, which is not an address or a credential"),
        ] {
            let error = with(cluster, user).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    fn config(cluster: &str, server: &str) -> Value {
        named(
            &format!(
                "current-context: c\nclusters: [{{name: k, cluster: {{server: \"{server}\"}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
            ),
            cluster,
        )
        .expect("a kubeconfig")
    }

    #[test]
    fn entries_are_renamed_after_the_cluster() {
        let own = config("blue", "https://a");
        assert_eq!(own["current-context"], "blue-admin@blue");
        assert_eq!(own["contexts"][0]["context"], json!({"cluster": "blue", "user": "blue-admin"}));
        assert_eq!(own["users"][0], json!({"name": "blue-admin", "user": {"token": "t"}}));
    }

    #[test]
    fn merging_replaces_only_entries_of_the_cluster() {
        let other = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "other", "preferences": {"colors": true},
            "clusters": [{"name": "other", "cluster": {"server": "https://o", "proxy-url": "http://p"}}],
            "contexts": [{"name": "other", "context": {"cluster": "other", "user": "other", "namespace": "n"}}],
            "users": [{"name": "other", "user": {"exec": {"command": "login"}}}],
        });
        let blue = config("blue", "https://a");
        let once = merged(other.clone(), &blue, false, false).expect("merged");
        assert_eq!(once["current-context"], "other", "the current context is kept");
        assert_eq!(once["preferences"], other["preferences"]);
        for list in LISTS {
            assert_eq!(once[list][0], other[list][0], "{list}");
            assert_eq!(once[list][1], blue[list][0], "{list}");
        }
        assert_eq!(merged(once.clone(), &blue, false, false).expect("merged"), once, "twice is once");
        assert_eq!(
            merged(once.clone(), &blue, true, false).expect("merged")["current-context"],
            "blue-admin@blue"
        );
        let moved = config("blue", "https://b");
        let error = merged(once.clone(), &moved, false, false).expect_err("another server").to_string();
        assert!(error.contains("https://a") && error.contains("--force"), "{error}");
        let forced = merged(once, &moved, false, true).expect("merged");
        assert_eq!(forced["clusters"].as_array().map(Vec::len), Some(2));
        assert_eq!(forced["clusters"][1]["cluster"]["server"], "https://b");
    }

    #[test]
    fn invalid_kubeconfigs_are_refused_without_printing_them() {
        for text in ["[hidden]", "clusters: hidden", "a: [hidden"] {
            let error = parsed(text).expect_err("no kubeconfig").to_string();
            assert_eq!(error, "it is not a kubeconfig");
        }
        assert!(parsed("\n").is_ok(), "an empty file is a kubeconfig");
    }

    #[test]
    fn the_file_is_replaced_atomically_and_a_link_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").expect("written");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        replace(&link, "new").expect("replaced");
        assert_eq!(std::fs::read_to_string(&real).expect("read"), "new");
        assert!(link.symlink_metadata().expect("there").is_symlink());
        let mode = std::os::unix::fs::PermissionsExt::mode(&real.metadata().expect("there").permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
