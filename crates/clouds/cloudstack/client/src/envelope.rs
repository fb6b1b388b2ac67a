//! What comes back: one key, whose name is the command's more often than not, and behind it a result or an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{Response, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{Code, ErrorKind, Refusal};
use crate::loose;

/// Longest error text that is kept.
const LONGEST_TEXT: usize = 1024;
/// Objects in one answer, nested ones included: a page of 500 machines has about fifteen thousand. Empty ones are two
/// bytes on the wire and hundreds in memory.
const MOST_OBJECTS: usize = 200_000;

#[derive(Debug, Deserialize)]
struct Failure {
    #[serde(default, deserialize_with = "loose::number")]
    errorcode: Option<u16>,
    #[serde(default, deserialize_with = "loose::number")]
    cserrorcode: Option<u32>,
    #[serde(default)]
    errortext: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Acknowledgement {
    #[serde(default, deserialize_with = "loose::maybe_truth")]
    success: Option<bool>,
    #[serde(default)]
    displaytext: Option<String>,
}

/// The inside of an answer.
pub(crate) fn open(response: &Response<impl AsRef<[u8]>>) -> Result<Box<RawValue>, ErrorKind> {
    let status = response.status();
    let body = response.body().as_ref();
    if body.iter().filter(|byte| **byte == b'{').nth(MOST_OBJECTS).is_some() {
        return Err(strange(response, "it holds too many objects"));
    }
    let wrapper: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_slice(body);
    let inside = match wrapper.map(|wrapper| (wrapper.len(), wrapper.into_values().next())) {
        Ok((1, Some(inside))) => inside,
        Ok(_) => return Err(strange(response, "a single wrapper was expected")),
        Err(_) if body.is_empty() => return Err(strange(response, "it is empty")),
        Err(_) => {
            return Err(strange(response, "it is not JSON; the default path of the API is /client/api"));
        }
    };
    if let Some(refusal) = refusal(inside, status) {
        return Err(ErrorKind::Refused(refusal));
    }
    match status == StatusCode::OK {
        true => Ok(inside.to_owned()),
        false => Err(strange(response, "no error code is in it")),
    }
}

/// The refusal in an answer or a job's result.
fn refusal(inside: &RawValue, status: StatusCode) -> Option<Refusal> {
    // Lists can be large and hold no error: look at the text before at the structure.
    if status == StatusCode::OK && !inside.get().contains("\"errorcode\"") {
        return None;
    }
    let failure: Failure = serde_json::from_str(inside.get()).ok()?;
    let code = failure.errorcode?;
    Some(Refusal {
        code: Code::from_number(code),
        cs_code: failure.cserrorcode,
        text: tidy(failure.errortext.as_deref().unwrap_or_default()),
    })
}

/// Why a job failed, of its `jobresult` and `jobresultcode`.
pub(crate) fn job_refusal(result: Option<&RawValue>, code: Option<u16>) -> Refusal {
    let failure = result.and_then(|result| serde_json::from_str::<Failure>(result.get()).ok());
    let number = failure.as_ref().and_then(|failure| failure.errorcode).or(code.filter(|code| *code != 0));
    Refusal {
        code: number.map_or(Code::Internal, Code::from_number),
        cs_code: failure.as_ref().and_then(|failure| failure.cserrorcode),
        text: tidy(failure.and_then(|failure| failure.errortext).as_deref().unwrap_or_default()),
    }
}

/// The result under a key, or the whole inside. A result that says `success: false` is none.
pub(crate) fn result<T: DeserializeOwned>(inside: &RawValue, key: Option<&str>) -> Result<T, ErrorKind> {
    let text = match key {
        None => {
            let verdict: Acknowledgement =
                serde_json::from_str(inside.get()).map_err(|error| unreadable(&error))?;
            if verdict.success == Some(false) {
                let text = tidy(verdict.displaytext.as_deref().unwrap_or("the server reports no success"));
                return Err(ErrorKind::Refused(Refusal { code: Code::Internal, cs_code: None, text }));
            }
            inside.get()
        }
        Some(key) => {
            let fields: BTreeMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(inside.get()).map_err(|error| unreadable(&error))?;
            match fields.get(key) {
                Some(value) => value.get(),
                None => {
                    let why = format!("there is no {key} in it");
                    return Err(ErrorKind::Unreadable { status: 200, why });
                }
            }
        }
    };
    serde_json::from_str(text).map_err(|error| unreadable(&error))
}

/// serde's errors name fields and types; values only where ours name them, which are numbers, truths and times.
pub(crate) fn unreadable(error: &serde_json::Error) -> ErrorKind {
    ErrorKind::Unreadable { status: 200, why: tidy(&error.to_string()) }
}

/// An answer that is longer than anything a cloud has to say.
pub(crate) fn too_large(why: String) -> ErrorKind {
    ErrorKind::Unreadable { status: 200, why }
}

fn strange(response: &Response<impl AsRef<[u8]>>, why: &str) -> ErrorKind {
    // Never the body: a page of a proxy is long, and nobody knows what is in it.
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let why = format!("{why} ({})", tidy(kind.unwrap_or("no content type")));
    ErrorKind::Unreadable { status: response.status().as_u16(), why }
}

/// Somebody else's text, fit for a line of a log.
pub(crate) fn tidy(text: &str) -> String {
    let mut tidy: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if tidy.len() < text.len() {
        tidy.push('…');
    }
    tidy
}
