//! Take-over of clusters from CAPC or another management cluster: the provider's part of `capstan adopt`.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_cloudstack_client::{Clock, ReadOnly, RefusedCommands, Transport, Trust};
use capstan_controller::Runtime;
use capstan_object::{Key, ObjectMeta};
use capstan_provider_kit::{Adoption, CredentialRef, Observer};
use serde_json::Value;

use crate::annotation;
use crate::clouds::{Clouds, Connect};
use crate::isolated_network::Made;
use crate::plugin::CloudStack;

/// The Secret that v1beta1 of CAPC takes by convention.
const GLOBAL_SECRET: &str = "global";
const CLUSTER: &str = "CloudStackCluster";
const NETWORK: &str = "CloudStackIsolatedNetwork";

impl Adoption for CloudStack {
    fn cluster_kind(&self) -> &'static str {
        CLUSTER
    }

    fn credentials(&self, objects: &[Value]) -> Vec<CredentialRef> {
        let clusters = objects.iter().filter(|object| object["kind"] == CLUSTER);
        clusters.flat_map(credentials).collect()
    }

    /// The tags of a cluster in CloudStack contain the uid that its CloudStackCluster had when they were created.
    fn record(&self, objects: &mut [Value]) {
        let uids = former_uids(objects);
        for network in objects.iter_mut().filter(|object| object["kind"] == NETWORK) {
            record(network, &uids);
        }
    }

    fn observer(&self) -> Box<dyn Observer> {
        let refused = RefusedCommands::default();
        let connect = ReadOnlyConnect { inner: self.clouds().connect(), refused: refused.clone() };
        Box::new(ReadOnlyControllers { clouds: Clouds::new(Arc::new(connect)), refused })
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The Secrets of the failure domains of a CloudStackCluster.
fn credentials(cluster: &Value) -> Vec<CredentialRef> {
    let (name, namespace) = (text(cluster, "/metadata/name"), text(cluster, "/metadata/namespace"));
    let reference =
        |field: String, secret: Key| CredentialRef { object: format!("{CLUSTER}/{name}"), field, secret };
    let list = |field: &str| cluster["spec"][field].as_array().cloned().unwrap_or_default();
    let domains = list("failureDomains").into_iter().enumerate().map(|(number, domain)| {
        let place = Some(text(&domain, "/acsEndpoint/namespace")).filter(|place| !place.is_empty());
        let secret = Key::new(place.unwrap_or(namespace), text(&domain, "/acsEndpoint/name"));
        reference(format!("spec.failureDomains[{number}].acsEndpoint"), secret)
    });
    let zones = list("zones");
    let zones = zones.first().map(|_| reference("spec.zones".to_owned(), Key::new(namespace, GLOBAL_SECRET)));
    domains.chain(zones).collect()
}

/// Uids that the CloudStackCluster has in the source. Exports without uids still have them in owner references.
fn former_uids(objects: &[Value]) -> BTreeSet<String> {
    let own = objects.iter().filter(|object| object["kind"] == CLUSTER);
    let own = own.map(|object| text(object, "/metadata/uid"));
    let owners = objects.iter().flat_map(|object| {
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.filter(|owner| owner["kind"] == CLUSTER).map(|owner| text(owner, "/uid"))
    });
    own.chain(owners).filter(|uid| !uid.is_empty()).map(str::to_owned).collect()
}

fn record(network: &mut Value, uids: &BTreeSet<String>) {
    let mut meta = ObjectMeta::default();
    if let Some(known) = network["metadata"]["annotations"][annotation::MADE].as_str() {
        meta.annotations.insert(annotation::MADE.to_owned(), known.to_owned());
    }
    let mut made = Made::of(&meta);
    made.clusters.extend(uids.iter().cloned());
    // A network that was set up comes with everything; of one that was not, the rest is still to be created.
    let complete = |pointer: &str| !text(network, pointer).is_empty();
    made.taken_over |= complete("/spec/id") && complete("/spec/controlPlaneEndpoint/host");
    made.put(&mut meta);
    if let Some(text) = meta.annotations.remove(annotation::MADE) {
        network["metadata"]["annotations"][annotation::MADE] = text.into();
    }
}

struct ReadOnlyControllers {
    clouds: Clouds,
    refused: RefusedCommands,
}

impl Observer for ReadOnlyControllers {
    fn add_controllers(&self, runtime: &mut Runtime) {
        crate::add_controllers(runtime, &self.clouds);
    }

    fn refused(&self) -> Vec<String> {
        self.refused.all()
    }
}

/// Reaches servers as another does, and only reads there.
struct ReadOnlyConnect {
    inner: Arc<dyn Connect>,
    refused: RefusedCommands,
}

impl Connect for ReadOnlyConnect {
    fn transport(&self, url: &str, trust: Trust) -> Result<Arc<dyn Transport>, String> {
        let inner = self.inner.transport(url, trust)?;
        Ok(Arc::new(ReadOnly::new(inner, self.refused.clone())))
    }

    fn clock(&self) -> Clock {
        self.inner.clock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster() -> Value {
        json!({"kind": CLUSTER, "metadata": {"name": "c", "namespace": "n", "uid": "old"}, "spec": {"failureDomains": [
            {"name": "a", "acsEndpoint": {"name": "keys", "namespace": "elsewhere"}},
            {"name": "b", "acsEndpoint": {"name": "more"}},
        ]}})
    }

    fn network(spec: Value) -> Value {
        let owner = json!({"kind": CLUSTER, "name": "c", "uid": "older"});
        json!({"kind": NETWORK, "metadata": {"name": "net", "ownerReferences": [owner]}, "spec": spec})
    }

    fn made(object: &Value) -> Made {
        let text = object["metadata"]["annotations"][annotation::MADE].as_str().expect("a record");
        serde_json::from_str(text).expect("a record")
    }

    #[test]
    fn credentials_are_those_of_the_failure_domains() {
        let found = CloudStack::default().credentials(&[cluster()]);
        let found: Vec<String> =
            found.iter().map(|it| format!("{} {} {}", it.object, it.field, it.secret)).collect();
        assert_eq!(
            found,
            [
                "CloudStackCluster/c spec.failureDomains[0].acsEndpoint elsewhere/keys",
                "CloudStackCluster/c spec.failureDomains[1].acsEndpoint n/more",
            ]
        );
        let old =
            json!({"kind": CLUSTER, "metadata": {"name": "c", "namespace": "n"}, "spec": {"zones": [{}]}});
        assert_eq!(CloudStack::default().credentials(&[old])[0].secret, Key::new("n", "global"));
    }

    #[test]
    fn former_uids_are_recorded_on_networks() {
        let complete = json!({"id": "1", "controlPlaneEndpoint": {"host": "10.0.0.1"}});
        let mut objects = [cluster(), network(complete), network(json!({"name": "x"}))];
        CloudStack::default().record(&mut objects);
        let uids: BTreeSet<String> = ["old".to_owned(), "older".to_owned()].into();
        assert_eq!(made(&objects[1]), Made { clusters: uids.clone(), taken_over: true, ..Made::default() });
        assert_eq!(made(&objects[2]), Made { clusters: uids, ..Made::default() }, "it is not set up yet");
    }

    #[test]
    fn what_a_network_remembers_is_kept() {
        let mut before = network(json!({"id": "1", "controlPlaneEndpoint": {"host": "10.0.0.1"}}));
        before["metadata"]["annotations"][annotation::MADE] = r#"{"clusters":["first"],"rule":"7"}"#.into();
        let mut objects = [cluster(), before];
        CloudStack::default().record(&mut objects);
        let made = made(&objects[1]);
        assert_eq!((made.rule.as_deref(), made.clusters.len(), made.taken_over), (Some("7"), 3, true));
    }
}
