//! What `capstan init` asks OpenStack, and the cluster templates.

use std::collections::BTreeMap;

use capstan_object::{Key, ObjectMeta};
use capstan_openstack_client::Class;
use capstan_openstack_client::compute::Flavor as ComputeFlavor;
use capstan_openstack_client::compute::FlavorFilter;
use capstan_openstack_client::config::Clouds as CloudsYaml;
use capstan_openstack_client::image::{Image, ImageFilter, ImageStatus};
use capstan_openstack_client::network::{Network, NetworkFilter};
use capstan_openstack_types::v1beta2::OpenStackIdentityReference;
use capstan_provider_kit::proposal::{self, OfferedSize};
use capstan_provider_kit::{
    Answers, Choice, CredentialField, CredentialValues, Finding, Flavor, ProviderError, Question, Secret,
    Surveyor, flavor, within_patience,
};
use futures::future::BoxFuture;

use crate::code;
use crate::error::CloudError;
use crate::plugin::OpenStack;
use crate::project::Access;

const SECRET: &str = "openstack-credentials";
const CLOUDS: &str = "clouds.yaml";
const CLOUD: &str = "OPENSTACK_CLOUD";
const EXTERNAL: &str = "OPENSTACK_EXTERNAL_NETWORK_ID";
const IMAGE: &str = "OPENSTACK_IMAGE_NAME";
const CONTROL_PLANE: &str = "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR";
const WORKERS: &str = "OPENSTACK_NODE_MACHINE_FLAVOR";
const ZONE: &str = "OPENSTACK_FAILURE_DOMAIN";

pub(crate) const FLAVORS: &[Flavor] = &[
    flavor!("openstack"),
    flavor!("openstack", "bastion"),
    flavor!("openstack", "boot-from-volume"),
    flavor!("openstack", "dual-stack"),
    flavor!("openstack", "existing-network"),
    flavor!("openstack", "kube-vip"),
    flavor!("openstack", "multi-az"),
    flavor!("openstack", "without-lb"),
];

const FIELDS: &[CredentialField] =
    &[CredentialField { field: CLOUDS, variable: "OS_CLIENT_CONFIG_FILE", secret: false, is_file: true }];

impl Surveyor for OpenStack {
    fn secret_name(&self) -> &'static str {
        SECRET
    }

    fn secret_variables(&self) -> [&'static str; 2] {
        ["OPENSTACK_SECRET_NAME", "OPENSTACK_SECRET_NAMESPACE"]
    }

    fn credentials(&self) -> &'static [CredentialField] {
        FIELDS
    }

    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[(CLOUD, "OS_CLOUD")]
    }

    fn next<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Result<Option<Question>, ProviderError>> {
        Box::pin(async move {
            let question = within_patience("it", self.question(credentials, answers)).await;
            question.map_err(ProviderError::new)?.map_err(|error| ProviderError::new(error.text()))
        })
    }

    fn check<'a>(
        &'a self,
        credentials: &'a CredentialValues,
        answers: &'a Answers,
    ) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(async move {
            let fix = "check clouds.yaml and the services of the cloud";
            match within_patience("OpenStack", self.findings(credentials, answers)).await {
                Ok(Ok(findings)) => findings,
                Ok(Err(error)) => vec![Finding::bad(error.text(), fix)],
                Err(late) => vec![Finding::bad(late, fix)],
            }
        })
    }
}

impl OpenStack {
    async fn question(
        &self,
        credentials: &CredentialValues,
        answers: &Answers,
    ) -> Result<Option<Question>, CloudError> {
        let missing = |variable: &str| !answers.contains_key(variable);
        if missing(CLOUD) {
            let text = credentials.get(CLOUDS).map(String::as_str).unwrap_or_default();
            let clouds = CloudsYaml::parse(text, None, None)
                .map_err(|error| CloudError::new(code::SECRET, "SecretInvalid", error.to_string()))?;
            let choices = clouds.names().into_iter().map(|name| Choice::new(name, "")).collect();
            let title = "cloud of clouds.yaml";
            return Ok(Some(Question { variable: CLOUD, title, choices, others: None }));
        }
        let client = self.reach(credentials, answers).await?.client;
        let closed = |variable, title, choices| Ok(Some(Question { variable, title, choices, others: None }));
        if missing(EXTERNAL) {
            let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
            let found = client.list::<Network>(&filter).await?;
            let choices = found.iter().map(|it| Choice::new(it.id.as_str(), it.name.as_str())).collect();
            return closed(EXTERNAL, "external network", choices);
        }
        if missing(IMAGE) {
            let filter = ImageFilter { status: Some(ImageStatus::Active), ..ImageFilter::default() };
            let found = client.list::<Image>(&filter).await?;
            let names = found.iter().map(|image| image.name.as_str()).collect();
            let version = answers.get(proposal::KUBERNETES_VERSION).map(String::as_str);
            return closed(IMAGE, "image", proposal::images(names, version));
        }
        if missing(proposal::KUBERNETES_VERSION) {
            let image = answers.get(IMAGE).map(String::as_str).unwrap_or_default();
            return Ok(Some(proposal::version_question(image)));
        }
        for (variable, title) in
            [(CONTROL_PLANE, "flavor of control plane machines"), (WORKERS, "flavor of workers")]
        {
            if missing(variable) {
                let offered = client.list::<ComputeFlavor>(&FlavorFilter::default()).await?;
                let usable = offered.into_iter().filter(|flavor| !flavor.disabled);
                return closed(variable, title, proposal::sizes(usable.map(size)));
            }
        }
        if missing(ZONE) {
            let zones = client.compute_zones().await?;
            let usable = zones.iter().filter(|zone| zone.state.available);
            let choices = usable.map(|zone| Choice::new(zone.name.as_str(), "")).collect();
            return closed(ZONE, "availability zone of workers", choices);
        }
        Ok(proposal::count_question(answers))
    }

    async fn findings(
        &self,
        credentials: &CredentialValues,
        answers: &Answers,
    ) -> Result<Vec<Finding>, CloudError> {
        let Access { client, project } = self.reach(credentials, answers).await?;
        let text = |variable: &str| answers.get(variable).map(String::as_str).unwrap_or_default();
        let mut findings = Vec::new();
        let (image, version) = (text(IMAGE), text(proposal::KUBERNETES_VERSION).trim_start_matches('v'));
        if let Some(inside) = proposal::version_in(image).filter(|inside| *inside != version) {
            let what = format!("image {image} has Kubernetes v{inside} by its name, not v{version}");
            findings.push(Finding::bad(what, "choose another image or version"));
        }
        findings.push(match client.load_balancer_providers().await {
            Ok(_) => Finding::fine("the project may have load balancers"),
            Err(error) => Finding::bad(
                format!("load balancers cannot be used: {}", CloudError::of(&error).text()),
                "have the role load-balancer_member granted, or use a template without Octavia",
            ),
        });
        let offered = client.list::<ComputeFlavor>(&FlavorFilter::default()).await?;
        let counts = proposal::counts(answers);
        let needs = |of: fn(&OfferedSize) -> u64| -> i64 {
            let sizes = [CONTROL_PLANE, WORKERS].into_iter().zip(counts).filter_map(|(variable, count)| {
                let flavor = offered.iter().find(|flavor| flavor.name == text(variable))?;
                Some(i64::try_from(of(&size(flavor.clone()))).ok()?.saturating_mul(count))
            });
            sizes.fold(0, i64::saturating_add)
        };
        findings.push(match client.compute_quota(&project.id).await {
            Ok(quota) => {
                let left = |left: Option<u64>| left.map(|left| i64::try_from(left).unwrap_or(i64::MAX));
                proposal::quota(&[
                    ("machines", left(quota.instances.left()), counts[0].saturating_add(counts[1])),
                    ("CPUs", left(quota.cores.left()), needs(|size| u64::from(size.cpus))),
                    ("MiB of memory", left(quota.ram.left()), needs(|size| size.memory_mib)),
                ])
            }
            // Some clouds keep quotas from members.
            Err(error) if error.class() == Class::Permission => {
                proposal::unknown_quota("the project may not read it")
            }
            Err(error) => proposal::unknown_quota(&CloudError::of(&error).text()),
        });
        Ok(findings)
    }

    async fn reach(&self, credentials: &CredentialValues, answers: &Answers) -> Result<Access, CloudError> {
        let reference = OpenStackIdentityReference {
            name: SECRET.to_owned(),
            cloud_name: answers.get(CLOUD).cloned().unwrap_or_default(),
            ..OpenStackIdentityReference::default()
        };
        let data: BTreeMap<String, Vec<u8>> =
            credentials.iter().map(|(field, text)| (field.clone(), text.as_bytes().to_vec())).collect();
        let secret = Secret { metadata: ObjectMeta::named("default", SECRET), data, ..Secret::default() };
        self.clouds().open(&reference, &Key::new("default", SECRET), &secret).await
    }
}

fn size(flavor: ComputeFlavor) -> OfferedSize {
    OfferedSize { memory_mib: flavor.ram, cpus: flavor.vcpus, name: flavor.name }
}
