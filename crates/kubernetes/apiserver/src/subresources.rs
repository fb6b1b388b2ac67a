//! Subresources: `status` and similar ones are views of the object; `scale`, `token` and `eviction` have a body of
//! their own; `portforward` upgrades the connection.

use std::sync::Arc;

use ::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::call::Call;
use crate::http::options::{DeleteOptions, WriteKind};
use crate::object::Meta;
use crate::pipeline::{self, Change, Step};
use crate::registry::Subresource;
use crate::route::Verb;
use crate::status::{Result, Status};
use crate::verbs::{self, Answer};
use crate::{portforward, reviews, scale};

pub(crate) async fn serve(call: &Arc<Call>, subresource: &Subresource, body: &Bytes) -> Result<Answer> {
    match (subresource.name.as_str(), call.verb()) {
        ("scale", _) => scale::serve(call, subresource, body).await,
        ("token", Verb::Create) => reviews::create_token(call, &call.parts.authenticator, body).await,
        ("eviction", Verb::Create) => evict(call, body).await,
        ("binding", Verb::Create) => bind(call, body).await,
        ("portforward", _) => portforward::serve(call).await,
        // The Pod backend only supports port forwarding so far.
        (what @ ("attach" | "exec" | "log" | "proxy"), _) => {
            let exists = call.parts.store.get(&call.resource().bucket, &call.key()).is_some();
            Err(if exists { portforward::runs_no_pods(what) } else { call.not_found() })
        }
        (_, Verb::Get) => verbs::read::get(call).await,
        (_, Verb::Update) => verbs::update::update(call, body).await,
        (_, Verb::Patch) => verbs::patch::patch(call, body).await,
        _ => Err(Status::no_such_path()),
    }
}

/// Deletes a Pod if its disruption budgets allow it.
async fn evict(call: &Arc<Call>, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let eviction =
        call.parse(body, crate::negotiation::body(call.content_type.as_deref(), call.endpoint())?)?.value;
    if eviction.name() != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let entry = call.parts.store.get(&call.resource().bucket, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.load(&entry).await?;
    crate::disruption::permit(call, &pod, options.dry_run).await?;
    let mut delete = match eviction.get("deleteOptions") {
        Some(Value::Null) | None => DeleteOptions::default(),
        Some(given) => DeleteOptions::from_body(given)?,
    };
    delete.dry_run |= options.dry_run;
    verbs::delete::delete_object(call, &call.key(), &delete).await?;
    Ok(Answer::Plain {
        code: StatusCode::CREATED,
        value: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    })
}

/// Binds a Pod to a node.
async fn bind(call: &Arc<Call>, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let binding =
        call.parse(body, crate::negotiation::body(call.content_type.as_deref(), call.endpoint())?)?.value;
    if binding.name() != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    if node.is_empty() {
        return Err(Status::bad_request("target.name: Required value: name the node the pod is bound to"));
    }
    let now = call.parts.env.now_rfc3339();
    let change = Bind { node, now };
    pipeline::change(call, &change, &options, WriteKind::Update).await?;
    Ok(Answer::Plain {
        code: StatusCode::CREATED,
        value: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    })
}

struct Bind {
    node: String,
    now: String,
}

impl Change for Bind {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let bound = current["spec"]["nodeName"].as_str().unwrap_or_default();
        if !bound.is_empty() {
            return Err(call.conflict(format!("pod {} is already assigned to node {bound:?}", call.name())));
        }
        let mut pod = current.clone();
        pod["spec"]["nodeName"] = self.node.as_str().into();
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": self.now});
        let conditions = &mut pod["status"]["conditions"];
        match conditions.as_array_mut() {
            Some(all) => {
                all.retain(|c| c["type"] != "PodScheduled");
                all.push(scheduled);
            }
            None => *conditions = json!([scheduled]),
        }
        Ok(Step::Edit(pod))
    }
}
