//! Node images, created by `cargo xtask node-image`.
//!
//! ```text
//!   IMAGE/base        a root file system
//!   IMAGE/kit         additional files of a node: kubelet, kubeadm, containerd, plugins, settings
//!   IMAGE/containerd  containerd's directory with the images of a control plane, ready to be copied
//! ```

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::run::{at, make_folder};
use crate::backend::BackendError;

/// Directory of an image; the error says how to create it.
pub(super) fn find(images: &Path, name: &str) -> Result<PathBuf, BackendError> {
    let image = images.join(name);
    let lacks = ["base/bin/sh", "kit/usr/local/bin/kubelet", "kit/usr/local/bin/containerd"]
        .into_iter()
        .find(|part| !image.join(part).exists());
    match lacks {
        None => image.canonicalize().map_err(at(&image)),
        Some(part) => Err(BackendError::Refused(format!(
            "image {name} is not in {} (it has no {part}): make it with `cargo xtask node-image`, or name another in \
             spec.image.name",
            images.display()
        ))),
    }
}

/// Copies containerd's directory for a machine. Content and layers never change and are hard-linked; databases are
/// copied.
pub(super) fn copy_containerd(image: &Path, to: &Path) -> Result<(), BackendError> {
    let from = image.join("containerd");
    make_folder(to)?;
    if from.is_dir() { copy(&from, to) } else { Ok(()) }
}

fn copy(from: &Path, to: &Path) -> Result<(), BackendError> {
    for entry in std::fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&source))?;
        if kind.is_dir() {
            std::fs::create_dir(&target).map_err(at(&target))?;
            let meta = entry.metadata().map_err(at(&source))?;
            std::fs::set_permissions(&target, meta.permissions()).map_err(at(&target))?;
            std::os::unix::fs::chown(&target, Some(meta.uid()), Some(meta.gid())).map_err(at(&target))?;
            copy(&source, &target)?;
        } else if kind.is_file() && source.extension().is_some_and(|end| end == "db") {
            std::fs::copy(&source, &target).map_err(at(&target))?;
        } else {
            std::fs::hard_link(&source, &target).map_err(at(&target))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_linked_and_databases_are_copied() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        let layer = image.join("containerd/snapshots/1/fs");
        std::fs::create_dir_all(&layer).expect("made");
        std::fs::write(layer.join("file"), "a").expect("written");
        std::fs::write(image.join("containerd/meta.db"), "b").expect("written");
        let to = folder.path().join("machine/containerd");
        copy_containerd(&image, &to).expect("copied");
        let inode = |path: &Path| std::fs::metadata(path).expect("there").ino();
        assert_eq!(inode(&to.join("snapshots/1/fs/file")), inode(&layer.join("file")));
        assert_ne!(inode(&to.join("meta.db")), inode(&image.join("containerd/meta.db")));
    }

    #[test]
    fn the_error_for_a_missing_image_names_the_command_that_creates_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = find(folder.path(), "kubernetes-v1").expect_err("nothing there").to_string();
        assert!(error.contains("cargo xtask node-image"), "{error}");
    }
}
