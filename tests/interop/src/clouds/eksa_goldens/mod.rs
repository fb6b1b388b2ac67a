//! `cargo xtask eksa-goldens`: compares the objects that we generate from EKS Anywhere's manifests with those that it
//! generates itself.
//!
//! EKS Anywhere keeps manifests beside its tests, and the objects that it generates from them. Ours come from the same
//! manifests by our defaults and our generation, without a server. Both are compared in the versions of ours, with the
//! defaults of Cluster API's webhooks, up to the numbers of templates. The comparison must notice objects that are wrong
//! on purpose.

mod input;
mod pairs;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use capstan_lifecycle::credentials;
use capstan_lifecycle::release::Releases;
use clap::Args;
use serde_json::Value;

use crate::cargo;
use crate::differences::{self, Difference, Explanations, judge};
use crate::peers::catalog::{EKS_ANYWHERE, EKS_ANYWHERE_BEFORE, EKS_ANYWHERE_MODULE};
use crate::peers::module_dir;
use input::Input;
use pairs::{Pair, Release};
use shapes::Expected;

const SUITE: &str = "eksa-goldens";
/// The releases that are compared, with their number of pairs. Another number means that the wrong folder was read.
const RELEASES: [(&str, usize); 2] = [(EKS_ANYWHERE, 14), (EKS_ANYWHERE_BEFORE, 33)];
/// What tests of later releases have in place of an image.
const ANY_IMAGE: &str = "<placeholder>";

#[derive(Debug, Args)]
pub struct Options {
    /// Only pairs whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Source of EKS Anywhere, instead of the modules of the releases that are compared
    #[arg(long, env = "CAPSTAN_EKS_ANYWHERE", requires = "release")]
    source: Option<PathBuf>,
    /// Release of that source, such as v0.24.6
    #[arg(long)]
    release: Option<String>,
}

/// A file of expected objects, and the objects that we generate.
struct Case {
    scenario: String,
    step: &'static str,
    expected: Expected,
    ours: Vec<Value>,
}

/// Compares every pair, and then objects that are wrong on purpose.
pub fn run(options: &Options) -> Result<()> {
    let mut cases = Vec::new();
    for (release, count) in releases(options)? {
        let mut pairs = release.pairs()?;
        ensure!(
            count.is_none_or(|count| pairs.len() == count),
            "{} has {} pairs",
            release.version,
            pairs.len()
        );
        pairs.retain(|pair| options.only.as_ref().is_none_or(|text| pair.name.contains(text)));
        let before = cases.len();
        for pair in &pairs {
            let scenario = format!("{}/{}", release.version, pair.name);
            cases.extend(compare(&release, pair, &scenario).with_context(|| scenario.clone())?);
        }
        let files = cases.len() - before;
        println!("{}: {} pairs, {files} files of expected objects", release.version, pairs.len());
    }
    let mut found = Vec::new();
    for case in &cases {
        found.extend(case.differences(&case.ours)?);
    }
    let objects: usize = cases.iter().map(|case| case.expected.objects.len()).sum();
    println!("{objects} expected objects");
    judge(SUITE, &found, options.only.is_none() && options.source.is_none())?;
    notice_broken(&cases, options.only.is_none())
}

fn releases(options: &Options) -> Result<Vec<(Release, Option<usize>)>> {
    if let (Some(source), Some(version)) = (&options.source, &options.release) {
        return Ok(vec![(Release::new(version, source.clone()), None)]);
    }
    let known = RELEASES.iter().map(|(version, count)| {
        let version = format!("v{version}");
        let source = module_dir(EKS_ANYWHERE_MODULE, &version)?;
        Ok((Release::new(&version, source), Some(*count)))
    });
    known.collect()
}

/// The cases of a pair. Checks what we refuse, and prints why.
fn compare(release: &Release, pair: &Pair, scenario: &str) -> Result<Vec<Case>> {
    if let Some(file) = &pair.credentials {
        return compare_credentials(release, pair, scenario, file);
    }
    let set: BTreeMap<String, Value> = pair
        .set
        .iter()
        .map(|(place, value)| Ok((place.clone(), release.resolve(value)?)))
        .collect::<Result<_>>()?;
    let text = release.read(pair.input.as_deref().context("no input")?)?;
    let mut input = Input::read(&text, &set)?;
    let refusals = input.refusals()?;
    for message in refusals.values() {
        println!("  refused  {scenario}: {message}");
    }
    let removed = input.without_external_etcd()?;
    let mut fields = pair.refused.clone();
    fields.extend(removed.map(str::to_owned));
    let refused: BTreeSet<String> = refusals.into_keys().collect();
    ensure!(refused == fields, "refused for {refused:?} instead of {fields:?}");
    let rest: BTreeSet<String> = input.refusals()?.into_keys().collect();
    ensure!(rest == pair.refused, "without external etcd, refused for {rest:?}");

    let mut cases = Vec::new();
    for (step, file) in [("control plane", &pair.control_plane), ("workers", &pair.workers)] {
        let Some(file) = file else { continue };
        let text = release.read(file)?;
        let objects = input.generate(&our_releases(pair, &text)?)?;
        let ours = if step == "workers" { objects.workers } else { objects.control_plane };
        let expected = shapes::expected(&text).with_context(|| file.clone())?;
        ensure!(!expected.objects.is_empty(), "{file} has no objects");
        cases.push(Case { scenario: scenario.to_owned(), step, expected, ours });
    }
    Ok(cases)
}

fn compare_credentials(release: &Release, pair: &Pair, scenario: &str, file: &str) -> Result<Vec<Case>> {
    let read = credentials::secrets(&release.read(file)?);
    if let Some(named) = pair.refused.first() {
        let why = read.err().with_context(|| format!("{file} is not refused"))?;
        println!("  refused  {scenario}: {why}");
        ensure!(why.contains(named.as_str()), "the error does not name {named}: {why}");
        return Ok(Vec::new());
    }
    let ours = read.map_err(|why| anyhow!("{file} is refused: {why}"))?;
    let Some(secrets) = &pair.secrets else { return Ok(Vec::new()) };
    let expected = shapes::expected(&release.read(secrets)?)?;
    Ok(vec![Case { scenario: scenario.to_owned(), step: "credentials", expected, ours }])
}

/// The releases of Kubernetes in EKS Anywhere's test data, as an operator configures them.
fn our_releases(pair: &Pair, expected: &str) -> Result<Releases> {
    let path = cargo::root().join("tests").join(SUITE).join("releases.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut releases = Releases::parse(&text).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    if expected.contains(ANY_IMAGE) {
        ANY_IMAGE.clone_into(&mut releases.kube_vip_image);
    } else if let Some(image) = &pair.kube_vip_image {
        releases.kube_vip_image.clone_from(image);
    }
    Ok(releases)
}

impl Case {
    /// Differences of some objects from the expected ones.
    fn differences(&self, ours: &[Value]) -> Result<Vec<Difference>> {
        let (theirs, ours) = (shapes::normal(&self.expected.objects)?, shapes::normal(ours)?);
        let mut places = differences::objects(&theirs, &ours);
        for (object, path, value) in &self.expected.unknown {
            places.push((object.clone(), path.clone(), value.to_string(), Value::Null.to_string()));
        }
        let difference = |(object, path, theirs, ours)| Difference {
            scenario: self.scenario.clone(),
            step: self.step.to_owned(),
            object,
            path,
            theirs,
            ours,
        };
        Ok(places.into_iter().map(difference).collect())
    }
}

type Breakage = fn(&mut Value);

/// Objects with one bug each.
const BROKEN: [(&str, Breakage); 6] = [
    ("has a machine too many", |object| {
        if let Some(replicas) = object.pointer_mut("/spec/replicas") {
            *replicas = (replicas.as_i64().unwrap_or_default() + 1).into();
        }
    }),
    ("has a file too few", |object| {
        if let Some(Value::Array(files)) = object.pointer_mut("/spec/kubeadmConfigSpec/files") {
            files.pop();
        }
    }),
    ("runs commands in another order", |object| {
        let commands = "/spec/template/spec/preKubeadmCommands";
        if let Some(Value::Array(commands)) = object.pointer_mut(commands) {
            commands.reverse();
        }
    }),
    ("leaves taints to kubeadm", |object| {
        let registration = "/spec/template/spec/joinConfiguration/nodeRegistration";
        if let Some(Value::Object(fields)) = object.pointer_mut(registration) {
            fields.remove("taints");
        }
    }),
    ("refers to another template", |object| {
        if let Some(name) = object.pointer_mut("/spec/template/spec/infrastructureRef/name") {
            *name = "other-1".into();
        }
    }),
    ("lacks a flag of the API server", |object| {
        let flags = "/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs";
        if let Some(Value::Array(flags)) = object.pointer_mut(flags) {
            flags.remove(0);
        }
    }),
];

/// Breaks our objects in each way, and fails if that is no difference, or an explained one.
fn notice_broken(cases: &[Case], whole: bool) -> Result<()> {
    let mut explanations = Explanations::load(SUITE)?;
    for (broken, breakage) in BROKEN {
        let mut noticed = 0;
        for case in cases {
            let mut ours = case.ours.clone();
            ours.iter_mut().for_each(breakage);
            if case.differences(&ours)?.iter().any(|difference| !explanations.cover(difference)) {
                noticed += 1;
            }
        }
        println!("generation that {broken}: noticed in {noticed} of {} files", cases.len());
        ensure!(!whole || noticed > 0, "the comparison does not notice generation that {broken}");
    }
    Ok(())
}
