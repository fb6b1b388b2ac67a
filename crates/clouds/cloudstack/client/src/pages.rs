//! Whole lists, page by page.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::client::Client;
use crate::command::List;
use crate::envelope::{too_large, unreadable};
use crate::error::{Error, ErrorKind};
use crate::loose;

/// Pages read at most: a server that counts wrongly must not keep us for ever.
const MOST_PAGES: u32 = 1000;
/// Bytes of all pages of a list: a page of 500 machines is about two megabytes, so this is some fifty thousand of them.
const LONGEST_LIST: usize = 256 * 1024 * 1024;

#[derive(serde::Deserialize)]
struct Count(#[serde(deserialize_with = "loose::number")] Option<usize>);

struct Page<T> {
    items: Vec<T>,
    /// How many there are over all pages, if the server said so.
    count: Option<usize>,
}

impl Client {
    /// Everything that a list command finds.
    ///
    /// A list can change between two pages, and then an entry may be missed: a list whose count changed is read anew.
    pub async fn list<C: List>(&self, command: &C) -> Result<Vec<C::Item>, Error> {
        let parameters = self.parameters(command)?;
        for _ in 0..self.policy.list_attempts.max(1) {
            if let Some(items) = self.list_once::<C>(&parameters).await? {
                return Ok(items);
            }
        }
        Err(self.error(C::NAME, ErrorKind::Unsettled))
    }

    /// The first `size` entries that a list command finds, and how many there are in all.
    pub async fn first_page<C: List>(&self, command: &C, size: u32) -> Result<(Vec<C::Item>, usize), Error> {
        let mut parameters = self.parameters(command)?;
        parameters.push(("page".to_owned(), "1".to_owned()));
        parameters.push(("pagesize".to_owned(), size.to_string()));
        let inside = self.send(C::NAME, &parameters).await?;
        let read: Page<C::Item> =
            read_page(&inside, C::KEY).map_err(|error| self.error(C::NAME, unreadable(&error)))?;
        let count = read.count.unwrap_or(read.items.len());
        Ok((read.items, count))
    }

    /// The one thing that a list command finds, if there is one.
    pub async fn find<C: List>(&self, command: &C) -> Result<Option<C::Item>, Error> {
        let mut found = self.list(command).await?;
        match found.len() {
            0 | 1 => Ok(found.pop()),
            several => Err(self.error(C::NAME, ErrorKind::Several(several))),
        }
    }

    /// `None` if the list changed meanwhile.
    async fn list_once<C: List>(
        &self,
        parameters: &[(String, String)],
    ) -> Result<Option<Vec<C::Item>>, Error> {
        let size = self.policy.page_size.max(1);
        let mut items = Vec::new();
        let mut count = None;
        let mut bytes = 0;
        for page in 1..=MOST_PAGES {
            let mut parameters = parameters.to_vec();
            parameters.push(("page".to_owned(), page.to_string()));
            parameters.push(("pagesize".to_owned(), size.to_string()));
            let inside = self.send(C::NAME, &parameters).await?;
            bytes += inside.get().len();
            if bytes > LONGEST_LIST {
                return Err(
                    self.error(C::NAME, too_large(format!("the list is longer than {LONGEST_LIST} bytes")))
                );
            }
            let read: Page<C::Item> =
                read_page(&inside, C::KEY).map_err(|error| self.error(C::NAME, unreadable(&error)))?;
            let got = read.items.len();
            items.extend(read.items);
            // Without a page behind it there is nothing that could have moved.
            if page == 1 && got < size as usize {
                return Ok(Some(items));
            }
            if page > 1 && read.count != count {
                return Ok(None);
            }
            count = read.count;
            if got == 0 || count.is_some_and(|count| items.len() >= count) {
                let complete = count.is_none_or(|count| items.len() == count);
                return Ok(complete.then_some(items));
            }
        }
        Ok(None)
    }
}

/// An empty list is an empty object; a page behind the last one has a count and no entries.
fn read_page<T: serde::de::DeserializeOwned>(inside: &RawValue, key: &str) -> serde_json::Result<Page<T>> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(inside.get())?;
    let items = match fields.get(key) {
        Some(items) => serde_json::from_str(items.get())?,
        None => Vec::new(),
    };
    let count = match fields.get("count") {
        Some(count) => serde_json::from_str::<Count>(count.get())?.0,
        None => None,
    };
    Ok(Page { items, count })
}
