//! How rooms begin: where the kernel lacks a piece, or a process of the start is killed, there is no room and nothing is left.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::Status;
use liza_sandbox::confine::start::{NO_SPEAKER, stage_command};
use liza_sandbox::confine::{Level, Placed, PlacedFiles, StageInput, wrapped_stage_command};
use liza_testkit::evidence::tried;

use crate::fixture::{Bench, CODER};
use crate::rooms::{Keeper, MARK, keeper_of_liza, left, order_of, place};
use crate::support::process::{Running, wait_for};

/// Waits until no process of the test is left.
#[track_caller]
fn until_nothing_is_left(place: &Path) {
    wait_for("nothing is left", || (left(place) == 0).then_some(()));
}

/// Covers: RO-07
#[test]
fn a_killed_supervisor_leaves_no_room_however_early() {
    let kills = if std::env::var_os("LIZA_FULL").is_some() { 1000 } else { 50 };
    let folder = place();
    for number in 0..kills {
        let keeper = Keeper::of_liza(folder.path(), "exec sleep 1000", Stdio::null());
        // From before its first instruction to after the start of the program.
        let moment = Instant::now() + Duration::from_micros(number as u64 % 50 * 1500);
        thread::sleep(moment.saturating_duration_since(Instant::now()));
        keeper.kill();
    }
    until_nothing_is_left(folder.path());
    let mut keeper = Keeper::of_liza(folder.path(), "exec sleep 1000", Stdio::null());
    keeper.started();
    assert!(left(folder.path()) > 1, "a program that runs is found");
    keeper.kill();
    until_nothing_is_left(folder.path());
    tried("a room's supervisor is killed while the room begins: nothing is left", kills);
}

/// Runs a command in which one system call is refused, or kills who makes it: a kernel without it, and a death at that step.
/// With an index, only calls with that value there. `listen` takes the only listener of the command's system calls.
const WITHOUT_CALL: &str = r#"
my ($action, $number, $index, $value, @command) = @ARGV;
sub step { pack("S C C L", @_) }
my $filter = step(0x20, 0, 0, 0);
$filter .= $index eq ""
    ? step(0x15, 0, 1, $number)
    : step(0x15, 0, 3, $number) . step(0x20, 0, 0, 16 + 8 * $index) . step(0x15, 0, 1, $value);
$filter .= step(0x06, 0, 0, $action eq "listen" ? 0x7fff0000 : $action) . step(0x06, 0, 0, 0x7fff0000);
my $program = pack("S x6 P", length($filter) / 8, $filter);
my ($prctl, $seccomp) = `uname -m` =~ /x86_64/ ? (157, 317) : (167, 277);
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "privileges: $!";
my $installed = $action eq "listen" ? syscall($seccomp, 1, 8, $program) : syscall($prctl, 22, 2, $program, 0, 0);
$installed >= 0 or die "no filter: $!";
if ($action eq "listen" && fork) { wait; exit }
exec @command;
"#;

const NOT_PERMITTED: u32 = 0x0005_0000 + 1;
const NOT_IMPLEMENTED: u32 = 0x0005_0000 + 38;
const NOT_VALID: u32 = 0x0005_0000 + 22;
const KILL: u32 = 0x8000_0000;

/// A piece of the kernel that a room needs.
struct Piece {
    /// The number of its call on the two processors that Liza knows.
    call: (u32, u32),
    /// An argument of it by which it is told from other uses of the call.
    argument: Option<(u32, u32)>,
    /// What Liza says without it.
    said: &'static str,
}

const fn piece(call: (u32, u32), said: &'static str) -> Piece {
    Piece { call, argument: None, said }
}

const fn piece_with(call: (u32, u32), argument: (u32, u32), said: &'static str) -> Piece {
    Piece { call, argument: Some(argument), said }
}

const MOUNT: (u32, u32) = (165, 40);
const PRCTL: (u32, u32) = (157, 167);
const SECCOMP: (u32, u32) = (317, 277);
const WRITE: (u32, u32) = (1, 64);

/// Each step of the start, in its order.
const PIECES: [Piece; 26] = [
    piece_with(PRCTL, (0, 1), "no namespaces ("),
    piece_with(SECCOMP, (1, 0x28), "services of this machine can be reached"),
    // All namespaces at once.
    piece_with((56, 220), (0, 0x7c02_0011), "no namespaces ("),
    piece_with(WRITE, (2, 4), "no namespaces (cannot write setgroups: "),
    piece_with(WRITE, (2, 5), "no namespaces (cannot write uid_map: "),
    piece_with((16, 29), (1, 0x8914), "no namespaces (switch the loopback on: "),
    piece((50, 201), "no namespaces (listen in the room: "),
    piece((42, 203), "no namespaces (connect in the room: "),
    piece_with(MOUNT, (3, 0x4_4000), "no namespaces (make mounts private: "),
    piece_with(MOUNT, (3, 6), "no namespaces (make a root folder: "),
    piece((437, 437), "no namespaces (/"),
    piece((428, 428), "no namespaces (/"),
    piece((442, 442), "no namespaces (/"),
    piece((429, 429), "no namespaces (/"),
    piece_with(MOUNT, (3, 15), "no namespaces (/proc: "),
    piece_with(MOUNT, (3, 10), "no namespaces (/dev/pts: "),
    piece((155, 41), "no namespaces (change the root folder: "),
    piece((166, 39), "no namespaces (change the root folder: "),
    piece((126, 91), "capabilities cannot be dropped: "),
    piece_with(PRCTL, (0, 4), "no namespaces ("),
    piece((444, 444), "files are not protected (this kernel has no Landlock)"),
    piece((446, 446), "files are not protected ("),
    // Of the helper, which serves the room.
    piece((434, 434), "the network of the room leads nowhere"),
    piece((438, 438), "the network of the room leads nowhere"),
    // Of a room with a copy.
    piece((430, 430), "no copy of the files can be made: "),
    piece((432, 432), "no copy of the files can be made: "),
];

/// The command, where this call does that.
fn without(piece: &Piece, action: &str, command: &Command) -> Command {
    let number = if cfg!(target_arch = "x86_64") { piece.call.0 } else { piece.call.1 };
    let (index, value) =
        piece.argument.map_or_else(Default::default, |(index, value)| (index.to_string(), value.to_string()));
    let mut perl = Command::new("perl");
    perl.args(["-e", WITHOUT_CALL, action, &number.to_string(), &index, &value]);
    perl.arg(command.get_program()).args(command.get_args());
    let variables: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
    perl.env_clear().envs(variables);
    if let Some(folder) = command.get_current_dir() {
        perl.current_dir(folder);
    }
    perl
}

/// What a keeper says of its room, in which there is a copy of files.
fn said_with_copy(keeper: Command, place: &Path) -> String {
    let folder = |name: &str| {
        let folder = place.join(name);
        fs::create_dir_all(&folder).unwrap();
        folder.canonicalize().unwrap()
    };
    let _ = fs::remove_dir_all(place.join("work"));
    let files =
        PlacedFiles::Overlay { lower: vec![folder("lower")], upper: folder("upper"), work: folder("work") };
    let placed = [Placed { at: "/var/tmp/copied/here".into(), files }];
    let more = (&placed[..], &[][..], StageInput::Nothing);
    ended(Keeper::order_with(keeper, place, place, more, ": > ran", Stdio::null()))
}

fn said_by(keeper: Command, place: &Path) -> String {
    ended(Keeper::order(keeper, place, ": > ran", Stdio::null(), &[]))
}

fn ended(mut keeper: Keeper) -> String {
    let answer = keeper.answer();
    keeper.process.wait().unwrap();
    answer
}

/// Covers: RO-07
#[test]
fn where_the_kernel_lacks_a_piece_or_a_step_dies_there_is_no_room_and_nothing_is_left() {
    let folder = place();
    let run = |piece: &Piece, action: u32| {
        let keeper = without(piece, &action.to_string(), &keeper_of_liza());
        match piece.said.starts_with("no copy") {
            true => said_with_copy(keeper, folder.path()),
            false => said_by(keeper, folder.path()),
        }
    };
    for piece in &PIECES {
        let what = format!("{:?} {:?}", piece.call, piece.argument);
        for (errno, words) in [(NOT_PERMITTED, "not permitted"), (NOT_IMPLEMENTED, "not implemented")] {
            let refused = run(piece, errno);
            // What is found out by trying has no reason.
            let has_reason = refused.contains(words) || !piece.said.ends_with(['(', ' ']);
            let is_named = refused.contains(piece.said) && has_reason;
            assert!(is_named, "{what}: {refused}");
        }
        let killed = run(piece, KILL);
        // The helper itself says nothing.
        assert!(killed.contains("ended early") || killed.is_empty(), "{what}: {killed}");
        assert!(!folder.path().join("ran").exists(), "{what}: nothing runs below its minimum");
    }
    let nothing = piece((u32::MAX, u32::MAX), "");
    let taken = said_by(without(&nothing, "listen", &keeper_of_liza()), folder.path());
    assert!(taken.contains("services of this machine can be reached"), "{taken}");
    assert_eq!(run(&nothing, KILL), "\n", "with all of them there is a room");
    let newer = piece_with(SECCOMP, (1, 0x28), "");
    assert_eq!(run(&newer, NOT_VALID), "\n", "kernels before 5.19 refuse one of two flags");
    assert_eq!(said_with_copy(keeper_of_liza(), folder.path()), "\n");
    until_nothing_is_left(folder.path());
    tried("a room begins where the kernel lacks a piece or a step dies: none is left", 3 * PIECES.len());
}

/// As in Kubernetes and Docker, which hide parts of it.
///
/// Covers: RO-07
#[test]
fn needs_unshare_where_a_part_of_proc_is_masked_there_is_no_room() {
    let folder = place();
    for masked in ["mount --bind /dev/null /proc/uptime", "mount --bind /proc/sys /proc/sys"] {
        let mut command = Command::new("unshare");
        let line = format!("{masked} && exec \"{}\" confine --keep", env!("CARGO_BIN_EXE_liza"));
        command.args(["-Urm", "sh", "-c", &line]);
        let answer = said_by(command, folder.path());
        assert!(answer.contains("no namespaces (/proc: ") && answer.contains("not permitted"), "{answer}");
    }
    assert!(!folder.path().join("ran").exists());
}

/// Code under review runs in a copy also where no room can make one.
///
/// Covers: RO-07, RO-09
#[test]
fn without_overlays_a_review_in_a_room_checks_a_plain_copy() {
    let reviewer = r#"
"$LIZA" check -- sh -c 'echo "LOOK at $PWD"; cat t1.txt; rm t1.txt'
cat t1.txt
"$LIZA" submit-verdict "$1" APPROVED "cat: the file is what the task asks for""#;
    for has_overlays in [true, false] {
        let bench = Bench::new("sandbox: require\nsandbox_min: isolated", &[("c", CODER), ("r", reviewer)]);
        bench.project.liza(&["config", "validation", r#"["test -f t1.txt"]"#]).ok();
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        let mut command = bench.project.program();
        command.args(["agent", "code-reviewer", "--cli", "r", "--once"]).envs(bench.variables());
        if !has_overlays {
            // fsopen
            command = without(&piece((430, 430), ""), &NOT_IMPLEMENTED.to_string(), &command);
        }
        let mut running = Running::start(&bench.project, command);
        running.wait();
        let said = bench.outputs();
        assert_eq!(bench.status("t1"), Status::Merged, "{}{said}", running.output());
        assert_eq!(said.matches("[liza: confinement isolated").count(), 2, "{said}");
        let texts = said.lines().filter(|line| *line == "work on t1").count();
        assert_eq!(texts, 2, "what the check removes is there: {said}");
        let place = said.lines().find_map(|line| line.strip_prefix("LOOK at ")).unwrap();
        assert_eq!(place.contains("/caches/"), !has_overlays, "{place}");
    }
}

/// The command of the stage, which a test can start as a helper does.
fn started_by_this_thread(folder: &Path, script: &str) -> std::process::Child {
    let (mut command, socket) = stage_command(env!("CARGO_BIN_EXE_liza")).unwrap();
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env(MARK, folder);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    drop(command);
    let started = socket.start(&order_of(folder, script), NO_SPEAKER).unwrap();
    assert_eq!(started.level, Level::Isolated);
    child
}

/// Covers: RO-07
#[test]
fn a_room_ends_with_the_thread_that_started_it_and_a_keeper_does_not() {
    let folder = place();
    let start = |script: &'static str| {
        let folder = folder.path().to_owned();
        thread::spawn(move || started_by_this_thread(&folder, script)).join().unwrap()
    };
    let mut child = start("exec sleep 1000");
    let ended = wait_for("it has ended", || child.try_wait().unwrap());
    assert_eq!(ended.signal(), Some(9));
    until_nothing_is_left(folder.path());
    let script = "while [ ! -e go ]; do sleep 0.02; done; : > done; exec sleep 1000";
    let at = folder.path().to_owned();
    let keeper = thread::spawn(move || Keeper::of_liza(&at, script, Stdio::null()));
    let mut keeper = keeper.join().unwrap();
    keeper.started();
    fs::write(folder.path().join("go"), "").unwrap();
    wait_for("it goes on", || folder.path().join("done").exists().then_some(()));
    keeper.kill();
    until_nothing_is_left(folder.path());
}

/// The system calls of a room's start that change something, and how many occurrences are one step: some occur for each
/// file that is shown.
const STEPS: [(&str, usize); 28] = [
    ("execve", 1),
    ("clone", 1),
    ("clone3", 1),
    ("prctl", 1),
    ("seccomp", 1),
    ("socketpair", 1),
    ("socket", 1),
    ("bind", 1),
    ("listen", 1),
    ("connect", 1),
    ("sendmsg", 1),
    ("ioctl", 1),
    ("mount", 1),
    ("fsopen", 1),
    ("fsconfig", 1),
    ("fsmount", 1),
    ("mkdir", 3),
    ("symlink", 3),
    ("openat2", 20),
    ("open_tree", 10),
    ("mount_setattr", 10),
    ("move_mount", 10),
    ("chmod", 5),
    ("pivot_root", 1),
    ("umount2", 1),
    ("capset", 1),
    ("landlock_add_rule", 20),
    ("landlock_restrict_self", 1),
];

/// Starts a room whose processes do this at the `number`th such call of one of them; true if it began all the same.
fn began_with(folder: &Path, call: &str, action: &str, number: usize) -> bool {
    let words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"];
    let inject = format!("inject={call}:{action}:when={number}");
    let wrapper: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain([inject]).collect();
    let (mut command, socket) = wrapped_stage_command(&wrapper, env!("CARGO_BIN_EXE_liza")).unwrap();
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env(MARK, folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let started = socket.start(&order_of(folder, "exec sleep 1000"), NO_SPEAKER);
    match &started {
        Ok(started) => assert_eq!(started.level, Level::Isolated, "{call} {number}"),
        Err(error) => assert!(!error.to_string().is_empty(), "{call} {number}"),
    }
    // What is left of a room ends with the process that waits for it.
    child.kill().unwrap();
    child.wait().unwrap();
    until_nothing_is_left(folder);
    started.is_ok()
}

/// Each of its processes, whichever makes the call: the one outside, the room's first one and the stage.
///
/// Covers: RO-07
#[test]
fn needs_strace_a_room_whose_start_is_killed_at_any_step_leaves_nothing() {
    let folder = place();
    let mut kills = 0;
    for (call, step) in STEPS {
        let number =
            (1..).step_by(step).find(|number| began_with(folder.path(), call, "signal=KILL", *number));
        kills += number.unwrap() / step;
    }
    assert!(kills > 60, "only {kills} kills");
    tried("a process of a room's start is killed at a system call: nothing is left", kills);
}

/// Port 53 of a new network is free unless something is wrong.
///
/// Covers: RO-07
#[test]
fn needs_strace_where_a_port_of_a_room_is_taken_there_is_no_room() {
    let folder = place();
    let sockets =
        (1..).find(|number| began_with(folder.path(), "bind", "error=EADDRINUSE", *number)).unwrap() - 1;
    assert!(sockets >= 6, "the name server's ports are among them: {sockets}");
}
