//! Whole lists, page by page.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use url::Url;

use crate::client::{Call, Client, unreadable};
use crate::error::{Class, Error, ErrorKind};
use crate::resource::List;

/// Pages read at most: a service whose links lead in a circle must not keep us for ever.
const MOST_PAGES: u32 = 1000;
/// Bytes of all pages of a list.
const LONGEST_LIST: usize = 256 * 1024 * 1024;

/// How the pages of a list follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// The next page begins behind the entry that the link to it names.
    Marker,
    /// The next page begins behind so many entries; there are no links.
    Offset,
    /// There is one page.
    Whole,
}

/// A page, before its entries are decoded.
type Page = BTreeMap<String, Box<RawValue>>;

#[derive(serde::Deserialize)]
struct Link {
    rel: String,
    href: String,
}

#[derive(serde::Deserialize)]
struct Links {
    next: Option<String>,
}

impl Client {
    pub(crate) async fn pages<R: List>(&self, call: Call) -> Result<Vec<R>, Error> {
        let attempts = self.inner.policy.list_attempts.max(1);
        for attempt in 1..=attempts {
            match self.pages_once::<R>(&call).await {
                // The entry that ended a page is gone: Neutron and Cinder say 404 of the marker, Nova and others 400.
                Err((error, true)) if attempt < attempts && marker_is_gone(&error) => {}
                Err((error, _)) => return Err(error),
                Ok(items) => return Ok(items),
            }
        }
        Err(call.error(ErrorKind::Endless("it kept changing while it was read")))
    }

    /// The error says whether pages before were read.
    async fn pages_once<R: List>(&self, call: &Call) -> Result<Vec<R>, (Error, bool)> {
        let size = self.inner.policy.page_size.max(1);
        let mut items: Vec<R> = Vec::new();
        let mut behind: Option<String> = None;
        let mut bytes = 0;
        for page in 0..MOST_PAGES {
            let mut call = call.clone();
            if R::PAGING != Paging::Whole {
                call.query.push(("limit".to_owned(), size.to_string()));
            }
            if let Some(behind) = &behind {
                let name = if R::PAGING == Paging::Offset { "offset" } else { "marker" };
                call.query.push((name.to_owned(), behind.clone()));
            }
            let failed = |error| (error, page > 0);
            let reply = self.send(&call).await.map_err(failed)?;
            bytes += reply.body.len();
            if bytes > LONGEST_LIST {
                return Err(failed(call.error(ErrorKind::Endless("it exceeds the limit of a list"))));
            }
            let strange = |error: serde_json::Error| failed(unreadable(&call, &error));
            let mut read: Page = serde_json::from_slice(&reply.body).map_err(strange)?;
            let Some(entries) = read.remove(R::MANY) else {
                let why = format!("there is no {} in it", R::MANY);
                return Err(failed(call.error(ErrorKind::Unreadable { status: reply.status, why })));
            };
            let entries: Vec<R> = serde_json::from_str(entries.get()).map_err(strange)?;
            let got = entries.len();
            let last = entries.last().map(|entry| entry.marker().to_owned());
            items.extend(entries);
            let next = match R::PAGING {
                Paging::Whole => None,
                Paging::Offset => (got >= size as usize).then(|| items.len().to_string()),
                Paging::Marker => next_link(&read, R::MANY).and_then(|link| marker_of(&link).or(last)),
            };
            match next {
                // A full last page has a link to an empty one.
                Some(next) if got > 0 => {
                    if behind.as_ref() == Some(&next) {
                        return Err(failed(call.error(ErrorKind::Endless("a page links to itself"))));
                    }
                    behind = Some(next);
                }
                _ => return Ok(items),
            }
        }
        Err((call.error(ErrorKind::Endless("it has too many pages")), true))
    }
}

fn marker_is_gone(error: &Error) -> bool {
    matches!(error.class(), Class::NotFound | Class::Parameter)
}

/// The link to the next page: Nova, Neutron, Cinder and Octavia have `servers_links`, the image service `next`, Keystone
/// `links.next`.
fn next_link(page: &Page, many: &str) -> Option<String> {
    if let Some(links) = page.get(&format!("{many}_links")) {
        let links: Vec<Link> = serde_json::from_str(links.get()).ok()?;
        return links.into_iter().find(|link| link.rel == "next").map(|link| link.href);
    }
    if let Some(next) = page.get("next") {
        return serde_json::from_str(next.get()).ok()?;
    }
    serde_json::from_str::<Links>(page.get("links")?.get()).ok()?.next
}

/// The marker in a link, which may be relative. The link itself is not followed.
fn marker_of(link: &str) -> Option<String> {
    let base = Url::parse("http://relative.invalid").ok()?;
    let url = base.join(link).ok()?;
    url.query_pairs().find(|(name, _)| name == "marker").map(|(_, marker)| marker.into_owned())
}
