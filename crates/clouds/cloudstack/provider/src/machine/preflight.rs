//! Whether an image fits what a machine shall be, as far as its name and settings show before it boots.

use std::collections::BTreeMap;

use capstan_cloudstack_client::model::Template;
use capstan_provider_kit::proposal::version_in;

use crate::code;
use crate::error::CloudError;

/// The setting of images and machines that boot by UEFI; its value is the mode.
const UEFI: &str = "UEFI";

/// Refuses an image whose name promises another Kubernetes version, or that boots another way than the machine is
/// ordered to: such a machine would run and never join.
pub(super) fn fits(
    template: &Template,
    version: &str,
    details: &BTreeMap<String, String>,
) -> Result<(), CloudError> {
    let wanted = version.trim_start_matches('v').split('+').next().unwrap_or_default();
    if let Some(inside) = version_in(&template.name)
        && !wanted.is_empty()
        && inside != wanted
    {
        let message = format!(
            "template {:?} has Kubernetes v{inside} in its name, and the version of the machine is v{wanted}: name a template \
             with v{wanted} in spec.template, or change the version",
            template.name
        );
        return Err(CloudError::new(code::TEMPLATE, "WrongVersion", message));
    }
    let (image, machine) = (template.details.get(UEFI), details.get(UEFI));
    if let Some(mode) = machine
        && image.is_none_or(|image| !image.eq_ignore_ascii_case(mode))
    {
        let boots = image.map_or_else(|| "by BIOS".to_owned(), |mode| format!("by UEFI ({mode})"));
        let message = format!(
            "template {:?} boots {boots}, and spec.details orders {UEFI}={mode}: remove that detail or name another \
             template",
            template.name
        );
        return Err(CloudError::new(code::TEMPLATE, "WrongBootType", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_of_another_version_or_boot_type_is_refused_by_the_field_to_mend() {
        let rows = [
            ("ubuntu-2404-kube-v1.36.0", json!({}), "v1.36.0", json!({}), None),
            ("kube-v1.27.2/rhel-8", json!({}), "v1.27.2", json!({}), None),
            ("kube-v1.27.2/rhel-8", json!({}), "v1.28.0", json!({}), Some("WrongVersion")),
            ("ubuntu-2404-kube-v1.36.0-gpu", json!({}), "v1.36.0+vendor.1", json!({}), None),
            ("golden image", json!({}), "v1.36.0", json!({}), None),
            ("kube-v1.36", json!({}), "v1.35.0", json!({}), None),
            ("golden", json!({"UEFI": "SECURE"}), "v1.36.0", json!({}), None),
            ("golden", json!({"UEFI": "SECURE"}), "v1.36.0", json!({"UEFI": "secure"}), None),
            (
                "golden",
                json!({"UEFI": "LEGACY"}),
                "v1.36.0",
                json!({"UEFI": "SECURE"}),
                Some("WrongBootType"),
            ),
            ("golden", json!({}), "v1.36.0", json!({"UEFI": "LEGACY"}), Some("WrongBootType")),
        ];
        for (name, of_image, version, of_machine, refused) in rows {
            let template: Template =
                serde_json::from_value(json!({"id": "t", "name": name, "details": of_image}))
                    .expect("a template");
            let details = serde_json::from_value(of_machine).expect("details");
            let verdict = fits(&template, version, &details);
            assert_eq!(verdict.as_ref().err().map(|cause| cause.reason), refused, "{name} {version}");
            if let Err(cause) = verdict {
                assert_eq!(cause.code, code::TEMPLATE);
                assert!(cause.message.contains("spec."), "{}", cause.message);
            }
        }
    }
}
