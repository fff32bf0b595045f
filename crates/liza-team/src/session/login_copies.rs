//! The logins that a session got as copies: a refreshed one becomes the person's own, and never a used one. A
//! changed copy is written back at once if the person's file has not changed since it was copied. A copy that
//! the session has not changed follows the person's file.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use liza_sandbox::sys::untrusted::UntrustedFolder;
use serde::{Deserialize, Serialize};

use crate::session::login::{Refreshed, refreshed, replace_unchanged};

const COPY_MAX: u64 = 4 << 20;

const NAMES_MAX: usize = 5;

/// The pause between two looks at a login while something waits for it.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct LoginCopies {
    folder: PathBuf,
    copies: Vec<LoginCopy>,
    is_finished: bool,
}

#[derive(Debug)]
struct LoginCopy {
    from: PathBuf,
    to: PathBuf,
    /// The person's file when the session began.
    first: Vec<u8>,
    /// The person's file as it was last copied or written.
    yours: Vec<u8>,
    /// The session's copy as it was last made or taken.
    copy: Vec<u8>,
    /// The content that was last written to the person's file.
    written: Option<Vec<u8>>,
    /// The part of the session's copy that was not taken.
    refused: RefusedPart,
}

impl LoginCopies {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    pub fn add(&mut self, from: &Path, to: &Path, content: Vec<u8>) {
        self.copies.push(LoginCopy {
            from: from.to_owned(),
            to: to.to_owned(),
            first: content.clone(),
            yours: content.clone(),
            copy: content,
            written: None,
            refused: RefusedPart::default(),
        });
    }

    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Writes refreshed logins back, and brings those up to date that the session has not changed.
    pub fn update(&mut self) {
        for copy in &mut self.copies {
            copy.take_refreshed(&self.folder);
            copy.follow_yours(&self.folder);
        }
    }

    /// Writes refreshed logins back for the last time; returns the refused parts. A session whose login was
    /// refused waits this long for another one that is refreshing it now.
    #[must_use]
    pub fn finish(&mut self, patience: Duration) -> Vec<RefusedLogin> {
        self.copies.iter_mut().for_each(|copy| copy.take_refreshed(&self.folder));
        self.is_finished = true;
        let end = Instant::now() + patience;
        while !self.copies.is_empty() && !self.is_outdated() && Instant::now() < end {
            thread::sleep(LOOK_INTERVAL);
        }
        let refused = self.copies.iter().filter(|copy| copy.refused != RefusedPart::default());
        refused.map(|copy| RefusedLogin { file: copy.from.clone(), part: copy.refused.clone() }).collect()
    }

    /// True if the person or another session has changed the person's login since the session began.
    pub(crate) fn is_outdated(&self) -> bool {
        self.copies.iter().any(|copy| {
            let present = small_file(&copy.from);
            present.is_some_and(|present| present != copy.first && Some(&present) != copy.written.as_ref())
        })
    }
}

impl LoginCopy {
    fn take_refreshed(&mut self, folder: &Path) {
        let new = UntrustedFolder::open(folder).and_then(|folder| folder.read(&self.to, COPY_MAX));
        let Ok(new) = new else { return };
        if new == self.copy || small_file(&self.from).as_ref() != Some(&self.yours) {
            return;
        }
        self.refused = match refreshed(&self.yours, &new) {
            Refreshed::Login { login, kept } => {
                if let Some(login) = login
                    && matches!(replace_unchanged(&self.from, &self.yours, &login), Ok(true))
                {
                    (self.copy, self.yours, self.written) = (new, login.clone(), Some(login));
                }
                RefusedPart::Fields(kept)
            }
            Refreshed::OtherAccount => RefusedPart::OtherAccount,
            Refreshed::OtherForm => RefusedPart::OtherForm,
        };
    }

    /// Gives the session the person's present login: its program may look again before it refreshes one that was used.
    fn follow_yours(&mut self, folder: &Path) {
        let Some(present) = small_file(&self.from).filter(|present| *present != self.yours) else { return };
        let Ok(folder) = UntrustedFolder::open(folder) else { return };
        if folder.read(&self.to, COPY_MAX).is_ok_and(|copy| copy == self.copy)
            && folder.write(&self.to, &present).is_ok()
        {
            (self.copy, self.yours) = (present.clone(), present);
        }
    }
}

/// The content of a file of the person's, unless it is too large.
pub(crate) fn small_file(path: &Path) -> Option<Vec<u8>> {
    fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= COPY_MAX)?;
    fs::read(path).ok()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLogin {
    file: PathBuf,
    part: RefusedPart,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum RefusedPart {
    /// All: it is a login of another account.
    OtherAccount,
    /// All: it is no login.
    OtherForm,
    /// Fields that programs do not refresh.
    Fields(Vec<String>),
}

impl RefusedLogin {
    pub fn message(&self) -> String {
        let file = self.file.display();
        match &self.part {
            RefusedPart::OtherAccount => {
                format!("left a login of another account in place of its copy; yours is kept: {file}")
            }
            RefusedPart::OtherForm => {
                format!("left something else in place of its copy of a login; yours is kept: {file}")
            }
            RefusedPart::Fields(names) => {
                let shown: Vec<String> = names.iter().take(NAMES_MAX).map(|name| short(name)).collect();
                let more = if names.len() > NAMES_MAX { ", …" } else { "" };
                let shown = shown.join(", ");
                format!("changed {shown}{more} in its copy of a login; yours keeps its values: {file}")
            }
        }
    }
}

/// Shortens a name that a session may have chosen.
fn short(name: &str) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
    name.chars().filter(plain).take(40).collect()
}

impl Default for RefusedPart {
    fn default() -> Self {
        RefusedPart::Fields(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn login(token: &str) -> String {
        format!(r#"{{"tokens":{{"refresh_token":"{token}"}}}}"#)
    }

    /// A person's login, and a session's folder with a copy of it.
    fn session(home: &Path) -> (PathBuf, PathBuf, LoginCopies) {
        let (yours, folder) = (home.join("auth.json"), home.join("session"));
        fs::write(&yours, login("first")).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("auth.json"), login("first")).unwrap();
        let mut copies = LoginCopies::new(&folder);
        copies.add(&yours, Path::new("auth.json"), login("first").into_bytes());
        (yours, folder.join("auth.json"), copies)
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// Covers: AX-26
    #[test]
    fn a_refreshed_login_is_written_back_while_the_session_runs() {
        let home = tempfile::tempdir().unwrap();
        let (yours, copy, mut copies) = session(home.path());
        fs::set_permissions(&yours, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(&copy, "{\"half").unwrap();
        copies.update();
        assert!(text(&yours).contains("first"));
        for token in ["second", "third"] {
            fs::write(&copy, login(token)).unwrap();
            copies.update();
            assert!(text(&yours).contains(token), "{token}");
        }
        assert_eq!(fs::metadata(&yours).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(!copies.is_outdated(), "its own");
        assert_eq!(copies.finish(Duration::ZERO), []);
    }

    /// Covers: AX-26
    #[test]
    fn the_login_of_the_person_remains_and_reaches_a_session_that_has_not_changed_its_copy() {
        let home = tempfile::tempdir().unwrap();
        let (yours, copy, mut copies) = session(home.path());
        fs::write(&yours, login("yours")).unwrap();
        copies.update();
        assert_eq!(text(&copy), login("yours"));
        assert!(copies.is_outdated(), "the session began with another one");
        fs::write(&copy, login("refreshed")).unwrap();
        fs::write(&yours, login("again yours")).unwrap();
        copies.update();
        assert_eq!((text(&yours), text(&copy)), (login("again yours"), login("refreshed")));
        assert_eq!(copies.finish(Duration::ZERO), []);
        assert_eq!(text(&yours), login("again yours"));
    }

    /// Covers: AX-26
    #[test]
    fn a_login_that_is_a_link_stays_one() {
        let home = tempfile::tempdir().unwrap();
        let (yours, copy, mut copies) = session(home.path());
        let real = home.path().join("dotfiles.json");
        fs::rename(&yours, &real).unwrap();
        symlink(&real, &yours).unwrap();
        fs::write(&copy, login("second")).unwrap();
        copies.update();
        assert!(text(&real).contains("second") && fs::read_link(&yours).is_ok());
        // A link in the place of the copy leads nowhere.
        fs::write(home.path().join("other"), login("third")).unwrap();
        fs::remove_file(&copy).unwrap();
        symlink(home.path().join("other"), &copy).unwrap();
        copies.update();
        assert!(text(&real).contains("second"));
    }
}
