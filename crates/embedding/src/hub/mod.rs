//! Installation of models: the files of a repository in the layout of Hugging Face, downloaded, verified and moved into the
//! user's folder of models.
//!
//! **Invariant:** no text of a hub becomes a path; a token goes to the origin of the hub alone; a folder of a model has all of
//! its files, with the stated checksums, or does not exist.
//!
//! * `install`: the installations, `slot`: the folder of a model, `staged_file`: files in preparation
//! * `client`: requests to a hub, `listing`: the files of a repository, `transfer`: the download of one
//! * `cache`: the cache of the hub's own programs, `folder_copy`: copies from a folder
//! * `repository`: names of repositories and revisions, `checksum`: checksums
//! * `error`: `InstallError`

mod cache;
mod checksum;
mod client;
mod error;
mod folder_copy;
mod install;
mod listing;
mod repository;
mod slot;
mod staged_file;
mod transfer;

pub use client::HubSettings;
pub use error::InstallError;
pub use install::{InstalledModel, ModelOrigin, install_from_folder, install_from_hub};
pub use repository::{ENGLISH, MULTILINGUAL, Repository, Revision};
pub use transfer::{InstallProgress, Report};
