//! Differences between a cloud and the records: the provider's part of `capstan orphans`.

use capstan_controller::{ApiError, Client, ListOptions};
use capstan_object::Object;
use futures::future::BoxFuture;
use serde::Serialize;

use crate::ProviderError;

/// Compares a cloud with the records of a management cluster.
pub trait Inventory: Send + Sync {
    /// Compares the objects of a namespace, or of all if it is empty, with the clouds that they name, read-only.
    /// Reads records of all namespaces if several can share an account: a resource that another namespace has
    /// recorded is not an orphan. An unreachable cloud is a [`DifferenceKind::Unknown`], not an error.
    fn compare<'a>(&'a self, client: &'a Client, namespace: &'a str) -> BoxFuture<'a, Comparison>;
}

/// The result of [`Inventory::compare`].
pub type Comparison = Result<Drift, ProviderError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceKind {
    /// It exists but is not recorded.
    Unrecorded,
    /// It is recorded but does not exist.
    Gone,
    /// It could not be checked.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    pub how: DifferenceKind,
    /// `Kind/name` of the object or resource.
    pub what: String,
    /// The cloud account, project or zone.
    pub place: String,
    /// A sentence about it.
    pub says: String,
}

/// The differences between a cloud and the records.
#[derive(Default)]
pub struct Drift {
    pub differences: Vec<Difference>,
    /// What `--delete` may remove, one entry per account, without overlap.
    pub unrecorded: Vec<Box<dyn Unrecorded>>,
}

/// Unrecorded resources of one account that have our ownership mark.
pub trait Unrecorded: Send + Sync {
    /// Number of resources by kind, including kinds without any: `("network", 0)`.
    fn counts(&self) -> Counted;

    /// Removes them. Checks the marks again: resources without a mark stay. A resource that the cloud refuses to
    /// remove is kept, which is not an error; an unreachable cloud is an error.
    fn remove(&self) -> BoxFuture<'_, Result<Removed, ProviderError>>;
}

/// Resources by kind, in the order of the first count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted(Vec<(&'static str, usize)>);

impl Counted {
    /// Adds a count of a kind; also zero.
    pub fn add(&mut self, kind: &'static str, count: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((kind, count)),
        }
    }

    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(kind, count)| self.add(kind, *count));
    }

    pub fn sum(&self) -> usize {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The same kinds with zero counts.
    #[must_use]
    pub fn none_of(&self) -> Self {
        Self(self.0.iter().map(|(kind, _)| (*kind, 0)).collect())
    }
}

impl<const N: usize> From<[(&'static str, usize); N]> for Counted {
    fn from(counts: [(&'static str, usize); N]) -> Self {
        Self(counts.into())
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let many =
            |(kind, count): &(&str, usize)| format!("{count} {kind}{}", if *count == 1 { "" } else { "s" });
        let all: Vec<String> = self.0.iter().map(many).collect();
        match all.split_last() {
            None => f.write_str("nothing"),
            Some((only, [])) => f.write_str(only),
            Some((last, rest)) => write!(f, "{} and {last}", rest.join(", ")),
        }
    }
}

/// The result of a removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Removed, or being removed.
    pub gone: Counted,
    pub kept: Vec<Kept>,
}

/// A resource that was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name and id in the cloud.
    pub what: String,
    pub why: String,
}

/// All objects of a kind; `None` if the server does not serve the kind, such as if the provider is not installed.
pub async fn served<T: Object>(client: &Client, namespace: &str) -> Result<Option<Vec<T>>, ApiError> {
    match client.list_all(namespace, &ListOptions::default()).await {
        Ok(all) => Ok(Some(all)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_formatted_as_text() {
        let counted = |counts: &[(&'static str, usize)]| Counted(counts.to_vec()).to_string();
        assert_eq!(counted(&[("virtual machine", 1), ("network", 0)]), "1 virtual machine and 0 networks");
        assert_eq!(counted(&[("virtual machine", 3), ("network", 1)]), "3 virtual machines and 1 network");
        assert_eq!(
            counted(&[("server", 1), ("network", 2), ("port", 3)]),
            "1 server, 2 networks and 3 ports"
        );
        assert_eq!(counted(&[("berth", 2)]), "2 berths");
    }

    #[test]
    fn counts_of_several_clouds_are_added() {
        let mut sum = Counted::from([("network", 1)]);
        sum.extend(&Counted::from([("berth", 2), ("network", 4)]));
        assert_eq!((sum.to_string().as_str(), sum.sum()), ("5 networks and 2 berths", 7));
        assert_eq!(sum.none_of().to_string(), "0 networks and 0 berths");
    }
}
