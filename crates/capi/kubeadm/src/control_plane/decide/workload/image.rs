//! Images of containers in DaemonSets and Deployments.

use serde_json::{Value, json};

fn containers(found: &Value) -> &[Value] {
    let containers = found.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    containers.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn container<'a>(found: &'a Value, name: &str) -> Option<&'a Value> {
    containers(found).iter().find(|container| container["name"] == name)
}

/// The patch that sets a container's image; `None` if it is set. Merge patches replace lists as a whole, so the patch
/// is guarded by the resourceVersion.
pub(super) fn with_image(found: &Value, name: &str, image: &Image<'_>) -> Option<Value> {
    let image = image.to_string();
    if container(found, name)?["image"] == image {
        return None;
    }
    let mut all = containers(found).to_vec();
    for container in all.iter_mut().filter(|container| container["name"] == name) {
        container["image"] = image.clone().into();
    }
    Some(json!({
        "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"containers": all}}},
    }))
}

/// A parsed image reference. The digest is dropped: it would pin the old image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Image<'a> {
    /// Registry and path.
    pub repository: &'a str,
    /// Last part of the path.
    pub name: &'a str,
    pub tag: Option<&'a str>,
}

impl<'a> Image<'a> {
    pub fn parse(text: &'a str) -> Self {
        let text = text.split_once('@').map_or(text, |(text, _)| text);
        let (repository, rest) = text.rsplit_once('/').unwrap_or(("", text));
        let (name, tag) = match rest.split_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (rest, None),
        };
        Self { repository, name, tag }
    }
}

impl std::fmt::Display for Image<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.repository.is_empty() {
            write!(f, "{}/", self.repository)?;
        }
        f.write_str(self.name)?;
        self.tag.map_or(Ok(()), |tag| write!(f, ":{tag}"))
    }
}
