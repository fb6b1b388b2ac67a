//! The catalog: endpoints of all services in all regions.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::service::Service;
use crate::table::{Fields as _, object};

/// The catalog as tokens carry it.
pub(crate) fn catalog(cloud: &Cloud) -> Value {
    cloud
        .all("services")
        .map(|service| {
            let id = service.text("id");
            let endpoints: Vec<Value> = endpoints(cloud)
                .into_iter()
                .filter(|(of, _)| of == id)
                .map(|(_, mut endpoint)| {
                    for field in ["service_id", "enabled", "links"] {
                        endpoint.remove(field);
                    }
                    Value::Object(endpoint)
                })
                .collect();
            json!({"endpoints": endpoints, "id": id, "type": service["type"], "name": service["name"]})
        })
        .collect()
}

/// Endpoints with the id of their service. URLs are those where the services listen now.
pub(super) fn endpoints(cloud: &Cloud) -> Vec<(String, crate::table::Object)> {
    cloud
        .all("endpoints")
        .filter_map(|endpoint| {
            let kind = cloud.get("services", endpoint.text("service_id"))?.text("type").to_owned();
            let service = Service::ALL.into_iter().find(|service| service.kind() == kind)?;
            let url = cloud.endpoints.url(endpoint.text("region"), service);
            let shown = object(json!({
                "id": endpoint["id"],
                "interface": endpoint["interface"],
                "region_id": endpoint["region"],
                "region": endpoint["region"],
                "service_id": endpoint["service_id"],
                "url": format!("{url}{}", service.suffix()),
                "enabled": true,
            }));
            Some((endpoint.text("service_id").to_owned(), shown))
        })
        .collect()
}
