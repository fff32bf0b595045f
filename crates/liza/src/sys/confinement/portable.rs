//! Where the system has no confinement that Liza knows: nothing is restricted, and that is reported.

use super::{Grants, Restrictions};

/// Restricts nothing.
pub(super) fn restrict(_: &Grants) -> Restrictions {
    let missing = || Some("this system has no Landlock".to_owned());
    Restrictions { files: missing(), calls: missing(), capabilities: None }
}

/// Nothing to try: everything is possible.
#[derive(Debug)]
pub(super) struct Witnesses;

impl Witnesses {
    pub(super) fn prepare() -> Self {
        Self
    }

    pub(super) fn still_possible(&self) -> Vec<String> {
        vec!["system calls are not filtered".to_owned()]
    }
}
