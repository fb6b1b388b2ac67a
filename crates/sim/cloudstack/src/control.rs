//! `capstan sim cloudstack ctl`: faults, limits and machines of a running simulated cloud.

use std::time::Duration;

use bytes::Bytes;
use capstan_provider_kit::{ProviderError, Terminal};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::net::TcpStream;

use crate::faults::{Fault, USAGE};
use crate::params::encode;

/// Limit of a reply.
const LARGEST: usize = 16 << 20;
/// Time between questions about a job.
const POLL: Duration = Duration::from_millis(100);
/// `jobstatus` of a job that is not done.
const PENDING: u64 = 0;

#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Address of the simulated cloud
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", global = true)]
    url: String,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the active faults of commands
    Faults,
    /// Inject a fault, such as `noCapacity` or `error command=deployVirtualMachine code=530 text=broken times=1`
    Inject {
        /// Name of the fault
        fault: String,
        /// Fields of the fault
        #[arg(value_name = "FIELD=VALUE", value_parser = pair)]
        fields: Vec<(String, String)>,
    },
    /// End all faults; jobs that got stuck stay stuck
    Heal,
    /// List what an account, or all accounts, have beyond the initial state
    Leaks {
        /// Name of the account
        account: Option<String>,
    },
    /// Count requests by command
    Calls,
    /// Run a command of CloudStack's API as the cloud's administrator, and wait for its job
    Call {
        /// Name of the command, such as updateResourceLimit
        command: String,
        /// Parameters of the command
        #[arg(value_name = "NAME=VALUE", value_parser = pair)]
        parameters: Vec<(String, String)>,
    },
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("{text:?} is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn command() -> Command {
    let about = "Control a running simulated cloud: faults, limits, machines";
    Flags::augment_args(Command::new("ctl")).about(about).arg_required_else_help(true)
}

pub(crate) async fn run(matches: &ArgMatches, terminal: &dyn Terminal) -> Result<(), ProviderError> {
    let flags = Flags::from_arg_matches(matches)
        .map_err(|error| ProviderError::caused_by("the flags of the control", error))?;
    let cloud = Cloud::at(&flags.url)?;
    let answer = match flags.verb {
        Verb::Faults => cloud.send(Method::GET, "/sim/faults", String::new()).await?,
        Verb::Inject { fault, fields } => {
            let described = described(fault.clone(), fields);
            if let Err(error) = Fault::deserialize(&described) {
                return Err(ProviderError::new(format!("fault {fault}: {error}; write one of\n{USAGE}")));
            }
            cloud.send(Method::POST, "/sim/faults", described.to_string()).await?
        }
        Verb::Heal => cloud.send(Method::DELETE, "/sim/faults", String::new()).await?,
        Verb::Leaks { account } => {
            let query = account.map(|account| format!("?account={}", encode(&account)));
            let path = format!("/sim/leaks{}", query.unwrap_or_default());
            cloud.send(Method::GET, &path, String::new()).await?
        }
        Verb::Calls => cloud.send(Method::GET, "/sim/calls", String::new()).await?,
        Verb::Call { command, parameters } => cloud.call(&command, &parameters).await?,
    };
    // Nothing to show.
    if answer.as_object().is_some_and(Map::is_empty) {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&answer);
    terminal.print(&text.map_err(|error| ProviderError::caused_by("the answer", error))?)
}

/// A fault as its JSON. Numbers are numbers.
fn described(fault: String, fields: Vec<(String, String)>) -> Value {
    let number = |text: &String| text.parse::<u64>().ok().map(Value::from);
    let fields = fields.into_iter().map(|(name, text)| {
        let value = number(&text).unwrap_or_else(|| text.into());
        (name, value)
    });
    Value::Object([("fault".to_owned(), fault.into())].into_iter().chain(fields).collect())
}

struct Cloud {
    authority: String,
}

impl Cloud {
    /// The address of the cloud, or of its API.
    fn at(url: &str) -> Result<Self, ProviderError> {
        let wrong = || ProviderError::new(format!("--url {url}: expected http://ADDRESS:PORT"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        Ok(Self { authority: authority.to_string() })
    }

    /// Runs a command, and waits for its job.
    async fn call(&self, command: &str, parameters: &[(String, String)]) -> Result<Value, ProviderError> {
        let mut form = format!("command={}", encode(command));
        for (name, value) in parameters {
            form.push_str(&format!("&{}={}", encode(name), encode(value)));
        }
        let mut answer = unwrapped(self.send(Method::POST, "/sim/call", form).await?);
        let job = answer["jobid"].as_str().map(encode);
        while let Some(job) = &job {
            let form = format!("command=queryAsyncJobResult&jobid={job}");
            answer = unwrapped(self.send(Method::POST, "/sim/call", form).await?);
            if answer["jobstatus"].as_u64() != Some(PENDING) {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        match answer.pointer("/jobresult/errortext").and_then(Value::as_str) {
            Some(text) => Err(ProviderError::new(format!("{command}: {text}"))),
            None => Ok(answer.get_mut("jobresult").map(Value::take).unwrap_or(answer)),
        }
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Result<Value, ProviderError> {
        let what = || format!("the simulated cloud at {}", self.authority);
        let failed = |error: hyper::Error| ProviderError::caused_by(what(), error);
        let stream = TcpStream::connect(&self.authority)
            .await
            .map_err(|error| ProviderError::caused_by(format!("{}: is it running?", what()), error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| ProviderError::caused_by(what(), error))?;
        let response = sender.send_request(request).await.map_err(failed)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = body.map_err(|error| ProviderError::new(format!("{}: {error}", what())))?.to_bytes();
        connection.abort();
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|error| ProviderError::caused_by(format!("{} answered no JSON", what()), error))?;
        if status.is_success() {
            return Ok(answer);
        }
        let inner = unwrapped(answer);
        let text = inner["error"].as_str().or(inner["errortext"].as_str());
        Err(ProviderError::new(format!("{}: {}", what(), text.unwrap_or(status.as_str()))))
    }
}

/// Without the wrapper that is named after the command.
fn unwrapped(mut answer: Value) -> Value {
    let only = answer.as_object_mut().filter(|fields| fields.len() == 1);
    let inner = only.and_then(|fields| fields.values_mut().next().filter(|inner| inner.is_object()));
    inner.map(Value::take).unwrap_or(answer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_is_written_as_fields() {
        let fields = vec![("command".to_owned(), "*".to_owned()), ("times".to_owned(), "2".to_owned())];
        let expected = json!({"fault": "lostReply", "command": "*", "times": 2});
        assert_eq!(described("lostReply".to_owned(), fields), expected);
        assert!(serde_json::from_value::<crate::Fault>(expected).is_ok());
        assert!(pair("times").is_err() && pair("=2").is_err());
    }

    #[test]
    fn an_address_of_the_api_is_one_of_the_cloud() {
        for url in ["http://127.0.0.1:80", "http://127.0.0.1:80/client/api"] {
            assert_eq!(Cloud::at(url).map(|cloud| cloud.authority).ok().as_deref(), Some("127.0.0.1:80"));
        }
        assert!(Cloud::at("127.0.0.1").is_err());
        assert_eq!(unwrapped(json!({"xresponse": {"a": 1}})), json!({"a": 1}));
    }
}
