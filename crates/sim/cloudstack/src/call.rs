//! One call: who calls what with which parameters, read and checked before the command sees them.

use crate::catalog::{Command, Kind};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::Submission;
use crate::model::identity::{Account, RoleType, User};
use crate::model::table::{Key, Table};
use crate::params::Params;

/// Most entries of a page.
const MOST_PER_PAGE: i64 = 500;

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) user: Key<User>,
    pub(crate) account: Key<Account>,
    pub(crate) role: RoleType,
}

impl Caller {
    pub(crate) fn is_root(self) -> bool {
        self.role == RoleType::RootAdmin
    }

    pub(crate) fn is_admin(self) -> bool {
        self.role != RoleType::User
    }
}

pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) command: &'static Command,
    pub(crate) params: Params,
    /// It came by POST.
    pub(crate) post: bool,
}

/// What a command answers.
pub(crate) enum Answer {
    /// `{"<key>": object}`.
    Object(&'static str, serde_json::Value),
    /// `{"count": n, "<key>": [..]}`, paged by whoever asked.
    List(&'static str, Vec<serde_json::Value>),
    /// The same, of a whole that is longer than what is shown.
    Page(&'static str, usize, Vec<serde_json::Value>),
    /// The body as it is.
    Body(serde_json::Value),
    Job(Submission),
}

impl Call {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)
    }

    /// A text that is not empty.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Whether something is said to be true; everything but `true` is false, as in the server.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    /// A number; its form was checked before.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    pub(crate) fn missing(&self, name: &str) -> ApiError {
        ApiError::parameter(format!(
            "Unable to execute API command {} due to missing parameter {name}",
            self.command.lower_name()
        ))
    }

    pub(crate) fn invalid_value(&self, what: &str) -> ApiError {
        ApiError::parameter(format!(
            "Unable to execute API command {} due to invalid value{what}",
            self.command.lower_name()
        ))
    }

    pub(crate) fn unknown(&self, name: &str, value: &str) -> ApiError {
        self.invalid_value(&format!(
            ". Invalid parameter {name} value={value} due to incorrect long value format, or entity does not exist or due to \
             incorrect parameter annotation for the field in api cmd class."
        ))
    }

    /// What a parameter names; that it exists was checked before.
    pub(crate) fn key<T>(&self, table: &Table<T>, name: &str) -> Option<Key<T>> {
        self.text(name).and_then(|id| table.find(id))
    }

    /// The same for a parameter that must be there.
    pub(crate) fn the<T>(&self, table: &Table<T>, name: &str) -> Result<Key<T>> {
        self.key(table, name).ok_or_else(|| self.missing(name))
    }

    /// What a list parameter names.
    pub(crate) fn keys<T>(&self, table: &Table<T>, name: &str) -> Vec<Key<T>> {
        self.filled(name)
            .map(|ids| ids.split(',').filter_map(|id| table.find(id)).collect())
            .unwrap_or_default()
    }

    /// Refuses what the layer refuses that reads parameters.
    pub(crate) fn check(&self, cloud: &Cloud) -> Result<()> {
        for (name, value) in self.params.iter() {
            if value.chars().any(|c| c.is_ascii_control() && !matches!(c, '\r' | '\n') || c == '\t') {
                return Err(ApiError::parameter(format!(
                    "Received value containing illegal ASCII non-printable characters for parameter {name}"
                )));
            }
        }
        for parameter in self.command.parameters() {
            let name = parameter.name;
            let Some(value) = self.text(name) else {
                if parameter.required && self.params.maps(name).is_empty() {
                    return Err(self.missing(name));
                }
                continue;
            };
            match parameter.kind {
                Kind::Text if value.len() > 255 => {
                    return Err(self.invalid_value(&format!(
                        ". Value greater than max allowed length 255 for param: {name}"
                    )));
                }
                Kind::Text | Kind::LongText | Kind::Flag | Kind::Map => {}
                Kind::Number if value.parse::<i64>().is_err() => {
                    return Err(self.invalid_value(&format!(" {value} for parameter {name}")));
                }
                Kind::Number => {}
                Kind::Date if !is_date(value) => {
                    return Err(ApiError::parameter(format!(
                        "Unable to parse date {value} for command {}, please pass dates in the format mentioned in the api \
                         documentation",
                        self.command.lower_name()
                    )));
                }
                Kind::Date => {}
                Kind::Entity("project") if value == "-1" => {}
                Kind::Entity(kind) => {
                    if !cloud.knows(kind, value) {
                        return Err(self.unknown(name, value));
                    }
                }
                Kind::Entities(kind) => {
                    if let Some(stranger) =
                        value.split(',').filter(|id| !id.is_empty()).find(|id| !cloud.knows(kind, id))
                    {
                        return Err(self.unknown(name, stranger));
                    }
                }
            }
        }
        if self.command.is_list() {
            self.check_page()?;
        }
        Ok(())
    }

    fn check_page(&self) -> Result<()> {
        match (self.number("page"), self.number("pagesize")) {
            (Some(_), None) => {
                Err(ApiError::parameter("\"pagesize\" parameter is required when \"page\" is specified"))
            }
            (None, Some(_)) => {
                Err(ApiError::parameter("\"page\" parameter is required when \"pagesize\" is specified"))
            }
            (Some(_), Some(-1)) => {
                Err(ApiError::invalid("Can't specify page parameter when pagesize is -1 (Unlimited)"))
            }
            (Some(_), Some(size)) if size > MOST_PER_PAGE => Err(ApiError::invalid(format!(
                "Page size can't exceed max allowed page size value: {MOST_PER_PAGE}"
            ))),
            _ => Ok(()),
        }
    }

    /// Which entries are asked for; page 0 is page 1.
    pub(crate) fn page(&self) -> Option<(usize, usize)> {
        let size = usize::try_from(self.number("pagesize")?).ok()?;
        let page = usize::try_from(self.number("page")?).unwrap_or(0).max(1);
        Some(((page - 1) * size, size))
    }

    /// `keyword` is contained in one of these, whatever the case.
    pub(crate) fn keyword_in(&self, texts: &[&str]) -> bool {
        self.filled("keyword").is_none_or(|word| {
            let word = word.to_lowercase();
            texts.iter().any(|text| text.to_lowercase().contains(&word))
        })
    }

    /// A filter names this, whatever the case, or is not there.
    pub(crate) fn names(&self, parameter: &str, name: &str) -> bool {
        self.text(parameter).is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
    }

    /// A filter names a part of this, whatever the case, or is not there.
    pub(crate) fn names_partly(&self, parameter: &str, name: &str) -> bool {
        self.text(parameter).is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
    }

    /// A filter names this row, or is not there.
    pub(crate) fn selects<T>(&self, table: &Table<T>, parameter: &str, key: Key<T>) -> bool {
        self.text(parameter).is_none_or(|id| table.find(id) == Some(key))
    }
}

/// A day such as `2026-11-18`, with or without a time of day.
fn is_date(text: &str) -> bool {
    let day = text.get(..10).unwrap_or(text);
    day.parse::<jiff::civil::Date>().is_ok()
}
