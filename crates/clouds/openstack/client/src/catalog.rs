//! From a service to the URL of its API.

use url::Url;

use crate::config::Interface;
use crate::error::ErrorKind;
use crate::service::Service;
use crate::token::{CatalogEndpoint, Token};

/// Where a service is reached, by type, interface and region.
pub(crate) fn endpoint(
    token: &Token,
    service: Service,
    interface: Interface,
    region: Option<&str>,
) -> Result<Url, ErrorKind> {
    let in_region = |endpoint: &&CatalogEndpoint| {
        region.is_none_or(|region| endpoint.region_id == region || endpoint.region == region)
    };
    let found = service.types().iter().find_map(|kind| {
        let services = token.catalog().iter().filter(|entry| entry.kind == *kind);
        let mut endpoints = services.flat_map(|entry| &entry.endpoints).filter(in_region);
        endpoints.find(|endpoint| endpoint.interface == interface.as_str())
    });
    let Some(found) = found else {
        return Err(ErrorKind::NoEndpoint {
            service,
            interface: interface.as_str(),
            region: region.map(str::to_owned),
            offered: offered(token, service),
        });
    };
    versioned(&found.url, service, token.project_id())
        .ok_or_else(|| ErrorKind::BadEndpoint { service, url: found.url.chars().take(200).collect() })
}

/// What the catalog has of a service, for an error: a wrong region is the most common cause.
fn offered(token: &Token, service: Service) -> Vec<String> {
    let mut offered: Vec<String> = token
        .catalog()
        .iter()
        .filter(|entry| service.types().contains(&entry.kind.as_str()))
        .flat_map(|entry| &entry.endpoints)
        .map(|endpoint| format!("{} in {}", endpoint.interface, endpoint.region_id))
        .collect();
    offered.sort();
    offered.dedup();
    offered.truncate(12);
    offered
}

/// The URL with the version that this client speaks: in place of another version, or behind a path that has none.
/// Cinder wants the project in the path before microversion 3.67.
pub(crate) fn versioned(url: &str, service: Service, project: Option<&str>) -> Option<Url> {
    let mut url = Url::parse(url).ok()?;
    let usable =
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    if !usable || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    let Some(version) = service.version() else {
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        return Some(url);
    };
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let at = segments.iter().rposition(|segment| is_version(segment));
    let mut path: Vec<&str> = segments[..at.unwrap_or(segments.len())].to_vec();
    path.push(version);
    let behind = at.map_or(&[][..], |at| &segments[at + 1..]);
    match service {
        Service::BlockStorage if behind.is_empty() => path.extend(project),
        Service::BlockStorage | Service::Compute => path.extend(behind),
        _ => {}
    }
    let path = format!("/{}", path.join("/"));
    url.set_path(&path);
    Some(url)
}

/// The URL of the version document: what is before a project in the path.
pub(crate) fn version_document(url: &Url) -> Url {
    let mut document = url.clone();
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let end = segments.iter().rposition(|segment| is_version(segment)).map_or(segments.len(), |at| at + 1);
    let path = format!("/{}", segments[..end].join("/"));
    // Nova redirects a version without a slash in some deployments; with one it always answers.
    document.set_path(&format!("{}/", path.trim_end_matches('/')));
    document
}

/// The URL of a service's list of versions: what is before the version in the path.
pub(crate) fn without_version(url: &Url) -> Url {
    let mut root = url.clone();
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let end = segments.iter().rposition(|segment| is_version(segment)).unwrap_or(segments.len());
    let path: String = segments[..end].iter().map(|segment| format!("{segment}/")).collect();
    root.set_path(&format!("/{path}"));
    root
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| {
        number.starts_with(|c: char| c.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_catalogs_get_the_version_that_the_client_speaks() {
        use Service::*;
        let table = [
            (Identity, "https://k.example:5000", "https://k.example:5000/v3"),
            (Identity, "https://k.example/identity/v3/", "https://k.example/identity/v3"),
            (Identity, "https://k.example:5000/v2.0", "https://k.example:5000/v3"),
            (Compute, "https://c.example/v2.1", "https://c.example/v2.1"),
            (Compute, "https://c.example/compute/v2.1/p", "https://c.example/compute/v2.1/p"),
            (Compute, "https://c.example/v2/p", "https://c.example/v2.1/p"),
            (Network, "https://n.example:9696/", "https://n.example:9696/v2.0"),
            (Network, "https://n.example/networking/v2.0", "https://n.example/networking/v2.0"),
            (Image, "https://i.example", "https://i.example/v2"),
            (BlockStorage, "https://b.example/v3/p", "https://b.example/v3/p"),
            (BlockStorage, "https://b.example", "https://b.example/v3/p"),
            (BlockStorage, "https://b.example/v2/p", "https://b.example/v3/p"),
            (LoadBalancer, "https://l.example:9876", "https://l.example:9876/v2"),
            (LoadBalancer, "https://l.example/load-balancer/v2.0", "https://l.example/load-balancer/v2"),
            (Placement, "https://p.example/placement", "https://p.example/placement"),
        ];
        for (service, url, expected) in table {
            assert_eq!(versioned(url, service, Some("p")).unwrap().as_str(), expected, "{service} {url}");
        }
        for bad in ["", "nova", "ftp://c.example/v2.1", "https://user:pw@c.example/v2.1"] {
            assert_eq!(versioned(bad, Compute, None), None, "{bad}");
        }
        let document = |url: &str| version_document(&Url::parse(url).unwrap()).to_string();
        assert_eq!(document("https://c.example/v2.1/p"), "https://c.example/v2.1/");
        assert_eq!(document("https://p.example/placement"), "https://p.example/placement/");
    }
}
