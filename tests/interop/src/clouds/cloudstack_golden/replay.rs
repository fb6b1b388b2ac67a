//! Replays one recorded exchange through the client.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use capstan_cloudstack_client::model::Done;
use capstan_cloudstack_client::{
    Call, Client, Command, Credentials, Endpoint, Error, ErrorKind, Job, JobState, Limits, List, Policy,
    TransportError,
};
use futures::future::BoxFuture;
use http::{Request, Response};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::compare::compare;
use super::{Case, Tally};

/// A command with the parameters of a recorded request.
struct Recorded<'a, C>(&'a Case, PhantomData<fn() -> C>);

impl<C> Serialize for Recorded<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The client sets paging parameters itself.
        serializer.collect_map(self.0.params.iter().filter(|(name, _)| !name.starts_with("page")))
    }
}

impl<C: Command> Command for Recorded<'_, C> {
    const NAME: &'static str = C::NAME;
}

impl<C: List> List for Recorded<'_, C> {
    type Item = C::Item;
    const KEY: &'static str = C::KEY;
}

impl<C: Call> Call for Recorded<'_, C> {
    type Answer = C::Answer;
    const KEY: Option<&'static str> = C::KEY;
}

impl<C: Job> Job for Recorded<'_, C> {
    type Id = C::Id;
    type Outcome = C::Outcome;
    const KEY: Option<&'static str> = C::KEY;
}

/// A client whose transport returns the recorded response to any request.
fn client(status: u16, kind: &str, body: &Value) -> Client {
    let text = match body {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let kind = kind.to_owned();
    let answer = move |_: Request<Bytes>| -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> {
        let response = Response::builder()
            .status(status)
            .header("content-type", &kind)
            .body(Bytes::from(text.clone()))
            .map_err(|error| TransportError { message: error.to_string(), never_sent: true });
        Box::pin(async { response })
    };
    let endpoint = match Endpoint::new("http://recorded/client/api", Arc::new(answer), Limits::default()) {
        Ok(endpoint) => Arc::new(endpoint),
        Err(error) => unreachable!("{error}"),
    };
    let policy = Policy { attempts: 1, ..Policy::default() };
    Client::with_policy(endpoint, Arc::new(Credentials::new("key", "secret")), policy)
}

fn client_of(case: &Case) -> Client {
    let kind = case.headers.get("content-type").and_then(Value::as_str).unwrap_or("none");
    client(case.http_status.unwrap_or(0), kind, &case.response)
}

fn inside(response: &Value) -> &Value {
    response.as_object().and_then(|wrapper| wrapper.values().next()).unwrap_or(&Value::Null)
}

/// The type's name without its path.
fn name_of<T>() -> &'static str {
    std::any::type_name::<T>().rsplit("::").next().unwrap_or_default()
}

/// An error is right if the recording has the same code or is not a response of the API.
fn refused(tally: &mut Tally, case: &Case, error: &Error) {
    let recorded = inside(&case.response)["errorcode"].as_u64();
    match (&*error.kind, recorded) {
        (ErrorKind::Refused(refusal), Some(code)) if u64::from(refusal.code.number()) == code => {
            tally.refusals += 1;
            let text = inside(&case.response)["errortext"].as_str().unwrap_or_default();
            if refusal.text.is_empty() != text.is_empty() {
                tally.faults.push(format!("{}: the text is lost", case.case));
            }
        }
        (ErrorKind::Unreadable { .. }, None) if !case.response.is_object() => tally.unreadable += 1,
        (kind, recorded) => {
            tally.faults.push(format!("{}: {kind}, recorded {recorded:?}", case.case));
        }
    }
}

pub async fn list<C: List>(case: &Case, tally: &mut Tally)
where
    C::Item: Serialize,
{
    match client_of(case).list(&Recorded::<C>(case, PhantomData)).await {
        Err(error) => refused(tally, case, &error),
        Ok(items) => {
            tally.answers += 1;
            let recorded = inside(&case.response).get(C::KEY).cloned().unwrap_or_else(|| json!([]));
            round_trip(tally, name_of::<C::Item>(), &case.case, &items, &recorded);
        }
    }
}

pub async fn call<C: Call>(case: &Case, tally: &mut Tally)
where
    C::Answer: Serialize,
{
    match client_of(case).call(&Recorded::<C>(case, PhantomData)).await {
        Err(error) => refused(tally, case, &error),
        Ok(answer) => {
            tally.answers += 1;
            let recorded = result(inside(&case.response), C::KEY);
            round_trip(tally, name_of::<C::Answer>(), &case.case, &answer, recorded);
        }
    }
}

pub async fn job<C: Job>(case: &Case, tally: &mut Tally)
where
    C::Outcome: Serialize,
{
    let submitted = match client_of(case).start(&Recorded::<C>(case, PhantomData)).await {
        Err(error) => return refused(tally, case, &error),
        Ok(submitted) => submitted,
    };
    tally.answers += 1;
    let body = inside(&case.response);
    if body["jobid"].as_str() != Some(submitted.job.as_str()) {
        tally.faults.push(format!("{}: the job's id is lost", case.case));
    }
    let made = name_of::<C::Id>() != "NoId";
    if made && body.get("id").is_some() != submitted.id.is_some() {
        tally.faults.push(format!("{}: the new object's id is lost", case.case));
    }
    let Some(end) = case.job.as_ref().map(|job| &job.end).filter(|end| end.is_object()) else {
        return;
    };
    let recorded = inside(end);
    let state = client(200, "application/json", end).poll::<Recorded<'_, C>>(&submitted.job).await;
    tally.jobs += 1;
    match (state, recorded["jobstatus"].as_u64()) {
        (Ok(JobState::Running), Some(0)) => {}
        (Ok(JobState::Failed(refusal)), Some(2)) => {
            if Some(u64::from(refusal.code.number())) != recorded["jobresult"]["errorcode"].as_u64() {
                tally.faults.push(format!("{}: the job failed with {refusal}", case.case));
            }
        }
        (Ok(JobState::Succeeded(outcome)), Some(1)) => {
            let recorded = result(&recorded["jobresult"], C::KEY);
            round_trip(tally, name_of::<C::Outcome>(), &case.case, &outcome, recorded);
        }
        (Ok(_), recorded) => tally.faults.push(format!("{}: the job ended as {recorded:?}", case.case)),
        (Err(error), _) => tally.faults.push(format!("{}: {error}", case.case)),
    }
}

fn result<'a>(inside: &'a Value, key: Option<&str>) -> &'a Value {
    key.map_or(inside, |key| &inside[key])
}

fn round_trip(tally: &mut Tally, owner: &str, case: &str, ours: &impl Serialize, recorded: &Value) {
    if owner == name_of::<Done>() {
        return;
    }
    match serde_json::to_value(ours) {
        Ok(ours) => compare(tally, owner, case, &ours, recorded),
        Err(error) => tally.faults.push(format!("{case}: {error}")),
    }
}
