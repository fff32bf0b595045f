//! Programs in a repository's own configuration. Liza's git runs only those that the human has accepted.
//!
//! An agent can write the configuration of its repository, so filters and helpers count only if the person
//! set them for all repositories (`git config --global`) or accepted them for this one. Hooks and the file
//! system monitor never run. Decides from text; runs nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use liza_sandbox::confine::KeptFilters;

/// Settings of every git command: no hooks, no file system monitor, no signature checks in lists of commits.
pub(crate) const ALWAYS: [(&str, &str); 2] =
    [("core.hooksPath", "/dev/null"), ("log.showSignature", "false")];

/// Commands that run no program of the configuration, so that it need not be read. Merges run in isolation.
const SAFE: [&str; 18] = [
    "cat-file",
    "config",
    "diff-tree",
    "fast-import",
    "for-each-ref",
    "hash-object",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "reflog",
    "rev-list",
    "rev-parse",
    "show-ref",
    "symbolic-ref",
    "update-ref",
    "var",
    "version",
    "write-tree",
];

/// True if git may run a program that the configuration names.
pub(crate) fn may_run_programs(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter();
    let mut verb = None;
    while let Some(word) = words.next() {
        if word == "-c" {
            words.next();
        } else if !word.as_bytes().starts_with(b"-") {
            verb = word.to_str();
            break;
        }
    }
    let rest: Vec<&OsString> = words.collect();
    let has = |word: &str| rest.iter().any(|other| *other == word);
    match verb {
        Some("worktree") => !has("list"),
        // It writes no files unless asked to.
        Some("read-tree") => has("-u"),
        Some("commit-tree") => has("-S"),
        // It compares files, as filters leave them.
        Some("ls-files") => has("--modified"),
        Some(verb) => !SAFE.contains(&verb),
        None => true,
    }
}

/// Replacements of a repository's settings that would run a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    pub settings: Vec<(OsString, OsString)>,
    /// The repository's settings that don't apply.
    pub ignored: Vec<String>,
}

/// A setting of the repository's own configuration that names a program or concerns signing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSetting {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl ProgramSetting {
    /// As git prints it: the key and the value, with a line break between them; a key contains none.
    pub fn entry(&self) -> Vec<u8> {
        [self.key.as_slice(), b"\n", &self.value].concat()
    }

    /// Parses the output of [`ProgramSetting::entry`].
    pub fn parse(entry: &[u8]) -> Option<Self> {
        let end = entry.iter().position(|byte| *byte == b'\n')?;
        Some(Self { key: entry[..end].to_owned(), value: entry[end + 1..].to_owned() })
    }
}

/// The repository's own settings that name a program or concern signing, from the output of `git config
/// --list --show-scope -z`.
pub(crate) fn program_settings(output: &[u8]) -> Vec<ProgramSetting> {
    let settings = settings(output);
    let own = settings.iter().filter(|setting| setting.local && is_watched(setting.key));
    own.map(Setting::to_program).collect()
}

struct Setting<'a> {
    /// True if it is the repository's own.
    local: bool,
    key: &'a [u8],
    value: &'a [u8],
}

impl Setting<'_> {
    fn to_program(&self) -> ProgramSetting {
        ProgramSetting { key: self.key.to_owned(), value: self.value.to_owned() }
    }
}

impl Overrides {
    /// Parses the output of `git config --list --show-scope -z`; a setting that `may_run` stays as it is. The
    /// second argument of `may_run` is true for the repository's own settings.
    pub(crate) fn parse(output: &[u8], may_run: impl Fn(&ProgramSetting, bool) -> bool) -> Self {
        let mut settings = settings(output);
        // The person's own filters don't run among an agent's files if they could load something from there.
        let refused = |setting: &Setting<'_>| {
            !setting.local && filter_of(setting.key).is_some() && !may_run(&setting.to_program(), false)
        };
        settings.iter_mut().for_each(|setting| setting.local |= refused(setting));
        let mut overrides = Self::default();
        let mut seen: Vec<&[u8]> = Vec::new();
        for setting in settings.iter().filter(|setting| setting.local) {
            let Some(neutral) = neutral_value(setting.key) else { continue };
            if seen.contains(&setting.key) {
                continue;
            }
            seen.push(setting.key);
            let mut values = settings.iter().filter(|other| other.local && other.key == setting.key);
            if values.all(|value| may_run(&value.to_program(), true)) {
                continue;
            }
            let own: Vec<&[u8]> = settings
                .iter()
                .filter(|other| !other.local && other.key == setting.key)
                .map(|other| other.value)
                .collect();
            overrides.replace(setting, &own, neutral);
        }
        overrides
    }

    /// Replaces a setting by the person's own ones, or by a value that runs nothing.
    fn replace(&mut self, setting: &Setting<'_>, own: &[&[u8]], neutral: &str) {
        let mut set = |key: &[u8], value: &[u8]| {
            self.settings.push((OsStr::from_bytes(key).to_owned(), OsStr::from_bytes(value).to_owned()));
        };
        let is_list = setting.key.ends_with(b".helper");
        if is_list || own.is_empty() {
            set(setting.key, neutral.as_bytes());
        }
        own.iter().for_each(|value| set(setting.key, value));
        if own.contains(&setting.value) {
            return;
        }
        // A file that needs this filter is an error: without it, its content would be wrong.
        if let Some(filter) = filter_of(setting.key).filter(|_| own.is_empty()) {
            set(&[filter, b".required"].concat(), b"true");
        }
        self.ignored.push(String::from_utf8_lossy(setting.key).into_owned());
    }

    pub(crate) fn stop_filters(&mut self, output: &[u8]) {
        for (key, _) in each_setting(output) {
            let neutral = if is_filter(key) { "" } else { "false" };
            if is_filter(key) || (filter_of(key).is_some() && key.ends_with(b".required")) {
                self.settings.push((OsStr::from_bytes(key).to_owned(), neutral.into()));
            }
        }
    }

    /// The filters that would run, each below a keeper. Git LFS runs nothing of a checkout, and keeps files.
    pub(crate) fn keep_filters(&self, output: &[u8], liza: &Path) -> KeptFilters {
        let replaced = self.settings.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        let all = each_setting(output).chain(replaced).filter(|(key, _)| is_filter(key));
        let used: BTreeMap<&[u8], &[u8]> = all.collect();
        let mut kept = KeptFilters::default();
        for (key, command) in used {
            if !command.is_empty() && !is_large_files(command) {
                let [key, command] = [key, command].map(OsStr::from_bytes);
                kept.add(liza, key, command, !key.as_bytes().ends_with(b".process"));
            }
        }
        kept
    }

    /// A note for an error of a command that ran without these programs.
    pub(crate) fn advice(&self) -> Option<String> {
        let first = self.ignored.first()?;
        let more = match self.ignored.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "Liza runs no program of the repository's own configuration that you have not accepted, and among agents' files no filter that could load something from there ({first}{more}); if it is yours: liza config --trust, or name a program outside of the project by its whole path"
        ))
    }
}

/// The settings of the repository itself: neither the person's nor those of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalSettings(Vec<(String, String)>);

impl LocalSettings {
    /// Parses the output of `git config --list --show-scope -z`, without values that are not text.
    pub(crate) fn parse(output: &[u8]) -> Self {
        let mut fields = output.split(|byte| *byte == 0);
        let mut settings = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let Ok(entry) = std::str::from_utf8(entry) else { continue };
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            if matches!(scope, b"local" | b"worktree") {
                settings.push((key.to_owned(), value.to_owned()));
            }
        }
        Self(settings)
    }

    /// In the order in which they apply.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }
}

/// In the order in which they apply.
fn settings(output: &[u8]) -> Vec<Setting<'_>> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut settings = Vec::new();
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(b"true"));
        settings.push(Setting { local: !matches!(scope, b"system" | b"global"), key, value });
    }
    settings
}

/// The settings that a command would read, and their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The output of `git config --list --show-scope -z`.
    pub list: Vec<u8>,
    pub files: Vec<PathBuf>,
}

/// Parses the output of `git config --list --show-scope --show-origin -z`.
pub(crate) fn split_origins(output: &[u8]) -> Settings {
    let (mut list, mut files) = (Vec::new(), Vec::new());
    let mut fields = output.split(|byte| *byte == 0);
    while let (Some(scope), Some(origin), Some(entry)) = (fields.next(), fields.next(), fields.next()) {
        for field in [scope, entry] {
            list.extend_from_slice(field);
            list.push(0);
        }
        if let Some(file) = origin.strip_prefix(b"file:") {
            let file = PathBuf::from(OsStr::from_bytes(file));
            if file.is_absolute() && files.last() != Some(&file) {
                files.push(file);
            }
        }
    }
    Settings { list, files }
}

/// The keys and values of `git config --list --show-scope -z`, in the order in which they apply.
pub(crate) fn each_setting(output: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    settings(output).into_iter().map(|setting| (setting.key, setting.value))
}

/// The value with which a setting runs no program of the repository; `None` if it names no program.
fn neutral_value(key: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(key);
    let (section, rest) = text.split_once('.')?;
    let name = rest.rsplit_once('.').map_or(rest, |(_, name)| name);
    let middle = rest.strip_suffix(name)?.trim_end_matches('.');
    match (section, middle, name) {
        ("filter", _, "clean" | "smudge" | "process") => Some(""),
        ("gpg", "x509", "program") => Some("gpgsm"),
        ("gpg", "ssh", "program") => Some("ssh-keygen"),
        ("gpg", _, "program") => Some("gpg"),
        ("gpg", "ssh", "defaultkeycommand") | ("credential", _, "helper") => Some(""),
        ("core", "", "sshcommand") => Some("ssh"),
        ("core", "", "gitproxy") => Some("none"),
        ("core", "", "alternaterefscommand") => Some("true"),
        ("remote", _, "uploadpack") => Some("git-upload-pack"),
        ("remote", _, "receivepack") => Some("git-receive-pack"),
        _ => None,
    }
}

/// True if a change of the setting counts: it names a program, or concerns signing.
fn is_watched(key: &[u8]) -> bool {
    let text = String::from_utf8_lossy(key);
    let (section, name) =
        (text.split('.').next().unwrap_or_default(), text.rsplit('.').next().unwrap_or_default());
    match (section, name) {
        ("filter" | "gpg", _) | ("merge", "driver") => true,
        _ => matches!(&*text, "commit.gpgsign" | "user.signingkey") || neutral_value(key).is_some(),
    }
}

/// True for a setting of a program that git runs on the files of a checkout.
pub(crate) fn is_run_on_files(key: &str) -> bool {
    let is_diff = key.starts_with("diff.") && [".textconv", ".command"].iter().any(|end| key.ends_with(end));
    is_diff || key == "diff.external" || is_filter(key.as_bytes())
}

/// True if a command is one of Git LFS and nothing else, so that no name of a file can become a part of it.
pub(crate) fn is_large_files(command: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" -_./%".contains(byte);
    let mut words = command.split(|byte| *byte == b' ');
    let program = words.next().and_then(|word| word.rsplit(|byte| *byte == b'/').next());
    let is_its_own = program == Some(b"git-lfs") || (program == Some(b"git") && words.next() == Some(b"lfs"));
    is_its_own && command.iter().all(is_plain)
}

fn is_filter(key: &[u8]) -> bool {
    let ends = [&b".clean"[..], b".smudge", b".process"];
    filter_of(key).is_some() && ends.iter().any(|end| key.ends_with(end))
}

/// `filter.NAME` of a setting of a filter.
fn filter_of(key: &[u8]) -> Option<&[u8]> {
    let end = key.iter().rposition(|byte| *byte == b'.')?;
    key.starts_with(b"filter.").then_some(&key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn pairs(overrides: &Overrides) -> Vec<String> {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        overrides.settings.iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect()
    }

    /// Covers: AT-01
    #[test]
    fn only_commands_that_may_run_programs_need_the_configuration() {
        for safe in [
            "rev-parse HEAD",
            "-c a=b update-ref x",
            "worktree list --porcelain",
            "read-tree -i -m a",
            "commit-tree a -p b",
        ] {
            assert!(!may_run_programs(&words(safe)), "{safe}");
        }
        for other in
            ["worktree add x", "status", "-c rev-parse=1 add .", "read-tree -m -u a b", "commit-tree -S"]
        {
            assert!(may_run_programs(&words(other)), "{other}");
        }
    }

    /// Covers: IS-08
    #[test]
    fn git_lfs_writes_to_its_own_folder_and_has_no_keeper() {
        let kept = |command: &str| {
            let output = format!("global\0filter.x.clean\n{command}\0");
            !Overrides::default().keep_filters(output.as_bytes(), Path::new("/liza")).is_empty()
        };
        for command in ["git-lfs clean -- %f", "git lfs clean %f", "/opt/lfs/git-lfs filter-process", ""] {
            assert!(!kept(command), "{command}");
        }
        for command in
            ["git-lfs-fake clean", "git lfsx", "cat", "sh -c git-lfs", "git-lfs clean \"%f\"", "git-lfs x; y"]
        {
            assert!(kept(command), "{command}");
        }
    }

    /// Covers: AT-01
    #[test]
    fn programs_of_the_repository_are_replaced_and_those_of_the_person_stay() {
        let config = b"global\0filter.lfs.clean\ngit-lfs clean\0global\0user.name\nMe\0\
            local\0filter.lfs.clean\nevil\0local\0filter.a.b.smudge\nevil\0worktree\0gpg.program\nevil\0\
            local\0user.name\nOther\0local\0core.bare\0global\0credential.helper\nstore\0\
            local\0credential.helper\n!evil\0";
        let overrides = Overrides::parse(config, |_, local| !local);
        let expected = [
            "filter.lfs.clean=git-lfs clean",
            "filter.a.b.smudge=",
            "filter.a.b.required=true",
            "gpg.program=gpg",
            "credential.helper=",
            "credential.helper=store",
        ];
        assert_eq!(pairs(&overrides), expected);
        assert_eq!(overrides.ignored.len(), 4);
        let advice = overrides.advice().unwrap();
        assert!(advice.contains("filter.lfs.clean and 3 more"), "{advice}");
        assert_eq!(
            Overrides::parse(b"global\0filter.x.clean\ny\0local\0filter.x.clean\ny\0", |_, local| !local)
                .ignored
                .len(),
            0
        );
    }
}
