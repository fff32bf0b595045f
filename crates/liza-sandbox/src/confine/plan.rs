//! The files that a session may read and write, as data made from the role, the project and the settings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use liza_host::worktrees::WORKTREES;
use liza_ids::Network;
use serde::{Deserialize, Serialize};

use crate::sys::confinement::{Grants, TcpGrants, is_of_desktop};

use super::caches::YourCache;
use super::credentials::{IN_ETC, IN_GIT, IN_MODULE};
use super::home::{Yours, expand, files_in_home, leave_out_logins, tools_in_home};
use super::placed::Placed;
use super::readable::{LeftOut, Look, all_but};
use super::system_folders::{
    CONTAINERS, DEVICES, ETC, HOST_SERVICES, READABLE, SERVICES, SHARED_MEMORY, USER_SERVICES,
};

/// The person's settings for a session's room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomSettings {
    pub off: bool,
    /// `~` is the home folder.
    pub readable: Vec<String>,
    pub writable: Vec<String>,
    pub sockets: Vec<String>,
    pub pass_env: Vec<String>,
    /// The newest version of Landlock to use.
    pub max_abi: Option<u32>,
}

/// The facts that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub root: &'a Path,
    pub folder: &'a Path,
    /// The folder with the checkouts of agents, which may be outside the project.
    pub worktrees: &'a Path,
    pub git: &'a Path,
    /// The session's own checkout.
    pub checkout: Option<&'a Path>,
    pub scratch: &'a Path,
    /// Further folders of the session.
    pub own: &'a [PathBuf],
    /// The person's caches, which fill those of the session.
    pub caches: &'a [YourCache],
    /// Needed wherever they are.
    pub needed: &'a [PathBuf],
    pub program: Option<&'a Path>,
    pub search_path: &'a [PathBuf],
    /// The files and folders that variables of toolchains name.
    pub tools: &'a [PathBuf],
    /// The files that variables of git name as its settings.
    pub git_settings: &'a [PathBuf],
    pub home: Option<&'a Path>,
    /// Files with the password of the team's database.
    pub passwords: &'a [PathBuf],
    /// The user's number, for the names of sockets.
    pub user: u32,
    pub settings: &'a RoomSettings,
    /// The socket for the session's commands.
    pub channel: Option<&'a Path>,
    /// `None` if all of it is open.
    pub network: Option<&'a TcpGrants>,
    /// The TCP ports of services on this machine that the person has named.
    pub services: &'a [u16],
}

/// A session's grants, and the probes that must be refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub grants: Grants,
    pub not_written: Vec<PathBuf>,
    pub not_read: Vec<PathBuf>,
    pub channel: Option<PathBuf>,
    /// The session's own files that are not for code under test.
    pub private: Vec<PathBuf>,
    /// The caches of code under test; `None` if it has those of the session.
    pub check_caches: Option<PathBuf>,
    pub checkout: Option<PathBuf>,
    /// The folder in place of which a check's room has a copy; `None` if `liza check` makes a copy of the checkout.
    pub copied: Option<PathBuf>,
    /// The log that names each service of this machine that a connect was refused.
    pub log: Option<PathBuf>,
    /// The path under which a room shows the checkout too, by a link.
    pub also_at: Option<PathBuf>,
    /// The person's caches, which fill those of the session.
    pub caches: Vec<YourCache>,
    pub pass_env: Vec<String>,
    /// Services that must be unreachable: a name and a socket.
    pub not_reached: Vec<(String, PathBuf)>,
    /// The abstract name of a socket that must be unreachable.
    pub not_named: Option<String>,
    /// A server outside that must be unreachable.
    pub not_connected: Option<SocketAddr>,
    /// A server outside to which the network of a room must lead.
    pub connected: Option<SocketAddr>,
    /// What a room does with places in it. Where files are in a room only, the plan cannot be carried out without one.
    pub placed: Vec<Placed>,
}

impl Plan {
    /// The sockets that only answer questions.
    pub(super) fn harmless_services(&self) -> Vec<PathBuf> {
        let hosts = HOST_SERVICES.iter().filter(|_| self.has_names());
        USER_SERVICES.iter().chain(hosts).map(PathBuf::from).collect()
    }

    /// True if it may ask for the addresses of hosts. A name is a way to send data out.
    pub(super) fn has_names(&self) -> bool {
        self.grants.network.is_none()
    }

    pub fn network(&self) -> Network {
        if self.grants.network.is_some() { Network::ModelOnly } else { Network::Open }
    }

    /// The plan of a session that judges what is in a folder: it reads everything there, and neither writes
    /// nor runs any of it.
    pub fn judging(mut self, folder: &Path) -> Self {
        // Rights add up, so none of the others may lead there.
        let is_outside = |path: &PathBuf| !path.starts_with(folder);
        self.grants.read.retain(is_outside);
        self.grants.write.retain(is_outside);
        self.grants.only_read.push(folder.to_owned());
        self.grants.notes_programs = true;
        self.not_written.extend(self.checkout.clone());
        self
    }
}

pub fn make_plan(around: &Surroundings<'_>, look: &dyn Look) -> Plan {
    let yours = Yours::new(around.home, around.root, look);
    let left_out = left_out(around, &yours, look);
    let write = writable(around, look);
    let mut read = readable(around, &yours, look, &left_out);
    read.extend(around.needed.iter().cloned());
    read.extend(around.needed.iter().filter_map(|path| look.real(path)));
    let downloads = around.caches.iter().flat_map(YourCache::readable);
    read.extend(downloads.filter_map(|path| look.real(&path)));
    if let Some(program) = around.program {
        let folder = installation(program, &yours, look).map(|folder| all_but(look, &folder, &left_out));
        read.extend(folder.into_iter().flatten().chain([program.to_owned()]).chain(look.real(program)));
    }
    read.extend(around.settings.readable.iter().map(|path| expand(path, around.home)));
    read.sort();
    read.dedup();
    let devices = DEVICES.iter().map(PathBuf::from).collect();
    let mut sockets: Vec<PathBuf> = around.channel.iter().map(|path| path.to_path_buf()).collect();
    sockets.extend(around.settings.sockets.iter().map(|path| expand(path, around.home)));
    let protected = [around.root, around.folder, around.git, around.worktrees, Path::new(ETC)].into_iter();
    let protected = protected.chain(around.home).map(Path::to_owned);
    Plan {
        not_written: protected.collect(),
        not_read: left_out.paths().to_vec(),
        not_reached: services(around.user),
        channel: around.channel.map(Path::to_owned),
        private: Vec::new(),
        check_caches: None,
        checkout: around.checkout.map(Path::to_owned),
        copied: None,
        log: None,
        also_at: around.checkout.and_then(|checkout| documented_place(around, checkout)),
        caches: around.caches.to_vec(),
        pass_env: around.settings.pass_env.clone(),
        not_named: None,
        not_connected: None,
        connected: None,
        placed: Vec::new(),
        grants: Grants {
            read,
            only_read: Vec::new(),
            write,
            devices,
            sockets,
            network: around.network.cloned(),
            services: around.services.to_vec(),
            max_abi: around.settings.max_abi,
            notes_programs: false,
        },
    }
}

/// The place of a checkout below the root, where documents and the blackboard say that it is.
fn documented_place(around: &Surroundings<'_>, checkout: &Path) -> Option<PathBuf> {
    let name = checkout.strip_prefix(around.worktrees).ok()?;
    (!checkout.starts_with(around.root)).then(|| around.root.join(WORKTREES).join(name))
}

/// The folder of the agent program with everything that belongs to it.
fn installation(program: &Path, yours: &Yours, look: &dyn Look) -> Option<PathBuf> {
    yours.installation(&look.real(program).unwrap_or_else(|| program.to_owned()))
}

fn left_out(around: &Surroundings<'_>, yours: &Yours, look: &dyn Look) -> LeftOut {
    let mut left_out = LeftOut::default();
    left_out.add_path(look, around.folder);
    if !around.worktrees.starts_with(around.root) {
        left_out.add_path(look, &around.root.join(WORKTREES));
    }
    around.passwords.iter().for_each(|file| left_out.add_path(look, file));
    leave_out_logins_and_settings(&mut left_out, around, yours, look);
    left_out.add(look, Path::new(ETC), IN_ETC);
    for cache in around.caches {
        left_out.add(look, &cache.folder, cache.hidden());
    }
    left_out.add(look, around.git, IN_GIT);
    for module in submodules(around.git, look) {
        left_out.add(look, &module, IN_MODULE);
    }
    left_out
}

/// Leaves out the logins of the home folder, and those that settings of tools can have.
pub(super) fn leave_out_logins_and_settings(
    left_out: &mut LeftOut,
    around: &Surroundings<'_>,
    yours: &Yours,
    look: &dyn Look,
) {
    if let Some(home) = around.home {
        leave_out_logins(left_out, look, home);
    }
    // What the system has for all its users is no secret of one.
    let is_of_system = |folder: &PathBuf| READABLE.iter().any(|system| folder.starts_with(system));
    let program = around.program.and_then(|program| installation(program, yours, look));
    let tools = tool_folders(around, yours, look).into_iter().chain(program);
    tools
        .filter(|folder| !is_of_system(folder))
        .for_each(|folder| left_out.add_settings_of_tools(look, &folder));
}

/// The folders of tools: those of the search path, those that variables name, and the known ones of the home folder.
fn tool_folders(around: &Surroundings<'_>, yours: &Yours, look: &dyn Look) -> Vec<PathBuf> {
    let searched = around.search_path.iter().filter_map(|folder| yours.searched(folder));
    let in_home =
        real_home(around).into_iter().flat_map(|home| tools_in_home(home, around.tools, yours, look));
    searched.chain(in_home).collect()
}

/// The root folder is not a home folder.
fn real_home<'a>(around: &Surroundings<'a>) -> Option<&'a Path> {
    around.home.filter(|home| home.parent().is_some())
}

/// The repositories of submodules, which can contain others.
fn submodules(git: &Path, look: &dyn Look) -> Vec<PathBuf> {
    let direct = look.entries(&git.join("modules"));
    let nested: Vec<PathBuf> = direct.iter().flat_map(|module| submodules(module, look)).collect();
    direct.into_iter().chain(nested).collect()
}

fn writable(around: &Surroundings<'_>, look: &dyn Look) -> Vec<PathBuf> {
    let mut write: Vec<PathBuf> = around.checkout.iter().map(|path| path.to_path_buf()).collect();
    write.push(around.scratch.to_owned());
    write.extend(around.own.iter().cloned());
    // Links are not followed to writable paths; these are yours, and no session can change where they lead.
    let yours = around.settings.writable.iter().map(|path| expand(path, around.home));
    let yours = yours.chain([SHARED_MEMORY.into()]);
    write.extend(yours.map(|path| look.real(&path).unwrap_or(path)));
    write.sort();
    write.dedup();
    write
}

pub(super) fn readable(
    around: &Surroundings<'_>,
    yours: &Yours,
    look: &dyn Look,
    left_out: &LeftOut,
) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    folders.extend([PathBuf::from(ETC), around.root.to_owned(), around.git.to_owned()]);
    folders.extend(borrowed_objects(&around.git.join("objects"), look));
    folders.extend(tool_folders(around, yours, look));
    folders.extend(
        real_home(around).into_iter().flat_map(|home| files_in_home(home, around.git_settings, look)),
    );
    folders.iter().flat_map(|folder| all_but(look, folder, left_out)).collect()
}

/// The number of repositories that are followed when a project borrows objects.
const BORROWED_MAX: usize = 16;

/// The object folders of other repositories that a repository borrows from.
fn borrowed_objects(objects: &Path, look: &dyn Look) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = vec![objects.to_owned()];
    let mut next = 0;
    // Repositories can borrow from each other in a chain.
    while let Some(folder) = found.get(next).cloned().filter(|_| next < BORROWED_MAX) {
        let text = look.text(&folder.join("info/alternates")).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        found.extend(lines.map(|line| folder.join(line)).take(BORROWED_MAX));
        next += 1;
    }
    found.split_off(1)
}

fn services(user: u32) -> Vec<(String, PathBuf)> {
    let socket = |path: &str| PathBuf::from(path.replace("{uid}", &user.to_string()));
    SERVICES.iter().chain(CONTAINERS).map(|(name, path)| ((*name).to_owned(), socket(path))).collect()
}

/// True for a socket by which everything of the person could be reached, which nobody should be asked to open.
pub fn rules_everything(socket: &Path) -> bool {
    is_of_desktop(socket) || CONTAINERS.iter().any(|(_, path)| socket == Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::readable::tests::FakeLook;

    fn disk() -> FakeLook {
        FakeLook::default()
            .with("/home/a", &[".ssh", ".gitconfig", "project", "database-login"])
            .with("/home/a/project", &[".liza", ".git", ".worktrees", "src"])
            .with("/home/a/project/.git", &["objects", "config", "hooks", "liza"])
            .with("/etc", &["shadow", "passwd", "team"])
            .with("/etc/team", &["login", "other"])
    }

    fn plan_with(settings: &RoomSettings, look: &FakeLook) -> Plan {
        plan_of(Path::new("/data/tool/node_modules/agent/bin/agent"), settings, look)
    }

    fn plan_of(program: &Path, settings: &RoomSettings, look: &FakeLook) -> Plan {
        let own = [PathBuf::from("/home/a/project/.liza/clients/coder-1")];
        let cargo = [YourCache { variable: "CARGO_HOME".to_owned(), folder: "/data/cargo".into() }];
        let around = Surroundings {
            root: Path::new("/home/a/project"),
            folder: Path::new("/home/a/project/.liza"),
            git: Path::new("/home/a/project/.git"),
            worktrees: Path::new("/home/a/project/.worktrees"),
            checkout: Some(Path::new("/home/a/project/.worktrees/t1")),
            scratch: Path::new("/home/a/project/.liza/tmp/coder-1"),
            own: &own,
            caches: &cargo,
            needed: &[PathBuf::from("/srv/prompt.md")],
            program: Some(program),
            search_path: &[
                PathBuf::from("/data/sdk/bin"),
                PathBuf::from("bin"),
                PathBuf::from("/home/a/.local/bin"),
                PathBuf::from("/home/a/tools/node-22/bin"),
            ],
            tools: &["/home/a/jdk", "/home/a", "/home/a/.local", "/home/a/.dotnet"].map(PathBuf::from),
            git_settings: &[PathBuf::from("/home/a/own.gitconfig")],
            home: Some(Path::new("/home/a")),
            passwords: &[PathBuf::from("/home/a/database-login"), PathBuf::from("/etc/team/login")],
            user: 7,
            settings,
            channel: Some(Path::new("/run/liza/1")),
            network: None,
            services: &[5432],
        };
        make_plan(&around, look)
    }

    fn has(paths: &[PathBuf], path: &str) -> bool {
        paths.iter().any(|granted| Path::new(path).starts_with(granted))
    }

    /// Covers: IS-03, IS-14, AX-37
    #[test]
    fn a_session_reads_the_system_and_the_project_without_secrets() {
        let plan = plan_with(&RoomSettings::default(), &disk());
        let read = &plan.grants.read;
        for path in [
            "/usr/bin/git",
            "/etc/passwd",
            "/etc/team/other",
            "/home/a/.gitconfig",
            "/home/a/project/src/main.rs",
            "/home/a/project/.git/objects/ab",
            "/home/a/project/.git/hooks/pre-commit",
            "/srv/prompt.md",
            "/data/tool/node_modules/other/lib.js",
            "/data/sdk/bin/x",
            "/data/sdk/lib/x",
        ] {
            assert!(has(read, path), "{path} in {read:#?}");
        }
        for path in [
            "/etc/shadow",
            "/etc/team/login",
            "/home/a/database-login",
            "/home/a/.ssh/id_rsa",
            "/home/a/project/.liza/state.yaml",
            "/home/a/project/.git/config",
            "/home/a/project/.git/liza/state.yaml",
            "/home/b",
            "/data/tool/secret",
            "/tmp/x",
            "/var/lib/docker",
        ] {
            assert!(!has(read, path), "{path} in {read:#?}");
        }
        assert!(plan.not_read.contains(&"/home/a/.ssh".into()));
    }

    /// Covers: IS-03
    #[test]
    fn a_session_writes_its_own_folders_only() {
        let plan = plan_with(&RoomSettings::default(), &disk());
        let write = &plan.grants.write;
        for path in [
            "/home/a/project/.worktrees/t1/src",
            "/home/a/project/.liza/tmp/coder-1/x",
            "/home/a/project/.liza/clients/coder-1/settings.json",
        ] {
            assert!(has(write, path), "{path} in {write:#?}");
        }
        for path in [
            "/home/a/project/src",
            "/home/a/project/.git/refs",
            "/home/a/project/.worktrees/t2",
            "/home/a/project/.liza/state.yaml",
            "/home/a/project/.liza/tmp/coder-2",
            "/home/a/.bashrc",
            "/tmp/x",
        ] {
            assert!(!has(write, path), "{path} in {write:#?}");
        }
        assert_eq!(plan.grants.sockets, [PathBuf::from("/run/liza/1")]);
    }

    /// Covers: IS-14, RO-02
    #[test]
    fn of_the_home_folder_only_tools_are_readable_and_settings_add_to_it() {
        let look =
            disk().with("/home/a/.liza", &["CORE.md", "state.yaml"]).with("/home/a/.config/git", &["config"]);
        let settings = RoomSettings {
            readable: vec!["~/.npmrc".to_owned()],
            writable: vec!["/var/cache/shared".to_owned()],
            ..RoomSettings::default()
        };
        let plan = plan_with(&settings, &look);
        for path in [
            "/home/a/.rustup/toolchains/stable/bin/cargo",
            "/home/a/.local/bin/uv",
            "/home/a/tools/node-22/lib/node_modules/npm/index.js",
            "/home/a/jdk/lib/modules",
            "/home/a/.npmrc",
            "/home/a/.liza/CORE.md",
            "/home/a/project/src/main.rs",
        ] {
            assert!(has(&plan.grants.read, path), "{path} in {:#?}", plan.grants.read);
        }
        for path in [
            "/home/a/.local/share/keyrings/login",
            "/home/a/.liza/state.yaml",
            "/home/a/.bashrc",
            "/home/a/src/other/lib.rs",
            "/home/a/.config/gh/hosts.yml",
        ] {
            assert!(!has(&plan.grants.read, path), "{path} in {:#?}", plan.grants.read);
        }
        assert!(has(&plan.grants.write, "/var/cache/shared/x"));
    }

    /// Covers: RO-02
    #[test]
    fn an_agent_program_among_others_is_readable_alone() {
        let mut look = disk();
        // The home folder and another one are at other places than their names say.
        look.links.insert("/home/a".into(), "/disk/a".into());
        look.links.insert("/home/a/.cache".into(), "/big/cache".into());
        for (program, beside) in [
            ("/home/a/.local/bin/agent", "/home/a/.local/share/keyrings/login"),
            ("/disk/a/.local/bin/agent", "/disk/a/.local/share/keyrings/login"),
            ("/home/a/bin/agent", "/home/a/yours"),
            ("/disk/a/agent", "/disk/a/yours"),
            ("/home/a/.agent/bin/agent", "/home/a/.agent/auth.json"),
            ("/home/a/.local/share/agent", "/home/a/.local/share/keyrings/login"),
            ("/big/cache/agent", "/big/cache/huggingface/token"),
        ] {
            let read = plan_of(Path::new(program), &RoomSettings::default(), &look).grants.read;
            assert!(has(&read, program) && !has(&read, beside), "{program}: {read:#?}");
        }
        let own = Path::new("/home/a/.local/share/agent/versions/1");
        let read = plan_of(own, &RoomSettings::default(), &look).grants.read;
        assert!(has(&read, "/home/a/.local/share/agent/versions/library"), "{read:#?}");
    }

    /// Covers: RO-02
    #[test]
    fn of_the_folders_of_tools_only_those_with_code_are_readable() {
        let look = disk()
            .with("/home/a/.dotnet", &["dotnet", "corefx", "sdk"])
            .with("/home/a/.opam", &["5.3", "plugins"])
            .with("/home/a/.opam/plugins", &["opam-publish"])
            .with("/home/a/miniconda3", &["bin", "conda-meta", ".condarc", "condarc.d"])
            .with("/home/a/sdk", &["go1.24.1", "shop"])
            .with("/home/a/tools/node-22", &["bin", "etc", "lib"])
            .with("/home/a/tools/node-22/etc", &["npmrc", "bash_completion.d"])
            .with("/home/a/.nvm", &["nvm.sh", "versions"])
            .with("/home/a/.nvm/versions", &["node"])
            .with("/home/a/.nvm/versions/node", &["v22"])
            .with("/home/a/.nvm/versions/node/v22", &["bin", "etc"])
            .with("/home/a/.nvm/versions/node/v22/etc", &["npmrc"])
            .with("/home/a/jdk", &["lib", "credentials.toml"])
            .with("/data/tool/node_modules", &["agent", "npmrc"]);
        let read = plan_with(&RoomSettings::default(), &look).grants.read;
        for path in [
            ".dotnet/sdk/9/csc.dll",
            ".opam/5.3/bin/ocaml",
            "miniconda3/bin/python",
            "sdk/go1.24.1/bin/go",
            ".local/share/uv/python/3.13/bin/python",
            "tools/node-22/bin/node",
            "tools/node-22/etc/bash_completion.d/npm",
            ".nvm/nvm.sh",
            ".nvm/versions/node/v22/bin/node",
            "jdk/lib/modules",
        ] {
            assert!(has(&read, &format!("/home/a/{path}")), "{path}: {read:#?}");
        }
        for path in [
            ".dotnet/corefx/cryptography/x509stores/my/key.pfx",
            ".opam/plugins/opam-publish/me.token",
            "miniconda3/.condarc",
            "miniconda3/condarc.d/token.yml",
            "sdk/shop/.env",
            "tools/node-22/etc/npmrc",
            ".nvm/versions/node/v22/etc/npmrc",
            "jdk/credentials.toml",
            ".local/share/uv/credentials/credentials.toml",
            ".local/share/keyrings/login",
        ] {
            assert!(!has(&read, &format!("/home/a/{path}")), "{path}: {read:#?}");
        }
    }

    /// Covers: IS-14, RO-02
    #[test]
    fn files_that_gits_settings_name_are_readable_since_git_fails_without_them() {
        let mut look = disk();
        let settings = "[include]\n\tpath = work.inc\n[core]\n\texcludesFile = ~/.ignored\n[filter \"x\"]\n\tclean = \
                        /home/a/filters/x --clean\n[credential]\n\thelper = store --file ~/.secrets\n";
        look.texts.insert("/home/a/.gitconfig".into(), settings.to_owned());
        look.texts.insert("/home/a/work.inc".into(), "[core]\n\thooksPath = ~/hooks\n".to_owned());
        let read = plan_with(&RoomSettings::default(), &look).grants.read;
        for file in [".gitconfig", "work.inc", ".ignored", "filters/x", "hooks/pre-commit", "own.gitconfig"] {
            assert!(has(&read, &format!("/home/a/{file}")), "{file}: {read:#?}");
        }
        assert!(!has(&read, "/home/a/.secrets"), "{read:#?}");
    }

    /// Covers: IS-04, IS-14
    #[test]
    fn the_objects_that_the_project_borrows_are_readable() {
        let mut look = disk();
        let file = "/home/a/project/.git/objects/info/alternates";
        look.texts.insert(file.into(), "/srv/mirror/objects\n# note\n".to_owned());
        assert!(has(&plan_with(&RoomSettings::default(), &look).grants.read, "/srv/mirror/objects/ab/cd"));
    }

    /// Covers: IS-03
    #[test]
    fn of_devices_only_harmless_ones_are_granted() {
        let plan = plan_with(&RoomSettings::default(), &disk());
        let names: Vec<_> =
            plan.grants.devices.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["null", "zero", "full", "random", "urandom", "tty", "ptmx"]);
        assert!(plan.grants.write.contains(&SHARED_MEMORY.into()));
    }
}
