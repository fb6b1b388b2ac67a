//! GET of a collection: selectors, consistent pages, resource versions.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_store::{Entry, HistoryError};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::digest::Digest;
use crate::http::options::{ListOptions, MAX_PAGE};
use crate::object::key;
use crate::selection::Selection;
use crate::status::{Result, Status};
use crate::verbs::{Answer, ListAnswer};

/// How long a read waits for a resource version in the future.
const FUTURE_VERSION_TIMEOUT: Duration = Duration::from_secs(3);

/// A continue token: the resource version of all pages, and the first key of the next one.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Continue {
    v: String,
    rv: i64,
    /// Where the next page begins, relative to the namespace of the list: a token leads nowhere else.
    start: String,
}

const CONTINUE_VERSION: &str = "meta.k8s.io/v1";

pub(crate) struct Page {
    pub entries: Vec<Arc<Entry<Digest>>>,
    pub revision: u64,
    pub continue_token: String,
    pub remaining: Option<u64>,
}

pub(crate) async fn list(call: &Call) -> Result<Answer> {
    let options = call.query.list_options(false)?;
    if options.continue_token.is_empty() {
        wait_for_version(call, &options.resource_version).await?;
    }
    let page = select(call, &options)?;
    let items = call.render_all(&page.entries).await?;
    Ok(Answer::List(ListAnswer {
        items,
        resource_version: page.revision,
        continue_token: page.continue_token,
        remaining: page.remaining,
    }))
}

/// Waits until the store has reached a resource version that a client has seen elsewhere; 504 on timeout.
pub(crate) async fn wait_for_version(call: &Call, version: &str) -> Result<()> {
    let wanted = parse_version(version)?;
    let store = &call.parts.store;
    if wanted <= store.revision() {
        return Ok(());
    }
    match tokio::time::timeout(FUTURE_VERSION_TIMEOUT, store.reached(wanted)).await {
        Ok(()) => Ok(()),
        Err(_) => {
            let mut status = Status::timeout(
                format!("Too large resource version: {wanted}, current: {}", store.revision()),
                1,
            );
            if let Some(details) = &mut status.details {
                details.causes.push(crate::status::Cause {
                    reason: "ResourceVersionTooLarge".into(),
                    message: "Too large resource version".into(),
                    field: String::new(),
                });
            }
            status.retry_after = Some(1);
            Err(status)
        }
    }
}

/// Parses a resource version; empty is 0.
pub(crate) fn parse_version(version: &str) -> Result<u64> {
    if version.is_empty() {
        return Ok(0);
    }
    version.parse().map_err(|_| {
        let error = capstan_schema::field::FieldError::invalid(
            "resourceVersion",
            version,
            format!("strconv.ParseUint: parsing {version:?}: invalid syntax"),
        );
        Status::bad_request(format!("invalid resource version: {error}"))
    })
}

pub(crate) fn select(call: &Call, options: &ListOptions) -> Result<Page> {
    let store = &call.parts.store;
    let bucket = &call.resource().bucket;
    let selection = Selection::new(call, options)?;
    let exact = options.resource_version_match == "Exact"
        || (options.limit > 0
            && options.resource_version_match.is_empty()
            && !matches!(options.resource_version.as_str(), "" | "0"));
    let (snapshot, after) = if options.continue_token.is_empty() {
        let snapshot = if exact {
            let wanted = parse_version(&options.resource_version)?;
            store.snapshot_at(bucket, wanted).map_err(|e| history_lost(&e))?
        } else {
            store.snapshot(bucket)
        };
        (snapshot, None)
    } else {
        let token = decode_continue(&options.continue_token)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        // A negative version means a token that continues with the current state.
        let snapshot = match u64::try_from(token.rv) {
            Ok(revision) => store.snapshot_at(bucket, revision).map_err(|e| expired_page(&e, &token))?,
            Err(_) => store.snapshot(bucket),
        };
        (snapshot, Some(key(call.namespace(), &token.start)))
    };

    // Upstream answers from its cache for version 0, which has no pages.
    let from_cache = options.resource_version == "0" && options.continue_token.is_empty() && !exact;
    let limit = if options.limit == 0 || from_cache { usize::MAX } else { options.limit.min(MAX_PAGE) };
    let mut entries = Vec::new();
    let mut matching =
        snapshot.range(selection.prefix(), after.as_deref()).filter(|entry| selection.matches(entry));
    for entry in matching.by_ref() {
        entries.push(entry.clone());
        if entries.len() == limit {
            break;
        }
    }
    let has_more = entries.len() == limit && matching.next().is_some();
    drop(matching);
    let mut page =
        Page { revision: snapshot.revision(), entries, continue_token: String::new(), remaining: None };
    if has_more && let Some(last) = page.entries.last() {
        page.continue_token = encode_continue(page.revision, call.namespace(), &last.key);
        // Counting matches of selectors costs as much as listing them, so it is only done without selectors.
        if selection.is_everything() {
            let rest = snapshot.range(selection.prefix(), Some(&last.key)).count();
            page.remaining = Some(rest as u64);
        }
    }
    Ok(page)
}

fn encode_continue(revision: u64, namespace: &str, last: &str) -> String {
    let last = last.strip_prefix(namespace).unwrap_or(last).trim_start_matches('/');
    let token = Continue {
        v: CONTINUE_VERSION.into(),
        rv: i64::try_from(revision).unwrap_or(i64::MAX),
        // The smallest key after the last one of this page.
        start: format!("{last}\0"),
    };
    // A struct of strings and a number can always be serialized.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

/// Go's error: the first byte that is no character of the alphabet, or one that is left alone at the end.
fn illegal_base64(text: &str) -> String {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let at = text.bytes().position(|byte| !known(byte)).unwrap_or_else(|| text.len().saturating_sub(1));
    format!("illegal base64 data at input byte {at}")
}

fn decode_continue(token: &str) -> Result<Continue> {
    let invalid =
        |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let text = token.trim_end_matches('=');
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid(&illegal_base64(text)))?;
    let token: Continue =
        serde_json::from_slice(&bytes).map_err(|e| invalid(&unreadable(&bytes, &e.to_string())))?;
    if token.v != CONTINUE_VERSION {
        return Err(invalid(&format!("server does not recognize this encoded version {}", token.v)));
    }
    if token.rv == 0 {
        return Err(invalid(&format!("incorrect encoded start resourceVersion (version {})", token.v)));
    }
    if token.start.is_empty() {
        return Err(invalid(&format!("encoded start key empty (version {})", token.v)));
    }
    let parts = token.start.trim_start_matches('/').split('/');
    if parts.into_iter().any(|part| matches!(part, "" | "." | "..")) {
        return Err(invalid(&token.start));
    }
    Ok(token)
}

/// Why a token is invalid. If it is not JSON at all, with the text of Go's decoder.
fn unreadable(bytes: &[u8], otherwise: &str) -> String {
    match bytes.first() {
        Some(first) if !first.is_ascii() => {
            format!("invalid character '{}' looking for beginning of value", quoted(*first))
        }
        _ => otherwise.to_owned(),
    }
}

/// A non-ASCII byte as Go quotes the character of that number.
fn quoted(byte: u8) -> String {
    if byte < 0xa1 || byte == 0xad { format!("\\u{byte:04x}") } else { char::from(byte).to_string() }
}

fn history_lost(error: &HistoryError) -> Status {
    match error {
        HistoryError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        HistoryError::Future { .. } => Status::timeout("Too large resource version", 1),
    }
}

/// 410 for a page whose version was compacted, with a token to continue with the current state.
fn expired_page(_: &HistoryError, token: &Continue) -> Status {
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
         that were created, modified, or deleted between the time the first chunk was returned and now may show \
         up in the list.",
    );
    let inconsistent = Continue { v: CONTINUE_VERSION.into(), rv: -1, start: token.start.clone() };
    status.continue_token =
        Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&inconsistent).unwrap_or_default()));
    status
}
