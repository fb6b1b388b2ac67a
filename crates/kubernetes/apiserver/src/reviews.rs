//! Kinds that are evaluated instead of stored: reviews of identity and permissions, and tokens.

use ::http::StatusCode;
use bytes::Bytes;
use capstan_builtin as builtin;
use capstan_builtin::decode::Words;
use serde_json::Value;

use crate::auth::{Authenticator, ServiceAccountTokens, review};
use crate::call::Call;
use crate::http::options::WriteKind;
use crate::negotiation;
use crate::ownership;
use crate::registry::Resource;
use crate::status::{Result, Status};
use crate::verbs::Answer;

/// Whether objects of a resource are evaluated and not stored.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
        && resource.custom().is_none()
}

/// Evaluates a review.
pub(crate) async fn create(call: &Call, authenticator: &Authenticator, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let object = call.decode(body, options.field_validation)?;
    // As upstream, every object that is created has owners of its fields, also one that is not stored.
    let object = ownership::update(call, None, object, &call.manager(&options.field_manager)).await?;
    let authorizer = &*call.parts.authorizer;
    let answer = match call.resource().plural.as_str() {
        "tokenreviews" => {
            if let Some(token) = object["spec"]["token"].as_str() {
                authenticator.prepare_token(token).await;
            }
            review::token_review(authenticator, object)?
        }
        "selfsubjectreviews" => {
            review::self_subject_review(&call.parts.env, &call.user, &call.resource().api_version())
        }
        "subjectaccessreviews" => review::subject_access_review(authorizer, object)?,
        "localsubjectaccessreviews" => {
            review::local_subject_access_review(authorizer, call.namespace(), object)?
        }
        "selfsubjectaccessreviews" => review::self_subject_access_review(authorizer, &call.user, object)?,
        "selfsubjectrulesreviews" => review::self_subject_rules_review(authorizer, &call.user, &object)?,
        _ => return Err(Status::no_such_path()),
    };
    Ok(Answer::Plain { code: StatusCode::CREATED, value: answer })
}

/// Issues a token for the ServiceAccount in the path. As upstream, also in a dry run: nothing is stored.
pub(crate) async fn create_token(call: &Call, authenticator: &Authenticator, body: &Bytes) -> Result<Answer> {
    let options = call.query.write_options(WriteKind::Create)?;
    let encoding = negotiation::body(call.content_type.as_deref(), call.endpoint())?;
    let mut request: Value = call.parse(body, encoding)?.value;
    if !request.is_object() {
        return Err(Status::bad_request("the body must be a TokenRequest"));
    }
    call.expect_kind(&mut request, body)?;
    let (group, version, kind) = ("authentication.k8s.io", "v1", "TokenRequest");
    builtin::decode::settle_with(Words::Decoder, group, version, kind, &mut request).map_err(|error| {
        Status::undecodable(error, |why| {
            Status::bad_request(builtin::decode::bad_request(why, version, kind))
        })
    })?;
    ServiceAccountTokens::default_request(&mut request);
    let mut request = ownership::update(call, None, request, &call.manager(&options.field_manager)).await?;
    let tokens = authenticator.tokens();
    tokens.prepare_request(call.namespace(), call.name(), &mut request)?;
    Ok(Answer::Plain { code: StatusCode::CREATED, value: tokens.grant_request(request)? })
}
