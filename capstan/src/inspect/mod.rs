//! `capstan describe` and `capstan why`, on any server that has Cluster API.

mod describe;
mod fixes;
mod last_lines;
mod why;

use anyhow::{Result, bail};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::ListOptions;
use capstan_object::{Key, Object as _};
use capstan_view::{Part, Tree};
use futures::future::try_join_all;

use crate::connection::{Management, missing};
use crate::kinds::list;

pub use describe::{Args as DescribeArgs, run as describe};
pub use why::{Args as WhyArgs, explain, run as why};

/// The tree of the cluster of that name, or of the machine; an error if neither exists.
pub async fn load_tree(management: &Management, name: &str) -> Result<Tree> {
    if let Some(tree) = find_tree(management, name).await? {
        return Ok(tree);
    }
    let there = management.client.list_all::<Cluster>(&management.namespace, &ListOptions::default()).await?;
    let names: Vec<&str> = there.iter().map(|it| it.metadata().name.as_str()).collect();
    bail!("{}", missing("cluster or machine", name, &management.namespace, &names));
}

/// Like [`load_tree`]; `None` if neither exists.
pub async fn find_tree(management: &Management, name: &str) -> Result<Option<Tree>> {
    let (kinds, name) = accepted(name);
    let key = Key::new(&management.namespace, name);
    let client = &management.client;
    let mut uid = None;
    if kinds.contains(&Cluster::KIND.kind) {
        uid = client.get::<Cluster>(&key).await?.map(|cluster| cluster.metadata().uid.clone());
    }
    if uid.is_none() && kinds.contains(&Machine::KIND.kind) {
        uid = client.get::<Machine>(&key).await?.map(|machine| machine.metadata().uid.clone());
    }
    let Some(uid) = uid else { return Ok(None) };
    let kinds = management.kinds().await?;
    let lists = kinds.iter().map(|known| list(&management.client, &known.kind, &management.namespace));
    let parts = try_join_all(lists).await?.iter().flatten().filter_map(Part::of).collect();
    Ok(Tree::below(&uid, parts))
}

/// The kinds that an argument may mean, and the name: `demo`, or with a kind as it is printed or as kubectl accepts it,
/// such as `Machine/demo-x` or `machines/demo-x`.
fn accepted(argument: &str) -> (Vec<&'static str>, &str) {
    let kinds = [Cluster::KIND.kind, Machine::KIND.kind];
    let Some((given, name)) = argument.split_once('/') else { return (kinds.to_vec(), argument) };
    let given = given.to_ascii_lowercase();
    let is_given = |kind: &&'static str| given.trim_end_matches('s') == kind.to_ascii_lowercase();
    (kinds.into_iter().filter(is_given).collect(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_stand_before_the_name() {
        for (argument, kinds, name) in [
            ("demo", &["Cluster", "Machine"][..], "demo"),
            ("Cluster/demo", &["Cluster"], "demo"),
            ("machines/demo-x", &["Machine"], "demo-x"),
            ("pod/demo", &[], "demo"),
        ] {
            assert_eq!(accepted(argument), (kinds.to_vec(), name), "{argument}");
        }
    }
}
