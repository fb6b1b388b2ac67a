//! Names of headers that many requests or responses have. Each is parsed once.

use http::HeaderName;

pub(crate) static AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
pub(crate) static FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
pub(crate) static PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
pub(crate) static IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
pub(crate) static IMPERSONATE_UID: HeaderName = HeaderName::from_static("impersonate-uid");
pub(crate) static IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");
