//! What `capstan init` asks CloudStack, and the cluster templates.

use std::collections::BTreeMap;

use capstan_cloudstack_client::commands::{
    ListApis, ListNetworks, ListServiceOfferings, ListTemplates, ListZones,
};
use capstan_cloudstack_client::model::GuestType;
use capstan_cloudstack_client::{Class, Client};
use capstan_cloudstack_types::v1beta3::{
    CloudStackFailureDomainSpec, CloudStackMachineSpec, SecretReference,
};
use capstan_object::ObjectMeta;
use capstan_provider_kit::proposal::{self, CLUSTER_NAME, KUBERNETES_VERSION, OfferedSize};
use capstan_provider_kit::{
    Amount, Answers, Choice, CredentialField, CredentialValues, Finding, Flavor, ProviderError, Question,
    Secret, Shape, Surveyor, flavor,
};
use futures::future::BoxFuture;

use crate::answered;
use crate::error::CloudError;
use crate::outlook::Prospect;
use crate::plugin::CloudStack;

const SECRET: &str = "cloudstack-credentials";
const ZONE: &str = "CLOUDSTACK_ZONE_NAME";
const NETWORK: &str = "CLOUDSTACK_NETWORK_NAME";
const TEMPLATE: &str = "CLOUDSTACK_TEMPLATE_NAME";
const CONTROL_PLANE: &str = "CLOUDSTACK_CONTROL_PLANE_MACHINE_OFFERING";
const WORKERS: &str = "CLOUDSTACK_WORKER_MACHINE_OFFERING";

/// What clusters on isolated networks need: machines, a network with its address and rules, tags, access to machines by SSH.
const NEEDED: [&str; 19] = [
    "deployVirtualMachine",
    "destroyVirtualMachine",
    "queryAsyncJobResult",
    "createNetwork",
    "deleteNetwork",
    "associateIpAddress",
    "disassociateIpAddress",
    "createFirewallRule",
    "deleteFirewallRule",
    "createEgressFirewallRule",
    "deleteEgressFirewallRule",
    "createLoadBalancerRule",
    "deleteLoadBalancerRule",
    "assignToLoadBalancerRule",
    "removeFromLoadBalancerRule",
    "createPortForwardingRule",
    "deletePortForwardingRule",
    "createTags",
    "deleteTags",
];

pub(crate) const FLAVORS: &[Flavor] = &[
    flavor!("cloudstack"),
    flavor!("cloudstack", "affinity"),
    flavor!("cloudstack", "autoscale"),
    flavor!("cloudstack", "disk-offering"),
    flavor!("cloudstack", "kube-vip"),
    flavor!("cloudstack", "project"),
    flavor!("cloudstack", "ssh"),
];

const FIELDS: &[CredentialField] = &[
    CredentialField { field: "api-url", variable: "CLOUDSTACK_API_URL", secret: false, is_file: false },
    CredentialField { field: "api-key", variable: "CLOUDSTACK_API_KEY", secret: false, is_file: false },
    CredentialField { field: "secret-key", variable: "CLOUDSTACK_SECRET_KEY", secret: true, is_file: false },
];

impl Surveyor for CloudStack {
    fn secret_name(&self) -> &'static str {
        SECRET
    }

    fn secret_variables(&self) -> [&'static str; 2] {
        ["CLOUDSTACK_FD1_SECRET_NAME", "CLOUDSTACK_FD1_SECRET_NAMESPACE"]
    }

    fn credentials(&self) -> &'static [CredentialField] {
        FIELDS
    }

    fn next<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Result<Option<Question>, ProviderError>> {
        Box::pin(
            async move { answered(self.question(credentials, answers)).await.map_err(ProviderError::new) },
        )
    }

    fn check<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(async move { self.findings(credentials, answers).await })
    }
}

impl CloudStack {
    async fn question(
        &self,
        credentials: &CredentialValues,
        answers: &Answers,
    ) -> Result<Option<Question>, CloudError> {
        let missing = |variable: &str| !answers.contains_key(variable);
        let text = |variable: &str| answers.get(variable).cloned().unwrap_or_default();
        let domain = domain(answers);
        let secret = secret(credentials);
        let (client, owner) = self.clouds().open(&domain, &secret).await?;
        let access = Asked { client, secret: capstan_object::Key::new("default", SECRET) };
        let zones = access.list(&ListZones { available: Some(true), ..ListZones::default() }).await?;
        if missing(ZONE) {
            let usable = zones.iter().filter(|zone| zone.allocationstate.as_deref() != Some("Disabled"));
            let choices = usable.map(|zone| Choice::new(&zone.name, "")).collect();
            return Ok(Some(Question { variable: ZONE, title: "zone", choices, others: None }));
        }
        let zone = text(ZONE);
        let zone = zones.into_iter().find(|one| one.name == zone).map(|zone| zone.id);
        if missing(NETWORK) {
            let scope = capstan_cloudstack_client::commands::Scope::of(owner);
            let question = ListNetworks { zoneid: zone, scope, ..ListNetworks::default() };
            let found = access.list(&question).await?;
            let isolated = found.iter().filter(|network| network.r#type == Some(GuestType::Isolated));
            let existing = isolated.filter_map(|network| network.name.as_ref());
            let new = Choice::new(text(CLUSTER_NAME), "a new isolated network");
            let others = existing.filter(|name| **name != new.value).map(|name| Choice::new(name, "exists"));
            let choices = std::iter::once(new.clone()).chain(others).collect();
            return Ok(Some(Question {
                variable: NETWORK,
                title: "network",
                choices,
                others: Some(Shape::Name),
            }));
        }
        if missing(TEMPLATE) {
            let question = ListTemplates { zoneid: zone, ..ListTemplates::default() };
            let found = access.list(&question).await?;
            let names = found.iter().filter(|it| it.isready).map(|it| it.name.as_str()).collect();
            let choices = proposal::images(names, answers.get(KUBERNETES_VERSION).map(String::as_str));
            return Ok(Some(Question { variable: TEMPLATE, title: "template", choices, others: None }));
        }
        if missing(KUBERNETES_VERSION) {
            return Ok(Some(proposal::version_question(&text(TEMPLATE))));
        }
        for (variable, title) in
            [(CONTROL_PLANE, "offering of control plane machines"), (WORKERS, "offering of workers")]
        {
            if missing(variable) {
                let question = ListServiceOfferings { zoneid: zone, ..ListServiceOfferings::default() };
                let offered = access.list(&question).await?;
                let choices = proposal::sizes(offered.into_iter().filter_map(size));
                return Ok(Some(Question { variable, title, choices, others: None }));
            }
        }
        Ok(proposal::count_question(answers))
    }

    async fn findings(&self, credentials: &CredentialValues, answers: &Answers) -> Vec<Finding> {
        let (domain, secret) = (domain(answers), secret(credentials));
        let order = |offering: &str| {
            let mut spec = CloudStackMachineSpec::default();
            spec.offering.name = answers.get(offering).cloned().unwrap_or_default();
            spec.template.name = answers.get(TEMPLATE).cloned().unwrap_or_default();
            Prospect { spec, version: answers.get(KUBERNETES_VERSION).cloned().unwrap_or_default() }
        };
        let orders = [order(CONTROL_PLANE), order(WORKERS)];
        let outlook = match answered(self.clouds().outlook(&domain, &secret, &orders)).await {
            Ok(outlook) => outlook,
            Err(why) => return vec![Finding::bad(why, "check the credentials and the zone")],
        };
        let mut findings = Vec::new();
        for error in outlook.verdicts.iter().filter_map(|verdict| verdict.error.as_ref()) {
            findings.push(Finding::bad(error.text(), "choose another template or offering"));
        }
        let machines = proposal::counts(answers);
        let sum = |of: fn(&capstan_provider_kit::Size) -> u64| -> i64 {
            let sizes = outlook.verdicts.iter().zip(machines);
            let each = sizes.filter_map(|(it, n)| Some(i64::try_from(of(&it.size?)).ok()?.saturating_mul(n)));
            each.fold(0, i64::saturating_add)
        };
        let needs =
            [machines[0].saturating_add(machines[1]), sum(|size| size.cpus), sum(|size| size.memory_mib)];
        findings.push(quota(outlook.left, needs));
        findings.push(self.role(&domain, &secret).await);
        findings
    }

    /// Whether the user may call what is needed. Servers without listApis for users leave that open.
    async fn role(&self, domain: &CloudStackFailureDomainSpec, secret: &Secret) -> Finding {
        let fix = "use the keys of an account with at least the stock role User";
        let (client, _) = match answered(self.clouds().open(domain, secret)).await {
            Ok(opened) => opened,
            Err(why) => return Finding::bad(why, fix),
        };
        let mut lacking = Vec::new();
        for name in NEEDED {
            let question = ListApis { name: Some(name.to_owned()) };
            match client.list(&question).await {
                Ok(found) if found.is_empty() => lacking.push(name),
                Ok(_) => {}
                // An unknown name is an internal error; so is a name that the role does not have.
                Err(error) if error.class() == Class::Internal => lacking.push(name),
                Err(error) => {
                    return Finding::warning(format!("the role cannot be checked: {error}"), fix);
                }
            }
        }
        match lacking.is_empty() {
            true => Finding::fine("the role allows what clusters need"),
            false => Finding::bad(format!("the role does not allow {}", lacking.join(", ")), fix),
        }
    }
}

struct Asked {
    client: Client,
    secret: capstan_object::Key,
}

impl Asked {
    async fn list<L: capstan_cloudstack_client::List>(
        &self,
        question: &L,
    ) -> Result<Vec<L::Item>, CloudError> {
        self.client.list(question).await.map_err(|error| CloudError::of(&error, &self.secret))
    }
}

fn size(offering: capstan_cloudstack_client::model::ServiceOffering) -> Option<OfferedSize> {
    Some(OfferedSize { memory_mib: offering.memory?, cpus: offering.cpunumber?, name: offering.name })
}

fn quota(left: Result<capstan_cloudstack_client::model::Quota, String>, needs: [i64; 3]) -> Finding {
    let left = match left {
        Ok(left) => crate::capacity::remaining(&left),
        Err(why) => return proposal::unknown_quota(&why),
    };
    let limit = |left: Option<Amount>| match left {
        Some(Amount::Limited(left)) => Some(left),
        _ => None,
    };
    proposal::quota(&[
        ("machines", limit(left.machines), needs[0]),
        ("CPUs", limit(left.cpus), needs[1]),
        ("MiB of memory", limit(left.memory_mib), needs[2]),
    ])
}

fn domain(answers: &Answers) -> CloudStackFailureDomainSpec {
    let mut domain =
        CloudStackFailureDomainSpec { name: "init".to_owned(), ..CloudStackFailureDomainSpec::default() };
    domain.zone.name = answers.get(ZONE).cloned().unwrap_or_default();
    domain.project = answers.get("CLOUDSTACK_PROJECT").cloned().unwrap_or_default();
    domain.acs_endpoint = SecretReference { name: SECRET.to_owned(), namespace: "default".to_owned() };
    domain
}

fn secret(credentials: &CredentialValues) -> Secret {
    let data: BTreeMap<String, Vec<u8>> =
        credentials.iter().map(|(field, text)| (field.clone(), text.as_bytes().to_vec())).collect();
    Secret { metadata: ObjectMeta::named("default", SECRET), data, ..Secret::default() }
}
