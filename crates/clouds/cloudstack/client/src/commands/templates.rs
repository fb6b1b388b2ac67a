//! Templates.

use serde::Serialize;

use super::Scope;
use crate::Stable;
use crate::command::lists;
use crate::id::{TemplateId, ZoneId};
use crate::model::Template;

/// Which templates are meant. The server insists on one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateFilter {
    /// What the caller can make machines from.
    #[default]
    Executable,
    /// What is shown first.
    Featured,
    /// The caller's own.
    #[serde(rename = "self")]
    Own,
    /// The caller's own that are ready.
    #[serde(rename = "selfexecutable")]
    OwnExecutable,
    /// What others shared with the caller.
    #[serde(rename = "sharedexecutable")]
    SharedExecutable,
    /// Public ones.
    Community,
    /// All; administrators only.
    All,
}

/// Templates, one entry per zone.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListTemplates {
    /// Which templates are meant.
    pub templatefilter: TemplateFilter,
    /// The template with this id.
    pub id: Option<TemplateId>,
    /// Templates with this name, in any case.
    pub name: Option<String>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// Owner of the templates.
    #[serde(flatten)]
    pub scope: Scope,
}

lists! { ListTemplates: "listTemplates" => "template" Template; }
impl Stable for ListTemplates {}
