//! Members: projects that an image is shared with.

use serde_json::{Value, json};

use super::{denied, own, visible};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object, shown};
use crate::wire::{Call, Fail, Handled, Reply};

fn show(member: &Object) -> Value {
    let mut shown = shown(member);
    shown.remove("id");
    shown.insert("schema".to_owned(), json!("/v2/schemas/member"));
    Value::Object(shown)
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, image: &str, rest: &[&str]) -> Handled {
    let key = |member: &str| format!("{image} {member}");
    let absent =
        |member: &str| Fail::missing(format!("{member} not found in the member list of the image {image}."));
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            let row = visible(cloud, call, image)?;
            let owner = row.text("owner") == call.caller.project() || call.caller.is_admin();
            let all: Vec<Value> = cloud
                .all("image_members")
                .filter(|it| {
                    it.text("image_id") == image && (owner || it.text("member_id") == call.caller.project())
                })
                .map(show)
                .collect();
            Ok(Reply::ok(json!({"members": all, "schema": "/v2/schemas/members"})))
        }
        ("POST", []) => {
            let row = own(cloud, call, image, "add_member")?;
            if row.text("visibility") != "shared" {
                return Err(Fail::forbidden(format!("Not allowed to create members for image {image}.")));
            }
            let member = call.json().and_then(|body| Some(body["member"].as_str()?.to_owned()));
            let member = member.ok_or_else(|| Fail::bad("Member to be added not specified"))?;
            if cloud.get("image_members", &key(&member)).is_some() {
                return Err(Fail::conflict(format!("Member {member} is duplicated for image {image}")));
            }
            let row = object(json!({
                "id": key(&member), "member_id": member, "image_id": image, "status": "pending",
                "created_at": cloud.stamp(), "updated_at": cloud.stamp(),
            }));
            cloud.put("image_members", row.clone());
            Ok(Reply::ok(show(&row)))
        }
        ("GET", [member]) => {
            visible(cloud, call, image)?;
            let found = cloud.get("image_members", &key(member)).ok_or_else(|| absent(member))?;
            Ok(Reply::ok(show(found)))
        }
        ("PUT", [member]) => {
            visible(cloud, call, image)?;
            let status =
                call.json().and_then(|body| Some(body["status"].as_str()?.to_owned())).unwrap_or_default();
            if call.caller.project() != *member && !call.caller.is_admin() {
                return Err(denied("modify_member"));
            }
            if !matches!(status.as_str(), "pending" | "accepted" | "rejected") {
                let text = "Incorrect request: Status must be \"pending\", \"accepted\" or \"rejected\".";
                return Err(Fail::bad(text));
            }
            cloud.get("image_members", &key(member)).ok_or_else(|| absent(member))?;
            cloud.set("image_members", &key(member), "status", status);
            let now = cloud.stamp();
            cloud.set("image_members", &key(member), "updated_at", now);
            let row = cloud.get("image_members", &key(member)).cloned().unwrap_or_default();
            Ok(Reply::ok(show(&row)))
        }
        ("DELETE", [member]) => {
            own(cloud, call, image, "delete_member")?;
            cloud.remove("image_members", &key(member)).ok_or_else(|| absent(member))?;
            Ok(Reply::html(204))
        }
        _ => Err(super::unknown_path()),
    }
}
