//! The places of an agent program's settings, login and conversations, and its files in a checkout.

#[derive(Debug)]
pub struct ClientPlaces {
    pub program: &'static str,
    /// The variable that names its folder.
    pub variable: Option<&'static str>,
    /// Below the home folder, without the variable.
    pub folder: &'static str,
    pub files: &'static [&'static str],
    pub logins: &'static [&'static str],
    /// Without the variable: a file beside the folder, and its place if the folder is another one.
    pub beside: Option<(&'static str, &'static str)>,
    /// Further variables that name folders inside a private one.
    pub further: &'static [(&'static str, &'static str)],
    /// Below both: the conversations, if one of them can be resumed.
    pub conversations: Option<&'static str>,
    /// Names of files and folders of a checkout from which it takes settings, hooks, plugins or its environment.
    pub in_checkouts: &'static [&'static str],
}

impl ClientPlaces {
    /// A program whose folder is named by a variable.
    pub(super) const fn new(program: &'static str, variable: &'static str, folder: &'static str) -> Self {
        Self { variable: Some(variable), folder, ..Self::in_data_folders(program) }
    }

    /// A program that keeps its files where the system's variables for data say.
    pub(super) const fn in_data_folders(program: &'static str) -> Self {
        Self {
            program,
            variable: None,
            folder: "",
            files: &[],
            logins: &[],
            beside: None,
            further: &[],
            conversations: None,
            in_checkouts: &[],
        }
    }
}

/// The folders of data and state, as variables name them.
pub(super) const DATA_FOLDERS: &[(&str, &str)] =
    &[("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state")];
