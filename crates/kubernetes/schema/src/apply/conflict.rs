//! Conflicts: fields of a configuration that another manager owns.

use std::collections::BTreeMap;

use super::fieldpath::{Path, PathText};
use super::managed::ManagerId;

/// Most conflicts in a response.
const MAX_SHOWN: usize = 100;

/// A field owned by another manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner of the field.
    pub manager: ManagerId,
    /// Path of the field.
    pub path: Path,
}

/// All conflicts of one request, by manager and path. The response is 409 with reason `Conflict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// One cause in the details of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `FieldManagerConflict`
    pub reason: &'static str,
    /// `conflict with "kubectl" using v1`
    pub message: String,
    /// `.spec.replicas`
    pub field: String,
}

impl Conflicts {
    /// The message of the response.
    pub fn message(&self) -> String {
        if let [one] = self.0.as_slice() {
            let (manager, path) = (one.manager.describe(), PathText(&one.path));
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut by_manager: BTreeMap<&ManagerId, Vec<&Path>> = BTreeMap::new();
        let shown = self.shown();
        for conflict in shown {
            by_manager.entry(&conflict.manager).or_default().push(&conflict.path);
        }
        let mut lines = Vec::new();
        for (manager, paths) in by_manager {
            lines.push(format!("conflicts with {}:", manager.describe()));
            lines.extend(paths.into_iter().map(|path| format!("- {}", PathText(path))));
        }
        if shown.len() < self.0.len() {
            lines.push(format!("and {} more", self.0.len() - shown.len()));
        }
        format!("Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }

    /// The conflicts in the response. There can be one per field, each with the keys on its path.
    fn shown(&self) -> &[Conflict] {
        &self.0[..self.0.len().min(MAX_SHOWN)]
    }

    /// The causes of the response, at most as many as the message has.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |conflict: &Conflict| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", conflict.manager.describe()),
            field: PathText(&conflict.path).to_string(),
        };
        self.shown().iter().map(cause).collect()
    }
}
