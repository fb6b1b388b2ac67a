//! The connection of a command to its management cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_controller::{Access, Client, Env, ListOptions, Remote, TcpDial, TransportError};
use capstan_object::{Key, Object};
use tokio::sync::OnceCell;

use crate::kinds::{ServedKind, served_kinds};
use crate::output::eprint_line;
use crate::plugins::Plugins;

/// Default data directory of commands.
pub const DATA_DIR: &str = "capstan-data";
/// The administrator's kubeconfig in a data directory.
pub const ADMIN: &str = "admin.kubeconfig";

#[derive(Debug, Clone, clap::Args)]
pub struct ConnectionArgs {
    /// Kubeconfig of the management cluster; defaults to $KUBECONFIG, then the one in --data-dir
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Data directory of a server on this machine
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    pub data_dir: Option<PathBuf>,
    /// Namespace of the cluster
    #[arg(long, short, default_value = "default", value_name = "NAMESPACE")]
    pub namespace: String,
}

/// A client of a management cluster, and a namespace.
#[derive(Clone)]
pub struct Management {
    pub client: Client,
    pub namespace: String,
    /// `host:port` of its server.
    pub authority: String,
    /// The providers of this program; the server may have others.
    pub plugins: Plugins,
    /// Discovered on first use.
    kinds: Arc<OnceCell<Vec<ServedKind>>>,
}

impl ConnectionArgs {
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return Ok(file.clone());
        }
        if let Some(dir) = &self.data_dir {
            return Ok(dir.join(ADMIN));
        }
        let named = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        if let Some(named) = named {
            // kubectl merges the list; the current context comes from the first file that exists.
            let files: Vec<PathBuf> = std::env::split_paths(&named).collect();
            let first = files.iter().find(|file| file.exists()).or(files.first());
            return first.cloned().context("KUBECONFIG is empty");
        }
        let own = Path::new(DATA_DIR).join(ADMIN);
        if !own.exists() {
            bail!(
                "no management cluster: use --kubeconfig FILE or --data-dir DIR, set KUBECONFIG, or run this next to ./{DATA_DIR}"
            );
        }
        Ok(own)
    }

    /// Creates a client; sends nothing yet.
    pub fn open(&self, plugins: &Plugins) -> Result<Management> {
        let file = self.kubeconfig()?;
        let access = Access::from_file(&file)
            .with_context(|| format!("{} is not a usable kubeconfig", file.display()))?;
        let authority = access.authority();
        let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
        let client = Client::new(Arc::new(remote), "capstan-cli");
        Ok(Management::new(client, self.namespace.clone(), authority, plugins.clone()))
    }

    /// Connects and runs a command to its end.
    pub fn run<T>(&self, plugins: &Plugins, command: impl AsyncFnOnce(Management) -> Result<T>) -> Result<T> {
        let management = self.open(plugins)?;
        let server = format!("the management cluster at {}", management.authority);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(command(management)).map_err(|error| {
            if is_unreachable(&error) { error.context(format!("{server} cannot be reached")) } else { error }
        })
    }
}

impl Management {
    pub fn new(client: Client, namespace: String, authority: String, plugins: Plugins) -> Self {
        Self { client, namespace, authority, plugins, kinds: Arc::default() }
    }

    /// The same server, another namespace.
    pub fn within(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The kinds of Cluster API that the server has. Cached: live views poll twice a second.
    pub async fn kinds(&self) -> Result<&[ServedKind]> {
        let asked = self.kinds.get_or_try_init(|| served_kinds(&self.client)).await;
        Ok(asked.context("cannot list the kinds of the server")?)
    }

    /// Gets an object; if it does not exist, the error lists those that do.
    pub async fn find<T: Object>(&self, name: &str) -> Result<T> {
        if let Some(found) = self.client.get::<T>(&Key::new(&self.namespace, name)).await? {
            return Ok(found);
        }
        let others = self.client.list_all::<T>(&self.namespace, &ListOptions::default()).await?;
        let names: Vec<&str> = others.iter().map(|other| other.metadata().name.as_str()).collect();
        bail!("{}", missing(&T::KIND.kind.to_lowercase(), name, &self.namespace, &names));
    }
}

/// Keeps a command that polls alive while its server is restarted.
#[derive(Debug, Default)]
pub struct Reconnect {
    answered: bool,
    /// Whether the outage was reported since the last answer.
    noted: bool,
}

impl Reconnect {
    /// The answer of a poll; `None` to try again later. A server that never answered is an error.
    pub fn retry<T>(&mut self, polled: Result<T>) -> Result<Option<T>> {
        match polled {
            Ok(answer) => {
                if std::mem::take(&mut self.noted) {
                    eprint_line("the server answers again");
                }
                self.answered = true;
                Ok(Some(answer))
            }
            Err(error) if self.answered && is_unreachable(&error) => {
                if !std::mem::replace(&mut self.noted, true) {
                    eprint_line(&format!("the server does not answer; trying again: {error:#}"));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether an error means that the server could not be reached.
pub fn is_unreachable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<TransportError>())
}

/// Error text for an object that does not exist, with those that do.
pub fn missing(what: &str, name: &str, namespace: &str, existing: &[&str]) -> String {
    /// Fits on a line or two.
    const MOST: usize = 12;
    let rest = existing.len().saturating_sub(MOST);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let are = match existing {
        [] => "there are none; use --namespace for another namespace".to_owned(),
        _ => format!("there are: {}{more}", existing[..existing.len().min(MOST)].join(", ")),
    };
    format!("no {what} named {name} in namespace {namespace}; {are}")
}

#[cfg(test)]
mod tests {
    use capstan_controller::TransportError;

    use super::{Reconnect, missing};

    #[test]
    fn a_server_that_answered_before_is_waited_for() {
        let lost = || anyhow::Error::from(TransportError::never_sent("connection refused"));
        let mut connection = Reconnect::default();
        assert!(connection.retry::<()>(Err(lost())).is_err(), "it never answered");
        assert_eq!(connection.retry(Ok(1)).expect("an answer"), Some(1));
        assert_eq!(connection.retry::<()>(Err(lost())).expect("no error"), None);
        assert_eq!(connection.retry::<()>(Err(lost())).expect("no error"), None);
        assert_eq!(connection.retry(Ok(2)).expect("an answer"), Some(2));
        assert!(connection.retry::<()>(Err(anyhow::anyhow!("forbidden"))).is_err());
    }

    #[test]
    fn missing_objects_are_reported_with_those_that_exist() {
        let many: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (existing, expected) in [
            (
                &[][..],
                "no cluster named x in namespace default; there are none; use --namespace for another namespace",
            ),
            (&["a", "b"][..], "no cluster named x in namespace default; there are: a, b"),
            (
                &many[..],
                "no cluster named x in namespace default; \
                 there are: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 8 more",
            ),
        ] {
            assert_eq!(missing("cluster", "x", "default", existing), expected);
        }
    }
}
