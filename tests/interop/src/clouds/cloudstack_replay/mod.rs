//! `cargo xtask cloudstack-replay`: compares the CloudStack simulator with recorded responses of a real management
//! server.
//!
//! Cases are replayed in order. Ids of the recording are mapped to ours when they first appear. A case is the same,
//! differs, or is left out for a reason that is printed. `explained.rs` has the known differences with their reasons;
//! any other difference fails the suite.

mod case;
mod client;
mod compare;
mod explained;
mod setting;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use capstan_sim_cloudstack::{Credentials, Fault, HostCommand};
use clap::Args;
use serde_json::Value;

use case::Case;
use client::{Client, Flaw, form};
use compare::{Comparison, Names};

#[derive(Debug, Args)]
pub struct Options {
    /// The recording, one exchange per line [default: $CAPSTAN_CLOUDSTACK_GOLDEN]
    file: Option<PathBuf>,
    /// Print all details of one case
    #[arg(long)]
    case: Option<String>,
    /// Also print explained differences
    #[arg(long)]
    verbose: bool,
}

pub async fn run(options: Options) -> Result<()> {
    let file =
        options.file.clone().or_else(|| std::env::var_os("CAPSTAN_CLOUDSTACK_GOLDEN").map(PathBuf::from));
    let file = file.context("no recording: name its file, or set CAPSTAN_CLOUDSTACK_GOLDEN")?;
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("read the recording {}", file.display()))?;
    let cases = case::read(&text)?;
    let start = cases.first().context("the recording is empty")?.time()?;
    let mut replay = Replay {
        client: Client::new(&setting::layout()?, setting::settings(), start),
        by_name: cases.iter().map(|case| (case.case.as_str(), case)).collect(),
        names: Names::default(),
        variables: BTreeMap::new(),
        old_keys: None,
    };
    let (mut same, mut explained, mut differing, mut left_out) = (0, 0, 0, BTreeMap::<&str, usize>::new());
    for case in &cases {
        replay.client.reach(case.time()?);
        let show = options.case.as_deref() == Some(case.case.as_str());
        if let Some(why) = reason_to_leave_out(case) {
            *left_out.entry(why).or_default() += 1;
            continue;
        }
        let differences = replay.replay(case, show).await.with_context(|| format!("replay {}", case.case))?;
        let (known, unknown): (Vec<_>, Vec<_>) =
            differences.into_iter().partition(|difference| explained::reason(case, difference).is_some());
        match (known.is_empty(), unknown.is_empty()) {
            (true, true) => same += 1,
            (false, true) => explained += 1,
            (_, false) => differing += 1,
        }
        if !unknown.is_empty() || (options.verbose && !known.is_empty()) || show {
            println!("{}", case.case);
        }
        for difference in &unknown {
            println!("    {difference}");
        }
        if options.verbose || show {
            for difference in &known {
                let why = explained::reason(case, difference).unwrap_or_default();
                println!("    {difference} [{why}]");
            }
        }
    }
    println!("{same} same, {explained} same except for explained differences, {differing} differing");
    println!("{} left out:", left_out.values().sum::<usize>());
    for (why, count) in &left_out {
        println!("  {count:4}  {why}");
    }
    if differing > 0 {
        bail!("{differing} cases differ from the recording");
    }
    Ok(())
}

fn reason_to_leave_out(case: &Case) -> Option<&'static str> {
    if case.http_status.is_none() || (case.params.is_none() && case.path.is_none()) {
        return Some(
            "an observation of a scenario, race or timing, not one exchange; races and contention are not modelled",
        );
    }
    setting::LEFT_OUT.iter().find(|(start, _)| case.case.starts_with(start)).map(|(_, why)| *why)
}

struct Replay<'a> {
    client: Client,
    by_name: BTreeMap<&'a str, &'a Case>,
    names: Names,
    variables: BTreeMap<String, String>,
    old_keys: Option<Credentials>,
}

impl Replay<'_> {
    async fn replay(&mut self, case: &Case, show: bool) -> Result<Vec<String>> {
        let mut unprepared = Vec::new();
        for (_, lines) in setting::BEFORE.iter().filter(|(name, _)| *name == case.case) {
            for line in lines.lines() {
                if let Err(error) = self.prepare(case, line).await {
                    unprepared.push(format!("before it: {line}: {error:#}"));
                }
            }
        }
        if case.case == "auth_key_after_reregister" {
            self.old_keys = Some(self.client.simulator.credentials("tmpu")?);
            let id = self.recorded("{registerUserKeys_ok:id}")?;
            self.client.body("admin", &pairs(&[("command", "registerUserKeys"), ("id", &id)])).await?;
        }
        let response = self.send(case).await?;
        let status = response.status().as_u16();
        let ours: Value = serde_json::from_slice(response.body())
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(response.body()).into_owned()));
        if show {
            println!("ours: {status} {ours:#}");
        }
        let mut comparison =
            Comparison { names: &mut self.names, cut: case.is_cut(), differences: unprepared };
        if Some(status) != case.http_status {
            let text = ours.pointer("/").or(ours.as_object().and_then(|map| map.values().next()));
            comparison.differ("status", format!("recorded {:?}, ours {status}: {text:?}", case.http_status));
            return Ok(comparison.differences);
        }
        if let (Some((wrapper, theirs)), Some(body)) =
            (case.body(), ours.as_object().and_then(|map| map.iter().next()))
        {
            if wrapper != body.0 {
                comparison.differ("wrapper", format!("recorded {wrapper}, ours {}", body.0));
            }
            comparison.values("", theirs, body.1);
        }
        let mut differences = comparison.differences;
        let job = ours.as_object().and_then(|map| map.values().next()?.get("jobid")?.as_str());
        if let (Some(theirs), Some(job)) =
            (case.job_end(), job.filter(|_| case.command.as_deref() != Some("queryAsyncJobResult")))
        {
            let account = account_of(case.actor.as_deref().unwrap_or_default());
            let ours = self.client.job(&account, job).await?;
            if show {
                println!("its job: {ours:#}");
            }
            let mut comparison = Comparison { names: &mut self.names, cut: false, differences };
            comparison.values("job", theirs, &ours);
            differences = comparison.differences;
            if theirs["jobstatus"] != ours["jobstatus"] {
                differences.push(format!("job: ours {}", ours["jobresult"]));
            }
        }
        Ok(differences)
    }

    /// Sends the recorded request.
    async fn send(&mut self, case: &Case) -> Result<http::Response<bytes::Bytes>> {
        let actor = case.actor.as_deref().unwrap_or_default();
        if case.path.is_some() {
            return self.send_raw(case).await;
        }
        let mut parameters: Vec<(String, String)> =
            vec![("command".to_owned(), case.command.clone().unwrap_or_default())];
        let given = case.params.iter().flatten();
        for (name, value) in given.filter(|(_, value)| !value.is_null()) {
            let value = self.names.ours(&case::text(value));
            let value = match (name.as_str(), value.as_str()) {
                ("password", "<pw>") => "alice-password".to_owned(),
                ("userapikey", _) => self.client.simulator.credentials("alice")?.api_key,
                _ => value,
            };
            parameters.push((name.clone(), value));
        }
        if !case.params.iter().flatten().any(|(name, _)| name == "response") {
            parameters.push(("response".to_owned(), "json".to_owned()));
        }
        let method =
            if case.case == "login_get_method" { "GET" } else { case.method.as_deref().unwrap_or("GET") };
        if actor.starts_with("session") {
            return self.send_in_session(case, method, parameters).await;
        }
        if actor == "anonymous" {
            return self.client.call(method, &form(&parameters)).await;
        }
        let keys = match self.old_keys.take().filter(|_| case.case == "auth_key_after_reregister") {
            Some(old) => old,
            // The keys of a deleted account are gone. Any keys will do.
            None => self
                .client
                .simulator
                .credentials(&account_of(actor))
                .unwrap_or(Credentials { api_key: "gone".to_owned(), secret_key: "gone".to_owned() }),
        };
        let flaw = match (actor, case.case.as_str()) {
            (_, "auth_bad_signature") => Flaw::BadSignature,
            (_, "auth_sort_case_insensitive_fails") => Flaw::SortedWithoutCase,
            ("user:alice(no sig)", _) => Flaw::NoSignature,
            ("user:alice(wrong secret)", _) => Flaw::WrongSecret,
            _ => Flaw::None,
        };
        self.client.call(method, &self.client.signed(&keys, &parameters, flaw)).await
    }

    async fn send_in_session(
        &mut self,
        case: &Case,
        method: &str,
        mut parameters: Vec<(String, String)>,
    ) -> Result<http::Response<bytes::Bytes>> {
        if self.client.session().is_none() || case.case == "session_unknown_command" {
            let login = "command=login&response=json&username=alice&password=alice-password&domain=/dom1";
            let response = self.client.send("POST", "/client/api", Some(login), None).await?;
            self.client.keep_session(&response);
        }
        let session = self.client.session().map(|(id, key)| (id.to_owned(), key.to_owned()));
        let (id, key) = session.unwrap_or_default();
        // The right key is redacted in the recording. Any other value is a wrong key.
        let sent = parameters.iter_mut().find(|(name, _)| name == "sessionkey");
        let has_parameter = sent.is_some();
        if let Some((_, value)) = sent.filter(|(_, value)| value == "<redacted>") {
            value.clone_from(&key);
        }
        let query = form(&parameters);
        // The recorded client kept its cookies, but for the case that sends the session's alone.
        let cookies = if has_parameter {
            format!("JSESSIONID={id}; sessionkey={key}")
        } else {
            format!("JSESSIONID={id}")
        };
        let cookies = Some(cookies.as_str()).filter(|_| case.command.as_deref() != Some("login"));
        let response = match method {
            "POST" => self.client.send("POST", "/client/api", Some(&query), cookies).await?,
            _ => self.client.send("GET", &format!("/client/api?{query}"), None, cookies).await?,
        };
        self.client.keep_session(&response);
        Ok(response)
    }

    /// Sends cases about HTTP itself, whose names and paths say what is changed in the request.
    async fn send_raw(&mut self, case: &Case) -> Result<http::Response<bytes::Bytes>> {
        let path = case.path.clone().unwrap_or_default();
        let method = case.method.as_deref().unwrap_or("GET");
        let (route, query) = path.split_once('?').unwrap_or((&path, ""));
        let keys = self.client.simulator.credentials("alice")?;
        let mut parameters: Vec<(String, String)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| *name != "apiKey")
            .map(|(name, value)| (name.to_owned(), value.replace('+', " ")))
            .collect();
        match case.case.as_str() {
            "http_uri_too_long" => parameters.push(("y".to_owned(), "y".repeat(9000))),
            "http_post_json_body" => {
                let request = http::Request::builder()
                    .method("POST")
                    .uri(route)
                    .header("content-type", "application/json");
                return Ok(self.client.simulator.call(request.body("{}".into())?).await?);
            }
            _ => {}
        }
        let mut query = if parameters.is_empty() {
            String::new()
        } else {
            self.client.signed(&keys, &parameters, Flaw::None)
        };
        match case.case.as_str() {
            "http_signature_lowercase_value" => {
                let (rest, signature) = query.split_once("signature=").context("no signature")?;
                query = format!("{rest}signature={}", signature.to_lowercase());
            }
            "http_duplicate_param" => query.push_str("&command=listTemplates"),
            "http_space_as_plus" => query = query.replace("%20", "+"),
            _ => {}
        }
        let path = if query.is_empty() { route.to_owned() } else { format!("{route}?{query}") };
        self.client.send(method, &path, None, None).await
    }

    /// Resolves every reference in braces.
    fn recorded(&self, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for (short, long) in setting::SHORT {
            text = text.replace(short, long);
        }
        while let Some((before, rest)) = text.split_once('{') {
            let (name, after) = rest.split_once('}').context("a brace is not closed")?;
            let value = if let Some(variable) = name.strip_prefix('$') {
                self.variables.get(variable).cloned().with_context(|| format!("${variable} is not set"))?
            } else if let Some((case, pointer)) = name.split_once('#') {
                let body = self.by_name.get(case).and_then(|case| case.body()).context("no such case")?.1;
                self.names.ours(body.pointer(pointer).and_then(Value::as_str).context("no such field")?)
            } else {
                let (case, parameter) = name.split_once(':').context("no such word")?;
                let case = self.by_name.get(case).with_context(|| format!("no case {case}"))?;
                self.names.ours(&case.param(parameter).context("no such parameter")?)
            };
            text = format!("{before}{value}{after}");
        }
        Ok(text)
    }

    /// Whether the recording itself has the step: a longer recording has cases that stand for it.
    fn is_recorded(&self, case: &Case, binds: &str) -> bool {
        binds.split(';').filter_map(|bind| bind.split_once("=>")).any(|(_, target)| {
            let target = target.trim();
            let theirs = match target.split_once(':') {
                _ if target.starts_with('$') => None,
                Some((case, parameter)) => self.by_name.get(case).and_then(|case| case.param(parameter)),
                None => case.param(target),
            };
            theirs.is_some_and(|theirs| self.names.knows(&theirs))
        })
    }

    /// Executes a line of [`BEFORE`].
    async fn prepare(&mut self, case: &Case, line: &str) -> Result<()> {
        let (call, binds) = line.split_once("->").unwrap_or((line, ""));
        if self.is_recorded(case, binds) {
            return Ok(());
        }
        let call = self.recorded(call)?;
        let mut words = call.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "!" {
            return self.act(&words.collect::<Vec<_>>()).await;
        }
        let awaited = first != "&";
        let account =
            if matches!(first, "&" | "?") { words.next().unwrap_or_default() } else { first }.to_owned();
        let mut parameters = vec![("command".to_owned(), words.next().unwrap_or_default().to_owned())];
        for word in words {
            let (name, value) = word.split_once('=').context("a parameter without a value")?;
            parameters.push((name.to_owned(), value.replace("%20", " ")));
        }
        let body = self.client.body(&account, &parameters).await?;
        if body.get("errorcode").is_some() != (first == "?") {
            bail!("{body}");
        }
        for bind in binds.split(';').filter(|bind| !bind.trim().is_empty()) {
            let (pointer, target) = bind.split_once("=>").context("a pointer without a target")?;
            let value = body.pointer(pointer.trim()).and_then(Value::as_str);
            let value = value.with_context(|| format!("nothing at {pointer} in {body}"))?.to_owned();
            let target = target.trim();
            if let Some(variable) = target.strip_prefix('$') {
                self.variables.insert(variable.to_owned(), value);
                continue;
            }
            let theirs = match target.split_once(':') {
                Some((case, parameter)) => self.by_name.get(case).and_then(|case| case.param(parameter)),
                None => case.param(target),
            };
            self.names.bind(&theirs.with_context(|| format!("no parameter {target}"))?, &value);
        }
        if let Some(job) = body.get("jobid").and_then(Value::as_str).filter(|_| awaited) {
            self.client.job(&account, job).await?;
        }
        Ok(())
    }

    /// Actions outside the API.
    async fn act(&mut self, words: &[&str]) -> Result<()> {
        let simulator = &self.client.simulator;
        match words {
            ["pass", millis] => self.client.pass(millis.parse()?),
            ["may-expunge", account] => simulator.set_account(account, true, true)?,
            ["may-not-expunge", account] => simulator.set_account(account, false, false)?,
            ["hosts-fail", what, times @ ..] => {
                let command = if *what == "start" { HostCommand::Start } else { HostCommand::Stop };
                let times = (!times.is_empty()).then_some(1);
                simulator.inject(Fault::HostsFail { command, times })?;
            }
            ["heal"] => simulator.heal(),
            ["power-off", vm] => simulator.inject(Fault::PowerOff { vm: (*vm).to_owned() })?,
            ["enforce"] => simulator.set(|settings| settings.enforce_post_and_timestamps = true),
            ["enforce-not"] => simulator.set(|settings| settings.enforce_post_and_timestamps = false),
            ["limit", account, resource, max] => self.limit(account, resource, max).await?,
            ["unlimited", account] => {
                for resource in ["0", "1", "2", "3", "6", "8", "9", "10", "11"] {
                    self.limit(account, resource, "-1").await?;
                }
            }
            other => bail!("unknown action {other:?}"),
        }
        Ok(())
    }

    async fn limit(&self, account: &str, resource: &str, max: &str) -> Result<()> {
        let domain = self.recorded("{createAccount_ok:domainid}")?;
        let call = [
            ("command", "updateResourceLimit"),
            ("resourcetype", resource),
            ("max", max),
            ("account", account),
            ("domainid", &domain),
        ];
        let body = self.client.body("admin", &pairs(&call)).await?;
        if body.get("errorcode").is_some() { bail!("{body}") } else { Ok(()) }
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn account_of(actor: &str) -> String {
    match actor {
        "root-admin" => "admin".to_owned(),
        "domain-admin" => "dadmin".to_owned(),
        user => user.trim_start_matches("user:").split('(').next().unwrap_or_default().to_owned(),
    }
}
