//! Templates.

use super::machines::is_hypervisor;
use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::Resource;
use crate::model::place::{Template, TemplateKind};
use crate::model::table::{Key, Row};

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listTemplates",
        "templatefilter! id:template ids:template[] name zoneid:zone hypervisor account domainid:domain \
         projectid:project listall:flag extensionid:none oscategoryid:oscategory parenttemplateid:template",
        list,
    ),
    sync(
        "registerTemplate",
        "name! displaytext:long url:long! format! hypervisor! zoneid ostypeid:ostype ispublic:flag isfeatured:flag \
         requireshvm:flag account domainid:domain projectid:project bits:number extensionid:none \
         zoneids:zone[]",
        register,
    ),
    job("deleteTemplate", "id:template! zoneid:zone", "user.template.DeleteTemplateCmd", delete),
];

const FILTERS: [&str; 8] =
    ["featured", "self", "selfexecutable", "sharedexecutable", "executable", "community", "all", "shared"];

impl Cloud {
    /// Whether somebody may start machines from a template.
    pub(crate) fn may_launch(&self, call: &Call, template: Key<Template>) -> bool {
        let row = &self.templates[template];
        row.public || self.may_operate(call.caller, row.account)
    }

    fn not_launchable(&self, call: &Call) -> ApiError {
        ApiError::denied(format!(
            "Account {} does not have permission to launch instances from template",
            self.accounts[call.caller.account].name
        ))
    }
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let filter = call.text("templatefilter").unwrap_or_default();
    // The names of an enumeration: their case matters.
    if !FILTERS.contains(&filter) {
        return Err(ApiError::parameter(format!(
            "No enum constant com.cloud.template.VirtualMachineTemplate.TemplateFilter.{filter}"
        )));
    }
    if filter == "all" && !call.caller.is_admin() {
        return Err(ApiError::invalid("Filter all can be specified by admin only"));
    }
    if let Some(template) = call.key(&cloud.templates, "id")
        && !cloud.may_launch(call, template)
    {
        return Err(cloud.not_launchable(call));
    }
    let scope = cloud.scope(call)?;
    let own = |row: &Row<Template>| cloud.shows(call, scope, row.account);
    // An id alone selects: neither the filter nor other ids matter then.
    let by_id = call.text("id").is_some();
    let ids = if by_id { Vec::new() } else { call.keys(&cloud.templates, "ids") };
    let mut rows = Vec::new();
    for row in cloud.templates.iter() {
        let system = row.kind == TemplateKind::System;
        let chosen = match filter {
            "featured" | "selfexecutable" if by_id => !system,
            "all" => true,
            _ if by_id => true,
            "featured" => row.public && row.featured,
            "community" => row.public && !row.featured,
            "self" | "selfexecutable" => own(row) && !system,
            "executable" => !system && (row.public || own(row)),
            // Nothing is ever shared with single accounts here.
            _ => false,
        };
        if chosen
            && call.selects(&cloud.templates, "id", row.key)
            && (ids.is_empty() || ids.contains(&row.key))
            && call.names("name", &row.name)
            && call.names("hypervisor", &row.hypervisor)
            && call.keyword_in(&[&row.name, &row.display_text])
        {
            rows.push(row);
        }
    }
    let mut shown = Vec::new();
    for row in rows {
        for zone in &row.zones {
            let visible = cloud.zones[*zone].enabled || call.caller.is_root();
            if visible && call.selects(&cloud.zones, "zoneid", *zone) {
                shown.push(cloud.show_template(row.key, *zone, call.caller));
            }
        }
    }
    Ok(Answer::List("template", shown))
}

fn register(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let owner = cloud.owner(call)?;
    let text = |name: &str| call.text(name).unwrap_or_default().to_owned();
    if !is_hypervisor(&text("hypervisor")) {
        return Err(ApiError::invalid(format!("Hypervisor Type: {} is invalid.", text("hypervisor"))));
    }
    let (format, url) = (text("format").to_uppercase(), text("url"));
    if !matches!(format.as_str(), "VHD" | "QCOW2" | "OVA" | "RAW" | "VMDK" | "VDI" | "TAR" | "VHDX") {
        return Err(ApiError::internal(4250));
    }
    let stem = url.trim_end_matches(".gz").trim_end_matches(".bz2").trim_end_matches(".zip");
    if !stem.to_uppercase().ends_with(&format!(".{format}")) {
        return Err(ApiError::parameter(format!(
            "Please specify a valid URL. URL:{url} is an invalid for the format {}",
            format.to_lowercase()
        )));
    }
    cloud.within_limit(owner, Resource::Template, 1)?;
    let everywhere = text("zoneid") == "-1";
    let zones = match text("zoneid").as_str() {
        "" | "-1" => cloud.zones.iter().map(|zone| zone.key).collect(),
        id => match cloud.zones.find(id) {
            Some(zone) => vec![zone],
            None => return Err(call.invalid_value(&format!(" {id} for parameter zoneid"))),
        },
    };
    let os_type = match call.key(&cloud.os_types, "ostypeid") {
        Some(os_type) => os_type,
        None => cloud.os_types.iter().next().map(|os| os.key).ok_or_else(|| call.missing("ostypeid"))?,
    };
    let name = text("name");
    let kubernetes = name
        .split_once("kube-")
        .map(|(_, version)| version.to_owned())
        .filter(|version| version.starts_with('v') && version.matches('.').count() == 2);
    let it = Template {
        display_text: call.filled("displaytext").unwrap_or(&name).to_owned(),
        name,
        account: owner,
        zones,
        cross_zones: everywhere,
        os_type,
        kind: TemplateKind::User,
        public: call.is("ispublic"),
        // Only root may feature; for others the flag is ignored.
        featured: call.is("isfeatured") && call.caller.is_root(),
        format,
        hypervisor: text("hypervisor"),
        url,
        size: 5 << 20,
        requires_hvm: call.flag("requireshvm").unwrap_or(true),
        kubernetes,
    };
    let uuid = cloud.fresh_uuid();
    let key = cloud.templates.insert(uuid, cloud.now, it);
    let zones = cloud.templates[key].zones.clone();
    let shown = zones.into_iter().map(|zone| cloud.show_template(key, zone, call.caller)).collect();
    Ok(Answer::List("template", shown))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.templates, "id")?;
    let row = &cloud.templates[key];
    if row.removed {
        return Err(ApiError::invalid(format!(
            "Unable to find UUID for id [{}] of type [VirtualMachineTemplate]",
            key.number()
        )));
    }
    let uuid = row.uuid.clone();
    let refused = (!cloud.may_operate(call.caller, row.account)).then(|| cloud.not_launchable(call));
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if let Some(refused) = refused {
            return Err(ApiError { code: 530, ..refused });
        }
        cloud.templates.remove(key);
        let uuid = cloud.templates[key].uuid.clone();
        cloud.untag(&uuid);
        Ok(success())
    });
    Ok(Answer::Job(submission.about_the("Template", &uuid)))
}
