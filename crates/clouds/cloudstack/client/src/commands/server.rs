//! What a server can do.

use serde::Serialize;

use crate::command::{calls, lists};
use crate::model::{Api, Capability};

/// How the server is set up.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ListCapabilities {}

/// Commands that the caller may use. The whole list takes seconds; an unknown name is an internal error.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListApis {
    /// This command.
    pub name: Option<String>,
}

lists! { ListApis: "listApis" => "api" Api; }
calls! { ListCapabilities: "listCapabilities" => "capability" Capability; }
