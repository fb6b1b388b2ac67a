//! The event log of an account.

use serde::Serialize;

use super::Scope;
use crate::command::lists;
use crate::model::Event;

/// What was ordered in an account, by whomever. The first page holds the newest entries:
/// see [`Client::first_page`](crate::Client::first_page).
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListEvents {
    /// Owner of the events.
    #[serde(flatten)]
    pub scope: Scope,
}

lists! { ListEvents: "listEvents" => "event" Event; }
