//! Decisions about the images that a cluster brings along.

use capstan_controller::Effect;
use capstan_openstack_client::image::ImageStatus;
use jiff::SignedDuration;

use super::{ImageState, WantedImage, record, wanted};
use crate::cluster::call::ClusterCall;
use crate::cluster::plan::{Decision, Plan};
use crate::project::POLL;
use crate::{code, mark};

/// After this time a failed import is tried again.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// Registers what is missing, and removes what nobody needs. Returns what is wrong.
pub(in crate::cluster) fn keep(plan: &Plan<'_>, decision: &mut Decision) -> Option<String> {
    let (object, state) = (plan.object(), &plan.state.images);
    let images = match wanted(&object.metadata) {
        Ok(images) => images,
        Err(why) => return Some(format!("{}: {why}", code::REFUSED)),
    };
    let ids = state.ours.iter().map(|image| (image.name.clone(), image.id.clone())).collect();
    record(&mut decision.object.metadata, &ids);
    let mut wrong = None;
    for image in &images {
        let why = bring(plan, image, decision);
        wrong = wrong.or(why);
    }
    for call in unneeded(state, &images) {
        decision.best_effort(Effect::Call(call));
    }
    wrong
}

/// The next step towards an image. Returns what stands in its way.
fn bring(plan: &Plan<'_>, image: &WantedImage, decision: &mut Decision) -> Option<String> {
    let state = &plan.state.images;
    if state.usable.contains(&image.name) {
        return None;
    }
    let held = state.ours.iter().find(|held| held.name == image.name);
    if held.is_none_or(|held| held.status == ImageStatus::Queued) && state.downloads == Some(false) {
        return Some(format!(
            "{}: Glance does not download images (web-download is switched off): upload {:?} with openstack image create, \
             or remove it from annotation {}",
            code::UNSUPPORTED,
            image.name,
            super::IMAGES
        ));
    }
    decision.again_in(POLL);
    let failure = |summary: &str| {
        let failure = plan.look.failures.iter().find(|failure| failure.effect == summary);
        failure.map(|failure| failure.error.to_string())
    };
    let Some(held) = held else {
        let mark = mark::of(&plan.object().metadata);
        let call = ClusterCall::CreateImage { image: Box::new(image.clone()), mark };
        let why = failure(&capstan_controller::Call::summary(&call));
        decision.best_effort(Effect::Call(call));
        return why;
    };
    match (&held.status, &held.failed) {
        (ImageStatus::Queued, Some((at, why))) if plan.now().duration_since(*at) < AGAIN => Some(format!(
            "{}: image {} ({}) could not be downloaded from {}: {why}; check the URL and whether Glance reaches it, it is \
             tried again",
            code::IMAGE_IMPORT,
            held.name,
            held.id,
            image.url
        )),
        (ImageStatus::Queued, _) => {
            let call = ClusterCall::ImportImage { id: held.id.clone(), url: image.url.clone() };
            let why = failure(&capstan_controller::Call::summary(&call));
            decision.best_effort(Effect::Call(call));
            why
        }
        (ImageStatus::Killed, _) => {
            decision.best_effort(Effect::Call(ClusterCall::DeleteImage { id: held.id.clone() }));
            None
        }
        (ImageStatus::Deactivated, _) => Some(format!(
            "{}: image {} ({}) is deactivated: reactivate it, or delete it and it is registered again",
            code::IMAGE_IMPORT,
            held.name,
            held.id
        )),
        _ => None,
    }
}

/// Calls that delete images of ours that nobody needs any more.
fn unneeded(state: &ImageState, wanted: &[WantedImage]) -> Vec<ClusterCall> {
    let needed = |name: &str| wanted.iter().any(|image| image.name == name) || state.shared.contains(name);
    let images = state.ours.iter().filter(|image| !needed(&image.name) && !state.in_use.contains(&image.id));
    // What is being imported cannot be deleted in every store.
    let images = images.filter(|image| image.status != ImageStatus::Importing);
    images.map(|image| ClusterCall::DeleteImage { id: image.id.clone() }).collect()
}

/// An image that goes once its import is over, for a cluster that is deleted.
pub(in crate::cluster) fn leaving(state: &ImageState) -> Option<&str> {
    let unneeded = |name: &str, id: &str| !state.shared.contains(name) && !state.in_use.contains(id);
    let mut importing = state.ours.iter().filter(|image| image.status == ImageStatus::Importing);
    importing.find(|image| unneeded(&image.name, &image.id)).map(|image| image.name.as_str())
}

/// The calls for a cluster that is deleted. What others need stays, and is listed by `capstan orphans`.
pub(in crate::cluster) fn removal(state: &ImageState) -> Vec<ClusterCall> {
    unneeded(state, &[])
}
