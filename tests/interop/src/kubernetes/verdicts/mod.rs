//! `cargo xtask schema-verdicts`: both servers must accept or reject thousands of generated objects of upstream's
//! CRDs alike.

pub mod generate;
pub mod kinds;
mod mutate;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use http::Method;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::api::{Api, Reply, content};
use crate::bed::{Controllers, Flavour, Server, Workdir, install};
use crate::diff;
use crate::text::{human_duration, table};
use generate::Density;
use kinds::Kind;
use verdict::{Aspect, NormalResponse};

const NAMESPACE: &str = "default";

#[derive(Debug, Args)]
pub struct Options {
    /// Seed of the corpus
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Objects per served version of a kind
    #[arg(long, default_value_t = 60)]
    per_kind: usize,
    /// Only kinds whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Server that is compared with kube-apiserver; `kube` checks that the comparison itself finds nothing
    #[arg(long, default_value = "capstan")]
    subject: Flavour,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Number of differences to print
    #[arg(long, default_value_t = 15)]
    show: usize,
}

/// Different responses to one request.
#[derive(Debug)]
struct Difference {
    aspect: Aspect,
    request: String,
    body: String,
    detail: String,
}

#[derive(Debug, Default)]
struct Tally {
    objects: usize,
    accepted: usize,
    refused: usize,
    different: usize,
}

pub async fn run(options: Options) -> Result<()> {
    let definitions = kinds::definitions()?;
    let mut kinds = kinds::served(&definitions)?;
    if let Some(only) = &options.only {
        kinds.retain(|kind| kind.label().contains(only.as_str()));
    }
    let mut workdir = Workdir::new("schema-verdicts")?;
    let expected = Server::kube(&workdir.folder("expected")?, Controllers::Plane).await?;
    let subject = match options.subject {
        Flavour::Kube => Server::kube(&workdir.folder("subject")?, Controllers::Plane).await?,
        Flavour::Capstan => {
            Server::start(Flavour::Capstan, &workdir.folder("subject")?, options.capstan.as_deref()).await?
        }
    };
    let pair = Pair { expected: expected.api()?, subject: subject.api()? };
    for api in [&pair.expected, &pair.subject] {
        install::create_definitions(api, &definitions).await?;
    }
    println!("{} CRDs, {} served versions, seed {}", definitions.len(), kinds.len(), options.seed);

    let started = Instant::now();
    let mut differences = Vec::new();
    let mut tallies = BTreeMap::new();
    for (position, kind) in kinds.iter().enumerate() {
        let mut rng =
            StdRng::seed_from_u64(options.seed.wrapping_mul(1_000_003).wrapping_add(position as u64));
        let tally = examine(&pair, kind, &mut rng, options.per_kind, &mut differences)
            .await
            .with_context(|| kind.label())?;
        tallies.insert(kind.label(), tally);
    }
    report(&tallies, &differences, &workdir.folder("differences")?, options.show)?;
    println!("took {}", human_duration(started.elapsed()));
    if !differences.is_empty() {
        bail!(
            "{} of {} responses differ",
            differences.len(),
            tallies.values().map(|t| t.objects).sum::<usize>()
        );
    }
    workdir.passed();
    Ok(())
}

struct Pair {
    expected: Api,
    subject: Api,
}

impl Pair {
    async fn send(&self, method: &Method, path: &str, body: &str) -> Result<(Reply, Reply)> {
        let one = |api: &Api| {
            let (api, method, path, body) = (api.clone(), method.clone(), path.to_owned(), body.to_owned());
            async move { api.send(method, &path, &[("content-type", content::JSON)], Bytes::from(body)).await }
        };
        let (expected, subject) = tokio::join!(one(&self.expected), one(&self.subject));
        Ok((expected.context("kube-apiserver")?, subject.context("the subject")?))
    }
}

async fn examine(
    pair: &Pair,
    kind: &Kind,
    rng: &mut StdRng,
    count: usize,
    differences: &mut Vec<Difference>,
) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut bases: Vec<Value> = Vec::new();
    let mut judge = |request: String, body: &str, answers: (Reply, Reply)| -> Result<bool> {
        let (expected, got) = (
            NormalResponse::of(&answers.0)?,
            NormalResponse::of(&answers.1).unwrap_or_else(|_| undecodable(&answers.1)),
        );
        tally.objects += 1;
        if answers.0.status.is_success() {
            tally.accepted += 1;
        } else {
            tally.refused += 1;
        }
        if let Some(aspect) = expected.differs(&got) {
            tally.different += 1;
            let detail = diff::lines(&expected.to_string(), &got.to_string());
            differences.push(Difference { aspect, request, body: body.to_owned(), detail });
        }
        Ok(answers.0.status.is_success())
    };

    let collection = kind.collection(NAMESPACE);
    let validation = ["Strict", "Warn", "Ignore"];
    for number in 0..count {
        let name = format!("{}-{number}", kind.version);
        // From no optional fields to nearly all. A third are new objects, the rest mutants of accepted ones.
        let optional = [0.0, 0.3, 0.6, 0.95][number % 4];
        if bases.is_empty() || number % 3 == 0 {
            let mut object = generate::value(&kind.schema, rng, Density { optional }, 0);
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.kind.clone().into();
            object["metadata"] = json!({"name": name});
            let body = object.to_string();
            let path = format!("{collection}?fieldValidation=Strict");
            let answers = pair.send(&Method::POST, &path, &body).await?;
            if judge(format!("POST {path}"), &body, answers)? {
                bases.push(object);
            }
            continue;
        }
        let base = &bases[rng.random_range(0..bases.len())];
        // Not every field can be mutated.
        let Some(mutant) = (0..20).find_map(|_| mutate::mutant(base, &kind.schema, rng)) else { continue };
        let validation = validation[rng.random_range(0..validation.len())];
        let stored = format!("{collection}/{}", base["metadata"]["name"].as_str().unwrap_or_default());
        let (method, path) = match number % 5 {
            // As new objects, under another name than the stored one.
            0 | 1 => (Method::POST, format!("{collection}?dryRun=All&fieldValidation={validation}")),
            2 if kind.has_status => {
                (Method::PUT, format!("{stored}/status?dryRun=All&fieldValidation={validation}"))
            }
            _ => (Method::PUT, format!("{stored}?dryRun=All&fieldValidation={validation}")),
        };
        let body = match method {
            Method::POST => mutant.body.replacen(
                &format!("\"{}\"", base["metadata"]["name"].as_str().unwrap_or_default()),
                &format!("\"{name}\""),
                1,
            ),
            _ => mutant.body,
        };
        let answers = if method == Method::PUT {
            send_update(pair, &stored, &path, &body).await?
        } else {
            pair.send(&method, &path, &body).await?
        };
        judge(format!("{method} {path} ({})", mutant.what), &body, answers)?;
    }
    for base in bases {
        let path = format!("{collection}/{}", base["metadata"]["name"].as_str().unwrap_or_default());
        let (_, _) = pair.send(&Method::DELETE, &path, "").await?;
    }
    Ok(tally)
}

/// Sends an update with each server's own resource version.
async fn send_update(pair: &Pair, stored: &str, path: &str, body: &str) -> Result<(Reply, Reply)> {
    let one = |api: Api| async move {
        let current = api.get(stored).await?;
        let version = current.json()?["metadata"]["resourceVersion"].clone();
        let with_version =
            body.replacen("\"metadata\":{", &format!("\"metadata\":{{\"resourceVersion\":{version},"), 1);
        api.send(Method::PUT, path, &[("content-type", content::JSON)], Bytes::from(with_version)).await
    };
    let (expected, subject) = tokio::join!(one(pair.expected.clone()), one(pair.subject.clone()));
    Ok((expected.context("kube-apiserver")?, subject.context("the subject")?))
}

/// A response that is not JSON is a difference, not the end of the run.
fn undecodable(reply: &Reply) -> NormalResponse {
    NormalResponse {
        code: reply.status.as_u16(),
        reason: String::new(),
        causes: Default::default(),
        message: String::from_utf8_lossy(&reply.body).into_owned(),
        warnings: Default::default(),
        object: String::new(),
    }
}

fn report(
    tallies: &BTreeMap<String, Tally>,
    differences: &[Difference],
    folder: &Path,
    show: usize,
) -> Result<()> {
    let mut rows = vec![["kind", "objects", "accepted", "refused", "different"].map(String::from).to_vec()];
    let mut sum = Tally::default();
    for (kind, tally) in tallies {
        let counts = [tally.objects, tally.accepted, tally.refused, tally.different];
        rows.push(std::iter::once(kind.clone()).chain(counts.iter().map(usize::to_string)).collect());
        sum.objects += tally.objects;
        sum.accepted += tally.accepted;
        sum.refused += tally.refused;
        sum.different += tally.different;
    }
    let counts = [sum.objects, sum.accepted, sum.refused, sum.different];
    rows.push(std::iter::once("all".to_owned()).chain(counts.iter().map(usize::to_string)).collect());
    println!("{}", table(&rows));

    let mut by_aspect: BTreeMap<Aspect, usize> = BTreeMap::new();
    for (number, difference) in differences.iter().enumerate() {
        *by_aspect.entry(difference.aspect).or_default() += 1;
        let text = format!(
            "{}\n{}\n\n{}\n{}",
            difference.aspect, difference.request, difference.body, difference.detail
        );
        std::fs::write(folder.join(format!("{number:04}.txt")), text)?;
        if number < show {
            println!("{}: {}\n{}", difference.aspect, difference.request, clipped(&difference.detail));
        }
    }
    for (aspect, count) in by_aspect {
        println!("{count} differ first in their {aspect}");
    }
    Ok(())
}

fn clipped(text: &str) -> String {
    let lines: Vec<_> =
        text.lines().take(24).map(|line| line.chars().take(300).collect::<String>()).collect();
    lines.join("\n")
}
