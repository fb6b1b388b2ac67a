//! Verbs on typed, dynamic and partial objects.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Discovery, ResourceExt as _};
use serde_json::json;

use crate::{NAMESPACE, TIMEOUT, config_map, config_maps};

/// The status that an error is.
pub fn code(outcome: kube::Result<impl Sized>) -> Result<(u16, String)> {
    match outcome {
        Ok(_) => Ok((200, String::new())),
        Err(kube::Error::Api(status)) => Ok((status.code, status.reason.clone())),
        Err(other) => Err(other.into()),
    }
}

pub async fn the_server_says_which_kubernetes_it_serves_and_which_kinds(client: &Client) -> Result<()> {
    let version = client.apiserver_version().await?;
    ensure!(version.major == "1" && version.git_version.starts_with("v1."), "{version:?}");
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let lease = discovery.resolve_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
    let (resource, capabilities) = lease.context("no Lease")?;
    ensure!(resource.plural == "leases" && capabilities.supports_operation("watch"), "{resource:?}");
    Ok(())
}

pub async fn typed_objects_are_created_read_replaced_patched_listed_and_deleted(
    client: &Client,
) -> Result<()> {
    let maps = config_maps(client);
    let made = maps.create(&PostParams::default(), &config_map("typed", "1")?).await?;
    ensure!(made.uid().is_some() && made.creation_timestamp().is_some());
    let mut read = maps.get("typed").await?;
    read.data.get_or_insert_default().insert("b".into(), "2".into());
    let replaced = maps.replace("typed", &PostParams::default(), &read).await?;
    ensure!(replaced.data.as_ref().is_some_and(|data| data.len() == 2), "{replaced:?}");
    let stale = code(maps.replace("typed", &PostParams::default(), &read).await)?;
    ensure!(stale == (409, "Conflict".into()), "{stale:?}");
    let params = PatchParams::default();
    let merged = maps.patch("typed", &params, &Patch::Merge(json!({"data": {"a": null, "c": "3"}}))).await?;
    ensure!(json!(merged.data) == json!({"b": "2", "c": "3"}), "{merged:?}");
    let strategic = Patch::Strategic(json!({"metadata": {"labels": {"kept": "yes"}}}));
    let labelled = maps.patch("typed", &params, &strategic).await?;
    ensure!(labelled.labels().len() == 2, "{labelled:?}");
    let listed = maps.list(&ListParams::default().labels("suite=kube-rs,kept")).await?;
    ensure!(listed.items.len() == 1 && listed.items[0].name_any() == "typed", "{listed:?}");
    let foreign = Preconditions { uid: Some("another".into()), resource_version: None };
    let refused = maps.delete("typed", &DeleteParams::default().preconditions(foreign)).await;
    ensure!(code(refused.map(drop))? == (409, "Conflict".into()));
    maps.delete("typed", &DeleteParams::default()).await?;
    ensure!(maps.get_opt("typed").await?.is_none());
    Ok(())
}

pub async fn mistakes_are_statuses_with_reason_and_code(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    let params = PostParams::default();
    ensure!(code(maps.get("absent").await)? == (404, "NotFound".into()));
    ensure!(code(maps.create(&params, &config_map("Not_A_Name", "")?).await)? == (422, "Invalid".into()));
    maps.create(&params, &config_map("twice", "")?).await?;
    ensure!(code(maps.create(&params, &config_map("twice", "")?).await)? == (409, "AlreadyExists".into()));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &config_map("dry", "")?).await?;
    ensure!(maps.get_opt("dry").await?.is_none(), "a dry run was stored");
    maps.delete("twice", &DeleteParams::default()).await?;
    Ok(())
}

pub async fn long_lists_come_in_chunks(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    for number in 0..25 {
        maps.create(&PostParams::default(), &config_map(&format!("chunk-{number:02}"), "")?).await?;
    }
    let mut params = ListParams::default().labels("suite=kube-rs").limit(10);
    let mut seen = Vec::new();
    loop {
        let page = maps.list(&params).await?;
        ensure!(page.items.len() <= 10);
        seen.extend(page.items.iter().map(ConfigMap::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    let wanted: Vec<_> = (0..25).map(|number| format!("chunk-{number:02}")).collect();
    ensure!(seen == wanted, "{seen:?}");
    let selected = ListParams::default().labels("suite=kube-rs");
    maps.delete_collection(&DeleteParams::default(), &selected).await?;
    ensure!(maps.list(&selected).await?.items.is_empty());
    Ok(())
}

pub async fn metadata_alone_can_be_read_and_listed(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    let root = maps.get_metadata("kube-root-ca.crt").await?;
    ensure!(root.metadata.uid.is_some(), "{root:?}");
    let all = maps.list_metadata(&ListParams::default()).await?;
    ensure!(all.items.iter().any(|item| item.name_any() == "kube-root-ca.crt"), "{all:?}");
    Ok(())
}

/// A definition with a default, a status and a list that is merged by name.
fn gadgets() -> Result<CustomResourceDefinition> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": "gadgets.kube-rs.example.com"},
        "spec": {
            "group": "kube-rs.example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 3},
                        "parts": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"}, "weight": {"type": "integer"}}},
                            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                }}},
            }],
        },
    }))?)
}

/// Objects of that definition.
pub fn gadgets_api(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("kube-rs.example.com", "v1", "Gadget");
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk_with_plural(&kind, "gadgets"))
}

pub async fn dynamic_objects_of_a_fresh_definition_have_a_status_of_their_own(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &gadgets()?).await?;
    let established = await_condition(definitions, "gadgets.kube-rs.example.com", is_crd_established());
    tokio::time::timeout(TIMEOUT, established).await.context("the definition was never established")??;
    let gadgets = gadgets_api(client);
    let given: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "kube-rs.example.com/v1", "kind": "Gadget", "metadata": {"name": "one"},
        "spec": {"unknown": 1}, "status": {"phase": "Lost"},
    }))?;
    let made = gadgets.create(&PostParams::default(), &given).await?;
    ensure!(made.data == json!({"spec": {"size": 3}}), "{made:?}");
    let both = Patch::Merge(json!({"spec": {"size": 9}, "status": {"phase": "Ready"}}));
    let updated = gadgets.patch_status("one", &PatchParams::default(), &both).await?;
    ensure!(updated.data == json!({"spec": {"size": 3}, "status": {"phase": "Ready"}}), "{updated:?}");
    let wrong = Patch::Merge(json!({"spec": {"size": "big"}}));
    ensure!(code(gadgets.patch("one", &PatchParams::default(), &wrong).await)? == (422, "Invalid".into()));
    Ok(())
}
