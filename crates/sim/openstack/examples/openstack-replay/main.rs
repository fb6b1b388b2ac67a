//! Compares the simulator with recorded replies of real OpenStack services: `cargo xtask openstack-replay FILE`.
//!
//! Exchanges are replayed in order. Ids, addresses and tokens of the recording are mapped to ours when they first appear.
//! A case is the same, is the same except for explained differences, or differs. What needs an object that another
//! recording made, or a service that is not simulated, is left out with the reason.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

mod actors;
mod case;
mod compare;
mod explained;
mod names;
mod setting;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::Value;

use actors::Actors;
use case::Case;
use compare::Comparison;
use names::Names;
use setting::Cloud;

#[derive(Debug, Parser)]
struct Options {
    /// The recording, one exchange per line [default: $CAPSTAN_OPENSTACK_GOLDEN]
    file: Option<PathBuf>,
    /// Print both replies of one case
    #[arg(long)]
    case: Option<String>,
    /// Only print differences of one service
    #[arg(long)]
    service: Option<String>,
    /// Also print explained differences
    #[arg(long)]
    verbose: bool,
}

#[derive(Debug, Default)]
struct Counts {
    same: usize,
    explained: usize,
    differing: usize,
    left_out: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(&options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<bool> {
    let file =
        options.file.clone().or_else(|| std::env::var_os("CAPSTAN_OPENSTACK_GOLDEN").map(PathBuf::from));
    let file = file.context("no recording: name its file, or set CAPSTAN_OPENSTACK_GOLDEN")?;
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("read the recording {}", file.display()))?;
    let cases = case::read(&text)?;
    let start = cases.first().context("the recording is empty")?.time()?;
    let cloud = Cloud::new(start);
    let mut replay = Replay { cloud, names: Names::default(), actors: Actors::default() };
    replay.actors.log_in(&replay.cloud, "admin", "admin").await?;
    let mut services: BTreeMap<String, Counts> = BTreeMap::new();
    let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
    for case in &cases {
        replay.cloud.reach(case.time()?, case.poll_state().is_some());
        let counts = services.entry(case.service.clone()).or_default();
        let show = options.case.as_deref() == Some(case.case.as_str());
        let shown = options.service.as_ref().is_none_or(|service| *service == case.service);
        if let Some(why) = replay.reason_to_leave_out(case) {
            counts.left_out += 1;
            *left_out.entry(why).or_default() += 1;
            if show || (options.verbose && shown) {
                println!("{}\n    left out: {why}", case.case);
            }
            continue;
        }
        let differences = replay.replay(case, show).await.with_context(|| format!("replay {}", case.case))?;
        let (known, unknown): (Vec<_>, Vec<_>) =
            differences.into_iter().partition(|difference| explained::reason(case, difference).is_some());
        match (known.is_empty(), unknown.is_empty()) {
            (true, true) => counts.same += 1,
            (false, true) => counts.explained += 1,
            (_, false) => counts.differing += 1,
        }
        if shown && (!unknown.is_empty() || (options.verbose && !known.is_empty())) {
            println!("{} {} {}", case.case, case.method, case.path);
            for difference in &unknown {
                println!("    {difference}");
            }
            for difference in known.iter().filter(|_| options.verbose) {
                println!("    {difference} [{}]", explained::reason(case, difference).unwrap_or_default());
            }
        }
    }
    let mut differing = 0;
    println!("{:16} {:>6} {:>10} {:>10} {:>9}", "service", "same", "explained", "different", "left out");
    for (service, counts) in &services {
        let Counts { same, explained, differing: different, left_out } = counts;
        println!("{service:16} {same:>6} {explained:>10} {different:>10} {left_out:>9}");
        differing += counts.differing;
    }
    for (why, count) in &left_out {
        println!("{count:5} left out: {why}");
    }
    Ok(differing == 0)
}

struct Replay {
    cloud: Cloud,
    names: Names,
    actors: Actors,
}

impl Replay {
    fn reason_to_leave_out(&self, case: &Case) -> Option<&'static str> {
        if setting::service(&case.service).is_none() {
            return Some("Magnum is not simulated");
        }
        if !self.actors.knows(&case.actor) {
            return Some("the actor's token was issued outside the recording");
        }
        // A client may choose the id of an image.
        let body = if case.path == "/v2/images" { "" } else { &case.request_body.to_string() };
        let refers = self.names.unknown(&format!("{} {body}", case.path));
        // An id that is unknown here may just as well be unknown there.
        if refers && case.http_status != 404 && case.http_status != 401 {
            return Some("it refers to an object that was made outside the recording");
        }
        None
    }

    async fn replay(&mut self, case: &Case, show: bool) -> Result<Vec<String>> {
        let mut answer = self.send(case).await?;
        if let Some(wanted) = case.poll_state() {
            // Times differ: wait for the state, in steps that are shorter than any state.
            for _ in 0..400 {
                if answer.state(&case.service) == wanted {
                    break;
                }
                self.cloud.pass(100);
                answer = self.send(case).await?;
            }
        }
        if show {
            println!("recorded: {} {:?} {:#}", case.http_status, case.headers, case.response);
            println!("ours: {} {:?} {:#}", answer.status, answer.headers, answer.body);
        }
        let mut differences = self.differences(case, &answer);
        // Where the recording has no poll, work may have been done in time there and not here.
        for _ in 0..400 {
            let unfinished = case.poll_state().is_none()
                && ((answer.status == 409 && case.http_status < 300)
                    || differences.iter().any(|it| case::UNFINISHED.iter().any(|word| it.contains(word))));
            if !unfinished {
                break;
            }
            self.cloud.pass(100);
            answer = self.send(case).await?;
            differences = self.differences(case, &answer);
        }
        self.actors.learn(case, &answer);
        Ok(differences)
    }

    fn differences(&mut self, case: &Case, answer: &Answer) -> Vec<String> {
        let mut comparison = Comparison::new(&mut self.names, case.is_sorted());
        comparison.compare(case, answer);
        comparison.differences
    }

    async fn send(&self, case: &Case) -> Result<Answer> {
        let path = self.names.translate(&case.path);
        let body = self.actors.body(case, &self.names);
        let token = self.actors.token(&case.actor);
        let subject = self.actors.subject(case);
        self.cloud.send(case, &path, body, token, subject).await
    }
}

/// What the simulator answered.
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl Answer {
    /// The state as the recording's polls have it.
    fn state(&self, service: &str) -> String {
        if self.status >= 400 {
            return self.status.to_string();
        }
        let inner = self.body.as_object().and_then(|body| body.values().next()).unwrap_or(&Value::Null);
        let text = |name: &str| inner[name].as_str().unwrap_or("None").to_owned();
        match service {
            "compute" => {
                format!(
                    "{}/{}/{}",
                    text("status"),
                    text("OS-EXT-STS:vm_state"),
                    text("OS-EXT-STS:task_state")
                )
            }
            "load-balancer" => text("provisioning_status"),
            "image" => self.body["status"].as_str().unwrap_or_default().to_owned(),
            _ => text("status"),
        }
    }
}
