//! Loads recorded objects into the store of the copy unchanged: with uids, owners, status and times.

use std::collections::BTreeSet;

use bytes::Bytes;
use capstan_apiserver::Digest;
use capstan_controller::KindName;
use capstan_object::Scope;
use capstan_store::{Expect, Stamped, Store, Write};
use serde_json::{Map, Value};

/// Every server creates this one itself.
const SERVER_CONFIG_MAP: &str = "kube-root-ca.crt";

pub(crate) fn bucket(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

pub(crate) fn namespaces(objects: &[(KindName, Value)]) -> BTreeSet<String> {
    let namespaced = objects.iter().filter(|(kind, _)| kind.scope == Scope::Namespaced);
    namespaced.filter_map(|(_, object)| object["metadata"]["namespace"].as_str()).map(str::to_owned).collect()
}

/// Writes objects to a store in one transaction.
pub(crate) async fn load(store: &Store<Digest>, objects: &[(KindName, Value)]) -> Result<(), String> {
    let uids: BTreeSet<&str> =
        objects.iter().filter_map(|(_, object)| object["metadata"]["uid"].as_str()).collect();
    let writes: Vec<Write> = objects.iter().filter_map(|(kind, object)| write(kind, object, &uids)).collect();
    if writes.is_empty() {
        return Ok(());
    }
    store.write_all(writes).await.map(drop).map_err(|error| error.to_string())
}

fn write(kind: &KindName, object: &Value, uids: &BTreeSet<&str>) -> Option<Write> {
    let mut object = object.as_object()?.clone();
    let mut meta = object.remove("metadata")?.as_object()?.clone();
    let name = meta.get("name")?.as_str().filter(|name| *name != SERVER_CONFIG_MAP)?.to_owned();
    meta.remove("resourceVersion");
    // The garbage collector would delete objects whose owners were not copied.
    if let Some(Value::Array(owners)) = meta.get_mut("ownerReferences") {
        owners.retain(|owner| owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)));
    }
    let key = match meta.get("namespace").and_then(Value::as_str).filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    };
    object.insert("apiVersion".to_owned(), kind.api_version().into());
    object.insert("kind".to_owned(), kind.kind.as_ref().into());
    Some(Write::Put {
        bucket: bucket(&kind.group, &kind.plural).into(),
        key: key.into(),
        value: stamped(&meta, &object),
        expect: Expect::Any,
    })
}

/// Serializes the object with a gap for its resource version at the front.
fn stamped(meta: &Map<String, Value>, rest: &Map<String, Value>) -> Stamped {
    let inner = |map: &Map<String, Value>| {
        let text = Value::Object(map.clone()).to_string();
        text.get(1..text.len() - 1).unwrap_or_default().to_owned()
    };
    Stamped {
        head: Bytes::from_static(b"{\"metadata\":{\"resourceVersion\":\""),
        tail: Bytes::from(format!("\",{}}},{}}}", inner(meta), inner(rest))),
        mark: 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_stored_unchanged_except_its_version_and_missing_owners() {
        let kind = KindName::namespaced("g", "v1", "Thing", "things");
        let owner = |uid: &str| json!({"uid": uid});
        let object = json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "ownerReferences": [owner("here"), owner("elsewhere")]},
            "spec": {"x": 1}, "status": {"y": "}"},
        });
        let Some(Write::Put { bucket, key, value, .. }) = write(&kind, &object, &BTreeSet::from(["here"]))
        else {
            panic!("nothing is written");
        };
        assert_eq!((&*bucket, &*key), ("g/things", "n/a"));
        let text = [&value.head[..], b"12", &value.tail].concat();
        let mut wanted = object.clone();
        wanted["apiVersion"] = "g/v1".into();
        wanted["kind"] = "Thing".into();
        wanted["metadata"]["resourceVersion"] = "12".into();
        wanted["metadata"]["ownerReferences"] = json!([owner("here")]);
        assert_eq!(serde_json::from_slice::<Value>(&text).expect("JSON"), wanted);
    }
}
