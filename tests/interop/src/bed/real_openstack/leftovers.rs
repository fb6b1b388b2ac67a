//! What the services have of a project, and Octavia of its own because of it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use super::admin::Admin;

/// Lists of a project's things by service and path; `{project}` is its id. An administrator sees all projects without it.
const LISTS: &[(&str, &str)] = &[
    ("compute", "/servers/detail?all_tenants=1&project_id={project}"),
    ("compute", "/os-server-groups?all_projects=1"),
    ("network", "/v2.0/networks?project_id={project}"),
    ("network", "/v2.0/subnets?project_id={project}"),
    ("network", "/v2.0/ports?project_id={project}"),
    ("network", "/v2.0/routers?project_id={project}"),
    ("network", "/v2.0/floatingips?project_id={project}"),
    ("network", "/v2.0/security-groups?project_id={project}"),
    ("network", "/v2.0/security-group-rules?project_id={project}"),
    ("network", "/v2.0/trunks?project_id={project}"),
    ("block-storage", "/volumes/detail?all_tenants=1&project_id={project}"),
    ("block-storage", "/snapshots/detail?all_tenants=1&project_id={project}"),
    ("load-balancer", "/v2/lbaas/loadbalancers?project_id={project}"),
    ("load-balancer", "/v2/lbaas/listeners?project_id={project}"),
    ("load-balancer", "/v2/lbaas/pools?project_id={project}"),
    ("load-balancer", "/v2/lbaas/healthmonitors?project_id={project}"),
];

/// Octavia's appliances: servers of its own project, and their ports.
const OF_OCTAVIA: &[(&str, &str)] = &[
    ("compute", "/servers/detail?all_tenants=1&project_id={project}"),
    ("network", "/v2.0/ports?project_id={project}"),
    ("network", "/v2.0/security-groups?project_id={project}"),
];

/// The id of a project.
pub async fn project(admin: &Admin, name: &str) -> Result<String> {
    let all = admin.list("identity", &format!("/projects?name={name}")).await?;
    let id = all.first().and_then(|project| project["id"].as_str());
    Ok(id.with_context(|| format!("there is no project {name}"))?.to_owned())
}

/// Everything that a project has, and what Nova holds of its quota, as lines.
pub async fn of(admin: &Admin, tenant: &str) -> Result<BTreeSet<String>> {
    let (id, octavia) = (project(admin, tenant).await?, project(admin, "service").await?);
    let mut found = BTreeSet::new();
    for (lists, project) in [(LISTS, &id), (OF_OCTAVIA, &octavia)] {
        for (service, path) in lists {
            let path = path.replace("{project}", project);
            let all = admin.list(service, &path).await?;
            let kind = path.split('?').next().unwrap_or_default().to_owned();
            let line = |thing: &Value| {
                let text = |field: &str| thing[field].as_str().unwrap_or_default().to_owned();
                format!("{service} {kind} {} {}", text("id"), text("name"))
            };
            found.extend(all.iter().map(line));
        }
    }
    let usage = admin.get("placement", &format!("/usages?project_id={id}")).await?;
    for (class, amount) in usage["usages"].as_object().into_iter().flatten() {
        if amount.as_u64() != Some(0) {
            found.insert(format!("placement allocation {class} {amount}"));
        }
    }
    Ok(found)
}
