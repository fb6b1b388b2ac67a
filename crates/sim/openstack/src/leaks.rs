//! Leaks: resources of projects that are not in the baseline.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cloud::Cloud;
use crate::table::{Fields as _, Table};

/// A resource of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leak {
    pub region: String,
    /// Name of the project.
    pub project: String,
    /// Kind, as the API's collection is named.
    pub kind: String,
    pub id: String,
    /// Its name, or its address.
    pub name: String,
}

/// Kinds of resources that a project holds.
const KINDS: &[&str] = &[
    "networks",
    "subnets",
    "ports",
    "routers",
    "floatingips",
    "security_groups",
    "security_group_rules",
    "trunks",
    "subnetpools",
    "address_groups",
    "rbac_policies",
    "servers",
    "server_groups",
    "keypairs",
    "volumes",
    "snapshots",
    "images",
    "loadbalancers",
    "listeners",
    "pools",
    "members",
    "healthmonitors",
    "l7policies",
    "application_credentials",
];

impl Cloud {
    /// Resources of all projects. A project's default security group comes by itself and is none.
    pub(crate) fn owned_resources(&self) -> BTreeSet<Leak> {
        let mut all = BTreeSet::new();
        for (region, tables) in &self.state.tables {
            let default_groups: Vec<&str> = tables
                .get("security_groups")
                .into_iter()
                .flat_map(Table::iter)
                .filter(|it| it.text("name") == "default")
                .map(|it| it.text("id"))
                .collect();
            for (kind, table) in tables.iter().filter(|(kind, _)| KINDS.contains(&kind.as_str())) {
                for row in table.iter() {
                    let group = if kind == "security_group_rules" {
                        row.text("security_group_id")
                    } else {
                        row.text("id")
                    };
                    let project = ["project_id", "tenant_id", "owner", "_project"]
                        .iter()
                        .map(|field| row.text(field))
                        .find(|it| !it.is_empty())
                        .unwrap_or_default();
                    let Some(project) = self.get("projects", project) else { continue };
                    if default_groups.contains(&group) || row.flag("_gone") {
                        continue;
                    }
                    let name = ["name", "floating_ip_address", "address"]
                        .iter()
                        .map(|f| row.text(f))
                        .find(|it| !it.is_empty());
                    all.insert(Leak {
                        region: region.clone(),
                        project: project.text("name").to_owned(),
                        kind: kind.clone(),
                        id: row.text("id").to_owned(),
                        name: name.unwrap_or_default().to_owned(),
                    });
                }
            }
        }
        all
    }
}
