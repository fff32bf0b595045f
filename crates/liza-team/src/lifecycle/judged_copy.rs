//! The throw-away checkout of one run that judges a commit.

use std::path::{Path, PathBuf};

use liza_core::model::{Config, Sha};
use liza_git::{BuiltCheckout, GitError, HeadBuild, Marks, Repo, ScratchCheckout};
use liza_sandbox::confine::RoomCopy;

use crate::project::Project;
use crate::session::plan::can_copy_in_room;

/// The folder of the build of an integration head, which no session can write.
pub(super) fn head_builds(project: &Project) -> PathBuf {
    project.folder().join("caches/head-build")
}

pub(super) struct JudgedCopy {
    pub checkout: ScratchCheckout,
    /// `None` if programs know the checkout by its own path.
    pub room: Option<RoomCopy>,
    build: Option<HeadBuild>,
    marks: Option<Marks>,
}

impl JudgedCopy {
    /// Programs know the checkout by its own path.
    pub(super) fn at_own_place(checkout: ScratchCheckout) -> Self {
        Self { checkout, room: None, build: None, marks: None }
    }

    /// Its rooms show it at the place at which builds are kept, if they can.
    pub(super) fn at_build_place(
        project: &Project,
        config: &Config,
        commit: &Sha,
        caches: &Path,
    ) -> Result<Self, GitError> {
        let mut copy = Self::at_own_place(project.repo()?.scratch_checkout(commit)?);
        let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
        if can_copy_in_room(project, config, &liza) {
            copy.room = RoomCopy::of(project.folder(), copy.checkout.path(), caches);
        }
        if let Some(room) = &copy.room {
            copy.checkout.show_at(room.shown());
        }
        Ok(copy)
    }

    /// Begins with the build of the integration branch's head; `None` if there is none that it can use.
    pub(super) fn on_head_build(
        project: &Project,
        config: &Config,
        commit: &Sha,
        caches: &Path,
    ) -> Result<Option<Self>, GitError> {
        let Some(build) = HeadBuild::of(&head_builds(project)) else { return Ok(None) };
        let mut copy = Self::at_build_place(project, config, commit, caches)?;
        let Some(room) = copy.room.take() else { return Ok(None) };
        if build.give_times(project.repo()?, commit, copy.checkout.path()).is_none() {
            return Ok(None);
        }
        copy.room = Some(room.above(build.files().to_owned()));
        copy.build = Some(build);
        Ok(Some(copy))
    }

    /// Marks its files before anything is built, so that the build can be kept.
    pub(super) fn mark(&mut self, repo: &Repo, commit: &Sha) {
        if self.room.is_some() {
            self.marks = Marks::of(repo, commit, self.checkout.path());
        }
    }

    /// The head with whose build it began.
    pub(super) fn head(&self) -> Option<&Sha> {
        self.build.as_ref().map(HeadBuild::head)
    }

    /// The checkout with what was built in it, if it began with nothing and can be kept.
    pub(super) fn built(self) -> Option<BuiltCheckout> {
        Some(self.marks?.built(self.checkout))
    }
}
