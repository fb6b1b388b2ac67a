//! What a cloud has beside what is recorded: the provider's part of `capstan orphans`.

use capstan_controller::{ApiError, Client, ListOptions};
use capstan_object::Object;
use futures::future::BoxFuture;
use serde::Serialize;

use crate::ProviderError;

/// Compares a cloud with the records of a management cluster.
pub trait Inventory: Send + Sync {
    /// Compares the objects of a namespace, or of all if it is empty, with the clouds that they name. Changes nothing.
    /// Reads records of all namespaces where several can share an account: what another namespace has recorded is no
    /// orphan. A cloud that cannot be asked is a difference of [`DifferenceKind::Unknown`], no error.
    fn compare<'a>(
        &'a self,
        client: &'a Client,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Drift, ProviderError>>;
}

/// How records and reality differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceKind {
    /// It is there and in no record.
    Unrecorded,
    /// It is recorded and not there.
    Gone,
    /// It could not be looked at.
    Unknown,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// How.
    pub how: DifferenceKind,
    /// `Kind/name` of what differs.
    pub what: String,
    /// Where it was looked for.
    pub place: String,
    /// A sentence about it.
    pub says: String,
}

/// How a cloud differs from the records.
#[derive(Default)]
pub struct Drift {
    /// All differences.
    pub differences: Vec<Difference>,
    /// What `--delete` may remove, an entry per account. Nothing is in two of them.
    pub unrecorded: Vec<Box<dyn Unrecorded>>,
}

/// What of one account carries our ownership mark and is in no record.
pub trait Unrecorded: Send + Sync {
    /// How many things of each kind, kinds without any included: `("network", 0)`.
    fn counts(&self) -> Counted;

    /// Removes them. Looks at the marks once more: what does not carry them stays, whoever asks. What the cloud refuses
    /// to remove is kept, no error; an error is a cloud that cannot be asked.
    fn remove(&self) -> BoxFuture<'_, Result<Removed, ProviderError>>;
}

/// Things by kind, in the order in which they were first counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted(Vec<(&'static str, usize)>);

impl Counted {
    /// Adds things of a kind; none is worth saying too.
    pub fn add(&mut self, kind: &'static str, count: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((kind, count)),
        }
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(kind, count)| self.add(kind, *count));
    }

    /// How many in all.
    pub fn sum(&self) -> usize {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The same kinds, and none of them.
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

/// What became of a removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// What is gone, or on its way out.
    pub gone: Counted,
    /// What is still there.
    pub kept: Vec<Kept>,
}

/// Something that was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name and id, as the cloud has them.
    pub what: String,
    /// Why.
    pub why: String,
}

/// All objects of a kind; `None` if the server does not serve the kind, as where a provider is not installed.
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
    fn what_goes_is_counted_in_words() {
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
    fn things_of_several_clouds_are_counted_together() {
        let mut sum = Counted::from([("network", 1)]);
        sum.extend(&Counted::from([("berth", 2), ("network", 4)]));
        assert_eq!((sum.to_string().as_str(), sum.sum()), ("5 networks and 2 berths", 7));
        assert_eq!(sum.none_of().to_string(), "0 networks and 0 berths");
    }
}
