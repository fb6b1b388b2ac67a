//! Manifests: objects, and the texts that ConfigMaps and a Secret hold them in.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Parts;

/// Most bytes of a part. A ConfigMap holds 1 MiB with its metadata.
const PART: usize = 900_000;
/// Most bytes of all parts.
const MOST: usize = 8 * 1024 * 1024;

/// Objects to apply to a workload cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifests {
    objects: Vec<Value>,
    /// Without Secrets.
    open: Vec<String>,
    secret: Option<String>,
}

impl Manifests {
    /// Reads YAML documents.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST {
            return Err(format!("the manifests have {} bytes: at most {MOST} are used", text.len()));
        }
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
        let objects: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
        if objects.is_empty() {
            return Err("it has no objects".to_owned());
        }
        let named = |object: &Value| {
            ["/kind", "/apiVersion", "/metadata/name"]
                .iter()
                .all(|path| object.pointer(path).is_some_and(Value::is_string))
        };
        if let Some(at) = objects.iter().position(|object| !named(object)) {
            return Err(format!("object {} has no apiVersion, no kind or no name", at + 1));
        }
        let (secrets, open): (Vec<&Value>, Vec<&Value>) =
            objects.iter().partition(|object| object["kind"] == "Secret");
        let plain = secrets.is_empty() && text.len() <= PART;
        let open = if plain { vec![text.to_owned()] } else { split(&open, "ConfigMap")? };
        let mut secrets = split(&secrets, "Secret")?;
        if secrets.len() > 1 {
            return Err(format!("the Secrets have more than {PART} bytes: a Secret holds no more"));
        }
        // The first ConfigMap is there in any case: it records what the manifests are made from.
        let open = if open.is_empty() { vec![String::new()] } else { open };
        Ok(Self { secret: secrets.pop(), open, objects })
    }

    /// The texts, in the order of [`Parts::of`].
    pub fn texts(&self) -> Vec<&str> {
        self.open.iter().chain(&self.secret).map(String::as_str).collect()
    }

    pub fn parts(&self) -> Parts {
        Parts { config_maps: self.open.len(), secret: self.secret.is_some() }
    }

    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The image of the first container of a workload.
    pub fn image(&self, kind: &str, name: &str) -> Option<&str> {
        let own = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let workload = self.objects.iter().find(own)?;
        workload.pointer("/spec/template/spec/containers/0/image")?.as_str()
    }

    /// The objects that are not among others.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        let taken: BTreeSet<_> = others.objects.iter().map(identity).collect();
        let objects = self.objects.iter().filter(|object| !taken.contains(&identity(object)));
        Self { objects: objects.cloned().collect(), ..Self::default() }
    }
}

fn identity(object: &Value) -> [Option<&str>; 3] {
    let meta = &object["metadata"];
    [object["kind"].as_str(), meta["namespace"].as_str(), meta["name"].as_str()]
}

/// Texts that are small enough, what others need first.
fn split(objects: &[&Value], holder: &str) -> Result<Vec<String>, String> {
    let needed =
        |object: &&Value| matches!(object["kind"].as_str(), Some("Namespace" | "CustomResourceDefinition"));
    let (first, rest): (Vec<&Value>, Vec<&Value>) = objects.iter().copied().partition(needed);
    let mut parts: Vec<String> = Vec::new();
    for object in first.into_iter().chain(rest) {
        // JSON is YAML: nothing has to be quoted in another way.
        let text = format!("---\n{object}\n");
        if text.len() > PART {
            let [kind, _, name] = identity(object).map(Option::unwrap_or_default);
            return Err(format!("{kind} {name} has {} bytes: a {holder} holds {PART}", text.len()));
        }
        match parts.last_mut() {
            Some(part) if part.len() + text.len() <= PART => part.push_str(&text),
            _ => parts.push(text),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_objects_with_names() {
        assert!(Manifests::parse("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n").is_ok());
        for wrong in ["", "---\n", "a: b\n", "{", "apiVersion: v1\nkind: Namespace\n"] {
            assert!(Manifests::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_one_config_map_cannot_hold_is_split_with_definitions_first() {
        let object = |kind: &str, size: usize| {
            format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\ndata: {}\n---\n", "x".repeat(size))
        };
        let text = object("ConfigMap", 500_000)
            + &object("CustomResourceDefinition", 500_000)
            + &object("Namespace", 10);
        let manifests = Manifests::parse(&text).expect("manifests");
        let kinds = |part: &str| -> Vec<String> {
            let objects: Vec<Value> = serde_saphyr::from_multiple(part).expect("YAML");
            objects.iter().filter_map(|it| it["kind"].as_str().map(str::to_owned)).collect()
        };
        let parts: Vec<_> = manifests.texts().into_iter().map(kinds).collect();
        assert_eq!(parts, [vec!["CustomResourceDefinition", "Namespace"], vec!["ConfigMap"]]);
        let error = Manifests::parse(&object("ConfigMap", 1_000_000)).expect_err("too large");
        assert!(error.starts_with("ConfigMap a has 1000"), "{error}");
    }

    #[test]
    fn secrets_are_in_a_secret() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: ca}\nstringData: {key: hidden}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
        let manifests = Manifests::parse(text).expect("manifests");
        assert_eq!(manifests.parts(), Parts { config_maps: 1, secret: true });
        let texts = manifests.texts();
        assert!(!texts[0].contains("hidden") && texts[1].contains("hidden"), "{texts:?}");
        // Secrets alone have a ConfigMap that records them.
        let only =
            Manifests::parse("apiVersion: v1\nkind: Secret\nmetadata: {name: ca}\n").expect("manifests");
        assert_eq!(only.parts(), Parts { config_maps: 1, secret: true });
    }

    #[test]
    fn objects_of_the_installation_are_no_part_of_its_check() {
        let own = "apiVersion: v1\nkind: Secret\nmetadata: {name: ca, namespace: n}\n---\n";
        let check = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: check, namespace: n}\n";
        let both = Manifests::parse(&format!("{own}{check}")).expect("manifests");
        let left = both.without(&Manifests::parse(own).expect("manifests"));
        assert_eq!(left.objects().len(), 1);
        assert_eq!(left.objects()[0]["metadata"]["name"], "check");
    }
}
