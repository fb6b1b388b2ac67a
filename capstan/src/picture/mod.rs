//! `capstan describe` and `capstan why`: a cluster as people look at it, on any server that speaks Cluster API.

mod describe;
mod why;

use anyhow::{Result, bail};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::ListOptions;
use capstan_object::{Key, Object as _};
use capstan_view::{Part, Tree};
use futures::future::try_join_all;

use crate::kinds::list;
use crate::reach::{Management, missing};

pub use describe::{Args as DescribeArgs, run as describe};
pub use why::{Args as WhyArgs, explain, run as why};

/// The tree of a cluster, or of a machine of that name if there is no such cluster, as it is now.
pub async fn tree(management: &Management, name: &str) -> Result<Tree> {
    if let Some(tree) = seek(management, name).await? {
        return Ok(tree);
    }
    let there = management.client.list_all::<Cluster>(&management.namespace, &ListOptions::default()).await?;
    let names: Vec<&str> = there.iter().map(|it| it.metadata().name.as_str()).collect();
    bail!("{}", missing("cluster or machine", name, &management.namespace, &names));
}

/// The same, if there is any.
pub async fn seek(management: &Management, name: &str) -> Result<Option<Tree>> {
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
