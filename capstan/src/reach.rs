//! The management cluster that a command is about: where it is found, and a client of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_controller::{Access, Client, Env, ListOptions, Remote, TcpDial, TransportError};
use capstan_object::{Key, Object};
use tokio::sync::OnceCell;

use crate::kinds::{Known, known};
use crate::plugins::Plugins;

/// The data directory that commands look into when nothing else is said.
pub const DATA_DIR: &str = "capstan-data";
/// The administrator's kubeconfig in a data directory.
pub const ADMIN: &str = "admin.kubeconfig";

/// Which management cluster, and where on it.
#[derive(Debug, Clone, clap::Args)]
pub struct Reach {
    /// Kubeconfig of the management cluster; without it $KUBECONFIG, then the server's own in --data-dir
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Data directory of a server on this machine
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    pub data_dir: Option<PathBuf>,
    /// Namespace of the cluster
    #[arg(long, short, default_value = "default", value_name = "NAMESPACE")]
    pub namespace: String,
}

/// A management cluster that answers to a kubeconfig, and a namespace on it.
#[derive(Clone)]
pub struct Management {
    /// Its client.
    pub client: Client,
    /// The namespace that was asked about.
    pub namespace: String,
    /// `host:port` of its server.
    pub authority: String,
    /// The clouds that this program knows; the server may know others.
    pub plugins: Plugins,
    /// The kinds that it has, once somebody asked.
    kinds: Arc<OnceCell<Vec<Known>>>,
}

impl Reach {
    /// The kubeconfig that leads there.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return Ok(file.clone());
        }
        if let Some(dir) = &self.data_dir {
            return Ok(dir.join(ADMIN));
        }
        let named = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        if let Some(named) = named {
            // kubectl merges a list; the first that exists has its current context.
            let files: Vec<PathBuf> = std::env::split_paths(&named).collect();
            let first = files.iter().find(|file| file.exists()).or(files.first());
            return first.cloned().context("KUBECONFIG names no file");
        }
        let own = Path::new(DATA_DIR).join(ADMIN);
        if !own.exists() {
            bail!(
                "no management cluster: give --kubeconfig FILE or --data-dir DIR, set KUBECONFIG, or run this beside ./{DATA_DIR}"
            );
        }
        Ok(own)
    }

    /// A client of it. Nothing is asked yet.
    pub fn open(&self, plugins: &Plugins) -> Result<Management> {
        let file = self.kubeconfig()?;
        let access = Access::from_file(&file)
            .with_context(|| format!("{} does not lead to a server", file.display()))?;
        let authority = access.authority();
        let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
        let client = Client::new(Arc::new(remote), "capstan-cli");
        Ok(Management::new(client, self.namespace.clone(), authority, plugins.clone()))
    }

    /// Opens it and runs a command on it to its end.
    pub fn run<T>(&self, plugins: &Plugins, command: impl AsyncFnOnce(Management) -> Result<T>) -> Result<T> {
        let management = self.open(plugins)?;
        let server = format!("the management cluster at {}", management.authority);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(command(management)).map_err(|error| {
            if is_silence(&error) { error.context(format!("{server} cannot be reached")) } else { error }
        })
    }
}

impl Management {
    /// A namespace of the server that `client` leads to.
    pub fn new(client: Client, namespace: String, authority: String, plugins: Plugins) -> Self {
        Self { client, namespace, authority, plugins, kinds: Arc::default() }
    }

    /// Another namespace of it.
    pub fn within(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The kinds of Cluster API that the server has. It is asked once: whoever follows a cluster looks twice a second.
    pub async fn kinds(&self) -> Result<&[Known]> {
        let asked = self.kinds.get_or_try_init(|| known(&self.client)).await;
        Ok(asked.context("the kinds of the server cannot be listed")?)
    }

    /// An object of a kind that has a type here; an error that names those there are if it is not among them.
    pub async fn find<T: Object>(&self, name: &str) -> Result<T> {
        if let Some(found) = self.client.get::<T>(&Key::new(&self.namespace, name)).await? {
            return Ok(found);
        }
        let others = self.client.list_all::<T>(&self.namespace, &ListOptions::default()).await?;
        let names: Vec<&str> = others.iter().map(|other| other.metadata().name.as_str()).collect();
        bail!("{}", missing(&T::KIND.kind.to_lowercase(), name, &self.namespace, &names));
    }
}

/// Whether an error says that no server answered.
pub fn is_silence(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<TransportError>())
}

/// Says that something is not there, and what is.
pub fn missing(what: &str, name: &str, namespace: &str, there: &[&str]) -> String {
    /// As many as fit on a line or two.
    const MOST: usize = 12;
    let rest = there.len().saturating_sub(MOST);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let are = match there {
        [] => "there are none; --namespace chooses another".to_owned(),
        _ => format!("there are: {}{more}", there[..there.len().min(MOST)].join(", ")),
    };
    format!("no {what} named {name} in namespace {namespace}; {are}")
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn what_is_missing_is_named_with_what_there_is() {
        let many: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (there, said) in [
            (&[][..], "no cluster named x in namespace default; there are none; --namespace chooses another"),
            (&["a", "b"][..], "no cluster named x in namespace default; there are: a, b"),
            (
                &many[..],
                "no cluster named x in namespace default; \
                 there are: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 8 more",
            ),
        ] {
            assert_eq!(missing("cluster", "x", "default", there), said);
        }
    }
}
