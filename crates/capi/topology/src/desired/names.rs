//! Names of the objects of a topology: deterministic, so that a creation whose answer was lost is repeated with the same
//! name.

use capstan_capi_types::core::Cluster;
use capstan_go_template::Template;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The alphabet of Kubernetes' generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;
const LONGEST: usize = 63;

/// Takes the place of Kubernetes' random suffix.
pub(super) fn suffix(cluster: &Cluster, parts: &[&str]) -> String {
    let mut hasher = Sha256::new().chain_update(&cluster.metadata.uid);
    for part in parts {
        hasher = hasher.chain_update([0]).chain_update(part);
    }
    let digest = hasher.finalize();
    digest.iter().take(LENGTH).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// `prefix` and a suffix, truncated to a valid name.
pub fn joined(prefix: &str, suffix: &str) -> String {
    let mut kept = prefix.len().min(LONGEST - LENGTH);
    while !prefix.is_char_boundary(kept) {
        kept -= 1;
    }
    format!("{}{suffix}", &prefix[..kept])
}

/// The name of what takes the place of a template with this content.
pub fn rotated(cluster: &Cluster, prefix: &str, current: &str, content: &Value) -> String {
    joined(prefix, &suffix(cluster, &["rotated", current, &content.to_string()]))
}

/// A name from a naming template of the class. `part` is the topology's part, such as `machineDeployment`, and its name.
pub(super) fn from_template(
    template: &str,
    cluster: &Cluster,
    part: Option<(&str, &str)>,
    suffix: &str,
) -> Result<String, String> {
    let mut data = json!({"cluster": {"name": cluster.metadata.name}, "random": suffix});
    if let Some((part, name)) = part {
        data[part] = json!({"topologyName": name});
    }
    let rendered =
        Template::parse(template).and_then(|template| template.missing_key_is_error().render(&data));
    let name = rendered.map_err(|error| format!("naming template {template:?}: {error}"))?;
    Ok(if name.len() > LONGEST { joined(&name, suffix) } else { name })
}
