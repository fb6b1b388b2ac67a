//! `cargo xtask raw-parity`: sends the same HTTP requests to kube-apiserver and to ours, and compares the responses.
//!
//! Both servers get every request in the same order, so that both have the same objects. Status, the headers that
//! clients read, and bodies are compared to the byte, after replacing uids, times, resource versions and addresses.

mod corpus;
mod explained;
mod normalise;
mod protobuf;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, Http, Reply};
use crate::bed::{Controllers, Flavour, Server, Workdir, install, kubeconfig, wait};
use crate::text::human_duration;
use corpus::{Body, File, Request};
use explained::Explanation;

/// A request that waits for a controller is repeated for this long.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub struct Options {
    /// Only files whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Server that is compared with kube-apiserver; `kube` checks that the comparison itself finds nothing
    #[arg(long, default_value = "capstan")]
    subject: Flavour,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Print every request with both responses
    #[arg(long)]
    verbose: bool,
}

/// One difference of the two servers.
#[derive(Debug)]
struct Difference {
    file: String,
    request: String,
    what: &'static str,
    detail: String,
}

/// One server and what was saved from its responses.
struct Side {
    api: Api,
    anonymous: Api,
    /// Host and port.
    host: String,
    saved: BTreeMap<String, String>,
}

pub async fn run(options: Options) -> Result<()> {
    let mut files = corpus::load()?;
    let explained = explained::load()?;
    if let Some(only) = &options.only {
        files.retain(|file| file.name.contains(only.as_str()));
    }
    let mut workdir = Workdir::new("raw-parity")?;
    let expected = Server::kube(&workdir.folder("expected")?, Controllers::Plane).await?;
    let subject = match options.subject {
        Flavour::Kube => Server::kube(&workdir.folder("subject")?, Controllers::Plane).await?,
        Flavour::Capstan => {
            Server::start(Flavour::Capstan, &workdir.folder("subject")?, options.capstan.as_deref()).await?
        }
    };
    // The same kinds as for kubectl.
    let setup = crate::cargo::root().join("tests/kubectl-parity/setup.yaml");
    let setup = install::documents(&std::fs::read_to_string(setup)?)?;
    for server in [&expected, &subject] {
        install::create_definitions(&server.api()?, &setup).await.context(server.flavour.name())?;
    }
    let started = Instant::now();
    let explained = if options.subject == Flavour::Capstan { explained } else { Vec::new() };
    let (mut left, mut right) = (Side::open(&expected)?, Side::open(&subject)?);
    let mut differences = Vec::new();
    let mut count = 0;
    for file in &files {
        let before = differences.len();
        let requests = file.requests()?;
        tokio::try_join!(left.enter(file), right.enter(file))?;
        for request in &requests {
            let found = compare(file, request, &mut left, &mut right, options.verbose).await;
            differences.extend(found.with_context(|| format!("{}: {}", file.name, request.label()))?);
        }
        let compared = requests.iter().filter(|request| !request.quiet).count();
        count += compared;
        let found = &differences[before..];
        let different: BTreeSet<_> = found.iter().map(|found| &found.request).collect();
        println!("  {}: {compared} requests, {} differ", file.name, different.len());
        found.iter().filter(|found| !is_explained(found, &explained)).for_each(print);
    }
    judge(&differences, &explained, count, options.only.is_none())?;
    println!("{count} requests, nothing unexplained, {}", human_duration(started.elapsed()));
    workdir.passed();
    Ok(())
}

impl Side {
    fn open(server: &Server) -> Result<Self> {
        let access = kubeconfig::read(&server.kubeconfig)?;
        let host = access.url.trim_start_matches("https://").to_owned();
        let api = Api::new(&access, Http::Both)?;
        Ok(Self { api, anonymous: Api::anonymous(&access)?, host, saved: BTreeMap::new() })
    }

    /// Makes the namespace of a file and waits for what controllers put into it.
    async fn enter(&mut self, file: &File) -> Result<()> {
        self.saved.clear();
        let namespace = file.namespace();
        self.api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?.success()?;
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{path}");
            wait::until(&path, LIMIT, || async {
                Ok(self.api.get(&path).await?.status.is_success().then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    async fn send(&mut self, request: &Request) -> Result<Reply> {
        let deadline = Instant::now() + LIMIT;
        let reply = loop {
            let reply = self.send_once(request).await?;
            let seen = |text: &String| String::from_utf8_lossy(&reply.body).contains(text.as_str());
            if request.until.as_ref().is_none_or(seen) || Instant::now() > deadline {
                break reply;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        if request.quiet && !reply.status.is_success() {
            bail!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body));
        }
        for (name, pointer) in &request.save {
            let body: Value = reply.json()?;
            let value = body.pointer(pointer).with_context(|| format!("no {pointer} in {body}"))?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.saved.insert(name.clone(), text);
        }
        Ok(reply)
    }

    async fn send_once(&self, request: &Request) -> Result<Reply> {
        let method = Method::from_bytes(request.method.as_bytes())?;
        let path = corpus::insert(&request.path, &self.saved);
        let headers: Vec<(String, String)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), corpus::insert(value, &self.saved)))
            .collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = match &request.body {
            Body::None => Bytes::new(),
            Body::Text(text) => corpus::insert(text, &self.saved).into(),
            Body::Bytes(bytes) => bytes.clone().into(),
        };
        let api = if request.anonymous { &self.anonymous } else { &self.api };
        let answer = api.send(method.clone(), &path, &headers, body.clone()).await;
        // A server may close a connection at any time (GOAWAY). What reads can be repeated, and what it did not begin.
        match answer {
            Err(error) if method == http::Method::GET || was_not_begun(&error) => {
                api.send(method, &path, &headers, body).await
            }
            answer => answer,
        }
    }
}

/// Whether the server is known not to have processed a request that failed: it was not sent, or the server closed the
/// connection and named an earlier request as its last one.
fn was_not_begun(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let connect =
            cause.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(|e| e.is_connect());
        let unsent = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        let refused = cause.downcast_ref::<h2::Error>().is_some_and(|e| {
            e.is_remote() && (e.is_go_away() || e.reason() == Some(h2::Reason::REFUSED_STREAM))
        });
        connect || unsent || refused
    })
}

async fn compare(
    file: &File,
    request: &Request,
    left: &mut Side,
    right: &mut Side,
    verbose: bool,
) -> Result<Vec<Difference>> {
    let (expected, got) = tokio::join!(left.send(request), right.send(request));
    if request.quiet {
        expected.context("kube-apiserver")?;
        got.context("capstan")?;
        return Ok(Vec::new());
    }
    let (expected, got) = (normalise::answer(&expected, &left.host), normalise::answer(&got, &right.host));
    if verbose {
        println!("{}\n{expected:#?}\n{got:#?}", request.label());
    }
    let difference =
        |(what, detail)| Difference { file: file.name.clone(), request: request.label(), what, detail };
    Ok(normalise::differences(&expected, &got).into_iter().map(difference).collect())
}

fn print(found: &Difference) {
    println!(
        "\n{}: {}\n  {} differs (- kube-apiserver, + here)\n{}",
        found.file, found.request, found.what, found.detail
    );
}

fn is_explained(found: &Difference, explained: &[Explanation]) -> bool {
    explained.iter().any(|entry| entry.covers(found))
}

/// Fails on differences without an explanation, and on explanations without a difference.
fn judge(differences: &[Difference], explained: &[Explanation], count: usize, whole: bool) -> Result<()> {
    let unexplained: Vec<_> = differences.iter().filter(|found| !is_explained(found, explained)).collect();
    let idle = explained.iter().filter(|entry| !differences.iter().any(|found| entry.covers(found)));
    let idle: Vec<_> = if whole { idle.collect() } else { Vec::new() };
    for entry in &idle {
        println!("unused explanation: {}", entry.label());
    }
    if !unexplained.is_empty() || !idle.is_empty() {
        let mut kinds = BTreeMap::new();
        unexplained.iter().for_each(|found| *kinds.entry(found.what).or_insert(0) += 1);
        let requests: BTreeSet<_> = unexplained.iter().map(|found| (&found.file, &found.request)).collect();
        bail!(
            "{} of {count} requests differ without an explanation ({kinds:?}), {} unused explanations",
            requests.len(),
            idle.len()
        );
    }
    Ok(())
}
