//! What a cloud says about a machine, as templates in its user data see it.

use serde_json::{Value, json};

/// Metadata of a machine.
#[derive(Debug, Clone)]
pub struct Metadata(Value);

impl Metadata {
    /// Of cloud-init's own names for things (`v1`), and of the cloud's (`ds.meta_data`).
    pub fn new(v1: &Value, meta_data: &Value) -> Self {
        // Variables of v1 can be had without saying so.
        let mut all = v1.clone();
        all["v1"] = v1.clone();
        all["ds"] = json!({"meta_data": meta_data});
        Self(all)
    }

    /// The value of a variable, such as `ds`, `meta_data`, `hostname`.
    pub(crate) fn lookup(&self, path: &[String]) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, key| value.get(key))
    }

    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        Self::new(
            &json!({"local_hostname": "node-1"}),
            &json!({
                "hostname": "node-1", "local_hostname": "Node-1", "instance_id": "i-1", "port": 7, "none": null,
            }),
        )
    }
}
