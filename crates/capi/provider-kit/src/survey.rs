//! What a first cluster on a cloud needs: the provider's part of `capstan init` and `capstan generate cluster`.

use std::collections::BTreeMap;

use capstan_capi_types::version::tolerant;
use futures::future::BoxFuture;

use crate::{Finding, ProviderError};

/// A cluster template with variables, as `clusterctl generate cluster` reads it.
#[derive(Debug, Clone, Copy)]
pub struct Flavor {
    /// Empty for the default.
    pub name: &'static str,
    pub template: &'static str,
}

/// A template of `templates/<cloud>`, of a provider in `crates/clouds/<cloud>/provider`: the default, or one by name.
#[macro_export]
macro_rules! flavor {
    ($cloud:literal) => {
        $crate::flavor!(in "/cluster-template.yaml", $cloud, "")
    };
    ($cloud:literal, $name:literal) => {
        $crate::flavor!(in concat!("/cluster-template-", $name, ".yaml"), $cloud, $name)
    };
    (in $file:expr, $cloud:literal, $name:literal) => {
        $crate::Flavor {
            name: $name,
            template: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../../templates/",
                $cloud,
                $file
            )),
        }
    };
}

/// A field of the credentials Secret.
#[derive(Debug, Clone, Copy)]
pub struct CredentialField {
    pub field: &'static str,
    /// The environment variable that it is read from.
    pub variable: &'static str,
    /// It is not echoed on a terminal.
    pub secret: bool,
    /// The variable, and whoever is asked, names a file with the value.
    pub is_file: bool,
}

/// Values of the credentials Secret, by field.
pub type CredentialValues = BTreeMap<String, String>;

/// Values of template variables.
pub type Answers = BTreeMap<String, String>;

/// A choice that only the user can make, with what the cloud offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The template's variable.
    pub variable: &'static str,
    /// Such as `zone`.
    pub title: &'static str,
    /// What the cloud has; the first is proposed.
    pub choices: Vec<Choice>,
    /// What other values look like; `None` if the choices are all.
    pub others: Option<Shape>,
}

/// What an answer looks like that is none of the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Name,
    /// Of Kubernetes, with its patch release.
    Version,
    /// A number of machines.
    Count,
    /// A number of machines with a member of etcd each.
    OddCount,
}

impl Shape {
    /// The error says what is wrong with an answer.
    pub fn check(self, answer: &str) -> Result<(), String> {
        match self {
            Self::Name if answer.is_empty() => Err("a name is needed".to_owned()),
            Self::Name => Ok(()),
            Self::Version => {
                let patch = answer.split(['-', '+']).next().unwrap_or_default().matches('.').count() == 2;
                match tolerant(answer).filter(|_| patch) {
                    Some(_) => Ok(()),
                    None => Err(format!("{answer:?} is not a Kubernetes version such as v1.36.0")),
                }
            }
            Self::Count | Self::OddCount => match answer.parse::<u16>() {
                Err(_) => Err(format!("{answer:?} is not a number of machines")),
                Ok(count) if self == Self::OddCount && count % 2 == 0 => {
                    Err(format!("{count} is even: a control plane has an odd number of machines"))
                }
                Ok(_) => Ok(()),
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub value: String,
    /// What helps to choose, such as a size; may be empty.
    pub note: String,
}

impl Choice {
    pub fn new(value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { value: value.into(), note: note.into() }
    }
}

/// Asks a cloud what a cluster can be made of. Only reads.
pub trait Surveyor: Send + Sync {
    /// Name of the credentials Secret, unless the user chooses another.
    fn secret_name(&self) -> &'static str;

    /// The template's variables for name and namespace of that Secret.
    fn secret_variables(&self) -> [&'static str; 2];

    fn credentials(&self) -> &'static [CredentialField];

    /// Template variables that an environment variable answers, as other clients of the cloud read it.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The next question; `None` if the answers are complete. `answers` always has `CLUSTER_NAME`.
    fn next<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Result<Option<Question>, ProviderError>>;

    /// Whether the cloud can carry the answers out: role, quota, versions.
    fn check<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Vec<Finding>>;
}
