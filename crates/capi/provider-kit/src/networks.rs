//! Networks of machines, which Pods and Services of their cluster must not share addresses with.

use serde_json::Value;

/// A range of addresses that machines of a cluster get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineNetwork {
    /// In CIDR notation.
    pub cidr: String,
    /// Where it is set, such as `spec.network.cidr`.
    pub field: String,
}

impl MachineNetwork {
    /// The range in a field of an object, such as `/spec/network/cidr`; `None` if it is not set.
    pub fn at(object: &Value, pointer: &str) -> Option<Self> {
        let cidr = object.pointer(pointer)?.as_str().filter(|cidr| !cidr.is_empty())?;
        Some(Self { cidr: cidr.to_owned(), field: dotted(pointer) })
    }
}

/// `/spec/managedSubnets/0/cidr` as `spec.managedSubnets[0].cidr`.
fn dotted(pointer: &str) -> String {
    let mut field = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(position) => field.push_str(&format!("[{position}]")),
            Err(_) if field.is_empty() => field.push_str(part),
            Err(_) => field.push_str(&format!(".{part}")),
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_network_is_named_by_its_field() {
        let object = json!({"spec": {"managedSubnets": [{"cidr": ""}, {"cidr": "10.6.0.0/24"}]}});
        assert_eq!(MachineNetwork::at(&object, "/spec/managedSubnets/0/cidr"), None);
        let network = MachineNetwork::at(&object, "/spec/managedSubnets/1/cidr").expect("a network");
        assert_eq!(
            (network.cidr.as_str(), network.field.as_str()),
            ("10.6.0.0/24", "spec.managedSubnets[1].cidr")
        );
    }
}
