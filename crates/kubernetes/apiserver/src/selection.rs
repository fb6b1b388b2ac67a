//! Selects the entries of a bucket for a list, watch or delete-collection.

use capstan_schema::selector::{FieldSelector, LabelSelector};
use capstan_store::Entry;

use crate::call::Call;
use crate::digest::Digest;
use crate::fields;
use crate::http::options::ListOptions;
use crate::status::{Result, Status};

/// A namespace, a name, labels and fields to match.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    prefix: String,
    exact: bool,
    labels: LabelSelector,
    fields: FieldSelector,
    field_paths: fields::Selectable,
}

impl Selection {
    /// The selection of a request.
    pub fn new(call: &Call, options: &ListOptions) -> Result<Self> {
        let field_paths = fields::Selectable::of(call.resource());
        for field in options.fields.terms.iter().map(|t| t.field.as_str()) {
            if !field_paths.has(field) {
                return Err(Status::bad_request(field_paths.unsupported(field, call.resource())));
            }
        }
        let namespace = call.namespace();
        let name = call.name();
        if !name.is_empty() && !options.fields.is_empty() {
            match options.fields.exact("metadata.name") {
                Some(selected) if selected == name => {}
                _ => {
                    return Err(Status::bad_request(
                        "fieldSelector metadata.name doesn't match requested name",
                    ));
                }
            }
        }
        // A name in a namespace is one key; a name across namespaces needs a scan.
        let exact = !name.is_empty() && (!namespace.is_empty() || !call.resource().namespaced);
        let prefix = match (exact, namespace.is_empty()) {
            (true, _) => call.key(),
            (false, true) => String::new(),
            (false, false) => format!("{namespace}/"),
        };
        let mut fields = options.fields.clone();
        if !exact && !name.is_empty() && fields.is_empty() {
            fields = FieldSelector::parse(&format!("metadata.name={name}"))
                .map_err(|e| Status::bad_request(e.to_string()))?;
        }
        Ok(Self { prefix, exact, labels: options.labels.clone(), fields, field_paths })
    }

    /// Common prefix of all selected keys.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether only the prefix restricts the selection.
    pub fn is_everything(&self) -> bool {
        !self.exact && self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, entry: &Entry<Digest>) -> bool {
        if self.exact && *entry.key != *self.prefix {
            return false;
        }
        if !self.labels.is_empty() && !self.labels.matches(|key| entry.digest().label(key)) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let values = self.field_paths.read(entry, self.fields.terms.iter().map(|t| t.field.as_str()));
        self.fields.matches(|field| values.get(field).map(String::as_str))
    }
}
