//! From a request to a service and back: who calls, which microversion, and the service's shape of errors.

use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;

use crate::cloud::Cloud;
use crate::keystone;
use crate::service::Service;
use crate::wire::{Call, Fail, Reply};
use crate::{cinder, glance, neutron, nova, octavia, placement};

/// Carries a request out.
pub(crate) fn answer(
    cloud: &mut Cloud,
    service: Service,
    request: Request<Bytes>,
    base: String,
) -> Response<Bytes> {
    let request_id = format!("req-{}", cloud.uuid());
    let mut call = Call::new(request, base, request_id);
    let head = call.method == "HEAD";
    let reply = carry_out(cloud, service, &mut call);
    reply.with("x-openstack-request-id", call.request_id.clone()).render(head)
}

fn carry_out(cloud: &mut Cloud, service: Service, call: &mut Call) -> Reply {
    if service == Service::Identity {
        return keystone::handle(cloud, call).unwrap_or_else(|fail| keystone::refuse(cloud, fail));
    }
    if let Some(reply) = open(service, call) {
        return reply;
    }
    let token = call.header("x-auth-token").map(str::to_owned);
    match keystone::tokens::authenticate_cached(cloud, service.kind(), token.as_deref()) {
        Some(caller) => call.caller = caller,
        None => return unauthorized(cloud, service),
    }
    let handled = match service {
        Service::Network => neutron::handle(cloud, call),
        Service::Compute => return nova::handle(cloud, call),
        Service::Image => glance::handle(cloud, call),
        Service::Volume => return cinder::handle(cloud, call),
        Service::LoadBalancer => octavia::handle(cloud, call),
        Service::Placement => return placement::handle(cloud, call),
        Service::Identity => return unauthorized(cloud, service),
    };
    handled.unwrap_or_else(|fail| refuse(service, call, fail))
}

/// Documents that need no token.
fn open(service: Service, call: &Call) -> Option<Reply> {
    match service {
        Service::Network if call.path.is_empty() => {
            let link = json!([{"rel": "self", "href": format!("{}/v2.0/", call.base)}]);
            Some(Reply::ok(json!({"versions": [{"id": "v2.0", "status": "CURRENT", "links": link}]})))
        }
        Service::Compute => nova::versions::open(call),
        Service::Image => glance::versions(call),
        Service::Volume => cinder::versions(call),
        Service::LoadBalancer => octavia::versions(call),
        Service::Placement => placement::versions(call),
        Service::Network | Service::Identity => None,
    }
}

fn unauthorized(cloud: &Cloud, service: Service) -> Reply {
    let text = "The request you have made requires authentication.";
    let body = match service {
        Service::Image => json!({
            "message": "This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.<br /><br />\n\n\n",
            "code": "401 Unauthorized",
            "title": "Unauthorized",
        }),
        _ => json!({"error": {"code": 401, "title": "Unauthorized", "message": text}}),
    };
    Reply::json(401, body).with("www-authenticate", keystone::challenge(cloud))
}

/// A failure in the shape of a service.
pub(crate) fn refuse(service: Service, call: &Call, fail: Fail) -> Reply {
    match service {
        Service::Network => neutron::refuse(fail),
        Service::Compute | Service::Volume => nova::refuse(fail),
        Service::Image => glance::refuse(fail),
        Service::LoadBalancer => octavia::refuse(fail),
        Service::Placement => placement::refuse(call, fail),
        Service::Identity => Reply::json(
            fail.status,
            json!({"error": {"code": fail.status, "message": fail.message, "title": "Error"}}),
        ),
    }
}
