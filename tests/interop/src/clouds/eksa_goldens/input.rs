//! An input: manifests of a cluster, as our API takes or refuses them, and the objects that we generate from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use capstan_capi_types::admission::{Features, Rules};
use capstan_lifecycle::admission;
use capstan_lifecycle::generate::{Manifests, generate};
use capstan_lifecycle::release::Releases;
use capstan_lifecycle::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};
use capstan_object::{Object, to_value};
use serde_json::Value;

use super::shapes;

/// Refused in every input that has it, and removed to compare the rest.
const EXTERNAL_ETCD: (&str, &str) = ("spec.externalEtcdConfiguration", "externalEtcdConfiguration");
/// The inputs are of EKS Anywhere's command line: their clusters manage themselves. Ours are managed by the server.
const MANAGEMENT_CLUSTER: &str = "management";

/// The manifests of a cluster.
#[derive(Debug, Clone)]
pub struct Input {
    documents: Vec<Value>,
}

/// The objects of the control plane and those of workers.
#[derive(Debug, Clone)]
pub struct Objects {
    pub control_plane: Vec<Value>,
    pub workers: Vec<Value>,
}

impl Input {
    /// Reads manifests, sets fields, and adds the defaults of our admission.
    pub fn read(text: &str, set: &BTreeMap<String, Value>) -> Result<Self> {
        let mut input = Self { documents: shapes::documents(text)? };
        for (place, value) in set {
            input.set(place, value).with_context(|| place.clone())?;
        }
        let cluster = input.cluster_mut()?;
        cluster["spec"]["managementCluster"]["name"] = MANAGEMENT_CLUSTER.into();
        for document in &mut input.documents {
            let rules = rules(document)?;
            let unknown = unknown_fields(document)?;
            ensure!(unknown.is_empty(), "our API does not know {}", unknown.join(", "));
            (rules.default)(document, None)?;
        }
        Ok(input)
    }

    fn set(&mut self, place: &str, value: &Value) -> Result<()> {
        let (object, pointer) = place.split_once('/').context("no JSON pointer")?;
        let (kind, name) = match object.split_once('[') {
            Some((kind, name)) => (kind, Some(name.trim_end_matches(']'))),
            None => (object, None),
        };
        let is_meant = |document: &&mut Value| {
            document["kind"] == kind && name.is_none_or(|name| document["metadata"]["name"] == name)
        };
        let document = self.documents.iter_mut().find(is_meant).context("no such object")?;
        let (parent, last) = pointer.rsplit_once('/').context("no field")?;
        let parent = document.pointer_mut(&format!("/{parent}")).context("no such place")?;
        match (parent, value) {
            (Value::Object(fields), Value::Null) => {
                fields.remove(last);
            }
            (Value::Object(fields), value) => {
                fields.insert(last.to_owned(), value.clone());
            }
            (Value::Array(items), value) => {
                let at: usize = last.parse().context("no index")?;
                ensure!(at <= items.len(), "only {} items", items.len());
                match items.get_mut(at) {
                    Some(item) => *item = value.clone(),
                    None => items.push(value.clone()),
                }
            }
            _ => return Err(anyhow!("neither an object nor a list")),
        }
        Ok(())
    }

    fn cluster_mut(&mut self) -> Result<&mut Value> {
        let found = self.documents.iter_mut().find(|document| document["kind"] == Cluster::KIND.kind);
        found.context("no Cluster")
    }

    fn typed<T: Object>(&self) -> Result<Vec<T>> {
        let own = self.documents.iter().filter(|document| document["kind"] == T::KIND.kind);
        own.map(|document| Ok(T::deserialize(document)?)).collect()
    }

    fn cluster(&self) -> Result<Cluster> {
        self.typed::<Cluster>()?.pop().context("no Cluster")
    }

    /// Why our API refuses the input: fields with messages. Configs that the cluster does not use are left out.
    pub fn refusals(&self) -> Result<BTreeMap<String, String>> {
        let cluster = self.cluster()?;
        let used: BTreeSet<&str> = cluster.machine_configs();
        let mut refusals = BTreeMap::new();
        for document in &self.documents {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            if document["kind"] == CloudStackMachineConfig::KIND.kind && !used.contains(name) {
                continue;
            }
            for error in (rules(document)?.validate)(document, None, &Features::default())? {
                refusals.insert(error.field.clone(), error.to_string());
            }
        }
        Ok(refusals)
    }

    /// Removes external etcd. Returns the field, if it was there.
    pub fn without_external_etcd(&mut self) -> Result<Option<&'static str>> {
        let spec = self.cluster_mut()?["spec"].as_object_mut().context("no spec")?;
        Ok(spec.remove(EXTERNAL_ETCD.1).map(|_| EXTERNAL_ETCD.0))
    }

    /// The objects that we generate.
    pub fn generate(&self, releases: &Releases) -> Result<Objects> {
        let cluster = self.cluster()?;
        let datacenter = self.typed::<CloudStackDatacenterConfig>()?.pop().context("no datacenter")?;
        let configs = self.typed::<CloudStackMachineConfig>()?;
        let machine_configs =
            configs.into_iter().map(|config| (config.metadata.name.clone(), Arc::new(config))).collect();
        let manifests = Manifests {
            cluster: &cluster,
            datacenter: &datacenter,
            machine_configs: &machine_configs,
            releases,
        };
        let all = generate(&manifests).map_err(|why| anyhow!(why))?;
        let mut workers = Vec::new();
        for group in &all.groups {
            workers.push(to_value(&group.deployment)?);
            workers.push(to_value(&group.bootstrap)?);
            workers.push(to_value(&group.machines)?);
            workers.push(to_value(&group.health_check)?);
        }
        let control_plane = vec![
            to_value(&all.cluster)?,
            to_value(&all.infrastructure)?,
            to_value(&all.control_plane)?,
            to_value(&all.control_plane_machines)?,
            to_value(&all.control_plane_health_check)?,
        ];
        Ok(Objects { control_plane, workers })
    }
}

fn rules(document: &Value) -> Result<Rules> {
    let found = admission::rules().into_iter().find(|rules| document["kind"] == rules.kind.kind);
    found.with_context(|| format!("no rules for {}", document["kind"]))
}

/// Fields that our types would drop.
fn unknown_fields(document: &Value) -> Result<Vec<String>> {
    let read = match document["kind"].as_str() {
        Some("Cluster") => shapes::read::<Cluster>,
        Some("CloudStackDatacenterConfig") => shapes::read::<CloudStackDatacenterConfig>,
        _ => shapes::read::<CloudStackMachineConfig>,
    };
    let known = read(document)?;
    Ok(shapes::lost(document, &known).into_iter().map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: test}
spec:
  workerNodeGroupConfigurations:
  - count: 3
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: CloudStackMachineConfig
metadata: {name: test}
spec: {}
";

    #[test]
    fn fields_are_set_appended_and_removed() {
        let set = BTreeMap::from([
            ("Cluster/spec/workerNodeGroupConfigurations/0/count".to_owned(), Value::Null),
            ("Cluster/spec/workerNodeGroupConfigurations/1".to_owned(), json!({"name": "md-1", "count": 2})),
            ("CloudStackMachineConfig[test]/metadata/name".to_owned(), json!("other")),
        ]);
        let input = Input::read(TEXT, &set).unwrap();
        let cluster = input.cluster().unwrap();
        let groups = &cluster.spec.worker_node_group_configurations;
        // The first one has our defaults.
        assert_eq!((groups[0].name.as_str(), groups[0].count), ("md-0", Some(1)));
        assert_eq!((groups[1].name.as_str(), groups[1].count), ("md-1", Some(2)));
        assert_eq!(input.typed::<CloudStackMachineConfig>().unwrap()[0].metadata.name, "other");
    }

    #[test]
    fn a_field_that_we_would_drop_is_an_error() {
        let set = BTreeMap::from([("Cluster/spec/certSANs".to_owned(), json!(["a"]))]);
        let error = Input::read(TEXT, &set).unwrap_err();
        assert!(error.to_string().contains("/spec/certSANs"), "{error}");
    }
}
