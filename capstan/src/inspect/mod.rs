//! `capstan describe` and `capstan why`, on any server that has Cluster API.

mod describe;
mod fixes;
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
    let key = Key::new(&management.namespace, name);
    let uid = match management.client.get::<Cluster>(&key).await? {
        Some(cluster) => cluster.metadata().uid.clone(),
        None => match management.client.get::<Machine>(&key).await? {
            Some(machine) => machine.metadata().uid.clone(),
            None => return Ok(None),
        },
    };
    let kinds = management.kinds().await?;
    let lists = kinds.iter().map(|known| list(&management.client, &known.kind, &management.namespace));
    let parts = try_join_all(lists).await?.iter().flatten().filter_map(Part::of).collect();
    Ok(Tree::below(&uid, parts))
}
