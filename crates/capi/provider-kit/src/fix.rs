//! Commands that fix a failure: the provider's part of `capstan why`.

/// A failure that blocks a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// One of the provider's codes.
    pub code: &'a str,
    /// Message of the condition, including the code.
    pub message: &'a str,
    pub namespace: &'a str,
    /// `CLUSTER` if it is not known.
    pub cluster: &'a str,
    /// The Machine that the failing object belongs to.
    pub machine: Option<&'a str>,
    /// MachineDeployment or control plane of the Machine.
    pub group: Option<MachineGroup<'a>>,
}

/// Machines that are made from one template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineGroup<'a> {
    ControlPlane,
    /// Name of the MachineDeployment.
    Workers(&'a str),
}

impl<'a> Failure<'a> {
    /// Changes fields of the machines, such as `template.name=NAME`.
    pub fn set_machines(&self, fields: &str) -> Vec<String> {
        self.set_group("", fields)
    }

    /// Changes fields of the bootstrap configuration of the machines.
    pub fn set_bootstrap(&self, fields: &str) -> Vec<String> {
        self.set_group("--bootstrap ", fields)
    }

    fn set_group(&self, flag: &str, fields: &str) -> Vec<String> {
        let part = match self.group {
            Some(MachineGroup::ControlPlane) => "--control-plane".to_owned(),
            Some(MachineGroup::Workers(name)) => format!("--workers {name}"),
            None => return Vec::new(),
        };
        vec![format!("capstan set {} -n {} {part} {flag}{fields}", self.cluster, self.namespace)]
    }

    /// Changes fields of the cluster's infrastructure object.
    pub fn set_infrastructure(&self, fields: &str) -> Vec<String> {
        vec![format!("capstan set {} -n {} --infrastructure {fields}", self.cluster, self.namespace)]
    }

    /// Changes the number of machines.
    pub fn scale(&self) -> Vec<String> {
        let part = match self.group {
            Some(MachineGroup::ControlPlane) => "--control-plane N".to_owned(),
            Some(MachineGroup::Workers(name)) => format!("--workers {name}=N"),
            None => return Vec::new(),
        };
        vec![format!("capstan scale {} -n {} {part}", self.cluster, self.namespace)]
    }

    pub fn replace_machine(&self) -> Vec<String> {
        let delete = |name| format!("capstan delete machine {name} -n {} --yes", self.namespace);
        self.machine.map(delete).into_iter().collect()
    }

    /// What follows `words` in the message, up to the next space or punctuation at its end.
    pub fn after(&self, words: &str) -> Option<&'a str> {
        let (_, rest) = self.message.split_once(words)?;
        let word = rest.split([' ', '\n', ',']).next()?.trim_end_matches([':', ';', '.']);
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_machines_that_fail() {
        let message = "E-X: no Secret default/keys: make it";
        let failure = Failure {
            code: "E-X",
            message,
            namespace: "default",
            cluster: "demo",
            machine: Some("w-1"),
            group: Some(MachineGroup::Workers("demo-workers")),
        };
        assert_eq!(
            failure.set_machines("a=B"),
            ["capstan set demo -n default --workers demo-workers a=B".to_owned()]
        );
        let alone = Failure { group: None, machine: None, ..failure };
        assert!(alone.set_bootstrap("a=B").is_empty() && alone.replace_machine().is_empty());
        assert_eq!(failure.after("no Secret "), Some("default/keys"));
        assert_eq!(failure.after("no ConfigMap "), None);
    }
}
