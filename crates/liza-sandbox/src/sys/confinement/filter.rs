//! The system calls that a session is refused, as a program for the kernel's filter. A deny-list: calls
//! without use in a coding session, and those that reach beyond its own processes.

use libc::{c_long, sock_filter};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Refuse(i32),
    Ask,
}

/// The condition of a rule. Arguments are compared by their lower half, all that the kernel reads of them here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    NotZero(u32),
    HasBits(u32, u32),
    Is(u32, u32),
    IsNot(u32, u32),
    /// Of these bits, the argument has exactly those.
    MaskedIs(u32, u32, u32),
    /// A file is made (flags, mode), and its mode has one of these bits.
    Creates(u32, u32, u32),
    /// A local datagram socket, which sends without connecting.
    LocalDatagram,
    /// A socket that is neither local nor for TCP.
    NeitherLocalNorTcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallRule {
    call: c_long,
    when: When,
    verdict: Verdict,
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// From here on, numbers mean the calls of another interface (x32), which the rules do not know.
const OTHER_INTERFACE: u32 = 0x4000_0000;

/// Namespaces: with a new one a process becomes root in it.
const NEW_NAMESPACE: u32 = 0x7e02_0080;
/// Puts a character into a terminal's input, as if the person had typed it.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
/// Opens the other end of a terminal.
const TIOCGPTPEER: u32 = 0x5441;
const TERMINAL_FLAGS: u32 = (libc::O_RDWR | libc::O_NOCTTY).cast_unsigned();
const TERMINAL_MASK: u32 =
    (libc::O_ACCMODE | libc::O_NOCTTY | libc::O_DIRECTORY | libc::O_CREAT).cast_unsigned();
/// Flags of `open` with which the mode counts.
const CREATES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();
/// Makes orphans the children of the caller.
const PR_SET_CHILD_SUBREAPER: u32 = 36;
const F_SETLEASE: u32 = 1024;
const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;
const AF_VSOCK: u32 = 40;
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
/// The kind of a socket, without its flags. For local sockets, raw ones are datagrams too.
const TYPE_MASK: u32 = 0xf;
const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const RAW: u32 = 3;
/// The protocol of a stream; zero is the same. Landlock doesn't know others, such as MPTCP and SCTP.
const TCP: u32 = 6;
/// Connects while sending, past everything that judges connects.
const MSG_FASTOPEN: u32 = 0x2000_0000;

pub(super) fn is_supported() -> bool {
    ARCHITECTURE != 0
}

/// The rules of every session without a room; with `only_tcp`, the network is closed but for connects to TCP ports.
pub(super) fn rules(only_tcp: bool) -> Vec<CallRule> {
    let shared = SHARED.iter().map(|call| CallRule::new(*call, When::Always, Verdict::Refuse(libc::EPERM)));
    shared.chain(rules_everywhere(only_tcp)).collect()
}

fn rules_everywhere(only_tcp: bool) -> Vec<CallRule> {
    let refused = REFUSED.iter().map(|call| CallRule::new(*call, When::Always, Verdict::Refuse(libc::EPERM)));
    let missing =
        MISSING.iter().map(|call| CallRule::new(*call, When::Always, Verdict::Refuse(libc::ENOSYS)));
    let partly = [
        // Groups of processes, and all processes of the user.
        (libc::SYS_setpriority, When::IsNot(0, PRIO_PROCESS)),
        (libc::SYS_ioprio_set, When::IsNot(0, IOPRIO_WHO_PROCESS)),
        (libc::SYS_unshare, When::HasBits(0, NEW_NAMESPACE)),
        (libc::SYS_clone, When::HasBits(0, NEW_NAMESPACE)),
        // A lease on a file makes its writers wait.
        (libc::SYS_fcntl, When::Is(1, F_SETLEASE)),
        (libc::SYS_ioctl, When::Is(1, TIOCSTI)),
        (libc::SYS_ioctl, When::Is(1, TIOCLINUX)),
        (libc::SYS_socket, When::Is(0, AF_VSOCK)),
    ];
    let partly = partly.map(|(call, when)| CallRule::new(call, when, Verdict::Refuse(libc::EPERM)));
    let unsupported = [
        (libc::SYS_sendto, When::HasBits(3, MSG_FASTOPEN)),
        (libc::SYS_sendmsg, When::HasBits(2, MSG_FASTOPEN)),
        (libc::SYS_sendmmsg, When::HasBits(3, MSG_FASTOPEN)),
    ];
    let flags = SET_FLAGS.map(|request| (libc::SYS_ioctl, When::Is(1, request)));
    let unsupported =
        unsupported.into_iter().chain(flags).chain(SET_ATTRIBUTES.map(|call| (call, When::Always)));
    let unsupported =
        unsupported.map(|(call, when)| CallRule::new(call, when, Verdict::Refuse(libc::EOPNOTSUPP)));
    let raised = RAISED.map(|(call, when)| CallRule::new(call, when, Verdict::Refuse(libc::EPERM)));
    let network = CallRule::new(libc::SYS_socket, When::NeitherLocalNorTcp, Verdict::Refuse(libc::EACCES));
    let network = Some(network).filter(|_| only_tcp);
    refused.chain(missing).chain(partly).chain(unsupported).chain(raised).chain(network).collect()
}

/// Calls that truncate a file which is not open for writing: Landlock judges them only on newer kernels.
pub(super) fn rules_of_old_kernels() -> Vec<CallRule> {
    let mask = (libc::O_ACCMODE | libc::O_TRUNC).cast_unsigned();
    let reads = (libc::O_RDONLY | libc::O_TRUNC).cast_unsigned();
    let truncating = [
        (libc::SYS_truncate, When::Always),
        (libc::SYS_openat, When::MaskedIs(2, mask, reads)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, When::MaskedIs(1, mask, reads)),
    ];
    let refused = truncating.into_iter();
    refused.map(|(call, when)| CallRule::new(call, when, Verdict::Refuse(libc::EACCES))).collect()
}

/// The rules of a session without a listener.
pub(super) fn rules_alone(only_tcp: bool) -> Vec<CallRule> {
    let aimed = AIMED.iter().map(|(call, argument)| (*call, When::NotZero(*argument)));
    let memory = MEMORY.iter().map(|call| (*call, When::Always));
    let refused =
        aimed.chain(memory).map(|(call, when)| CallRule::new(call, when, Verdict::Refuse(libc::EPERM)));
    rules(only_tcp).into_iter().chain(refused).collect()
}

/// The rules of a program that works with files only, or also with the network but no service of this machine.
pub(super) fn rules_of_a_room(has_network: bool) -> Vec<CallRule> {
    let refused = if has_network { When::Is(0, AF_UNIX) } else { When::Always };
    let sockets = CallRule::new(libc::SYS_socket, refused, Verdict::Refuse(libc::EACCES));
    rules_alone(!has_network).into_iter().chain([sockets]).collect()
}

/// Calls that change another process, and the argument that names it; zero is the caller.
const AIMED: [(c_long, u32); 7] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// The number of the process that reaps in a room.
const FIRST_PROCESS: u32 = 1;

/// Calls on shared memory, which anyone may know by its number and which outlives its maker.
const MEMORY: [c_long; 3] = [libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl];

pub(super) fn aimed_at(call: c_long) -> Option<usize> {
    let argument = AIMED.iter().find(|(aimed, _)| *aimed == call).map(|(_, argument)| *argument)?;
    usize::try_from(argument).ok()
}

/// The same, with the rest decided outside: connects, own terminals, calls that target other processes. In a room there
/// is no shared memory and no process of others, but for the first one.
pub(super) fn rules_with_listener(only_tcp: bool, is_in_room: bool) -> Vec<CallRule> {
    let aimed =
        AIMED.iter().map(|(call, argument)| CallRule::new(*call, When::NotZero(*argument), Verdict::Ask));
    let memory = MEMORY.iter().map(|call| CallRule::new(*call, When::Always, Verdict::Ask));
    // The flags with which terminals are opened; almost nothing else uses them.
    let by_name = |flags: u32| When::MaskedIs(flags, TERMINAL_MASK, TERMINAL_FLAGS);
    let terminals = [
        CallRule::new(libc::SYS_ioctl, When::Is(1, TIOCGPTPEER), Verdict::Ask),
        CallRule::new(libc::SYS_openat, by_name(2), Verdict::Ask),
        #[cfg(target_arch = "x86_64")]
        CallRule::new(libc::SYS_open, by_name(1), Verdict::Ask),
    ];
    let adoption = [CallRule::new(libc::SYS_prctl, When::Is(0, PR_SET_CHILD_SUBREAPER), Verdict::Ask)];
    let connects = [
        CallRule::new(libc::SYS_connect, When::Always, Verdict::Ask),
        CallRule::new(libc::SYS_socket, When::LocalDatagram, Verdict::Refuse(libc::EPERM)),
        CallRule::new(libc::SYS_socketpair, When::LocalDatagram, Verdict::Refuse(libc::EPERM)),
    ];
    let first = AIMED.iter().map(|(call, argument)| {
        CallRule::new(*call, When::Is(*argument, FIRST_PROCESS), Verdict::Refuse(libc::EPERM))
    });
    let others: Vec<CallRule> = if is_in_room { first.collect() } else { aimed.chain(memory).collect() };
    let asked = others.into_iter().chain(terminals).chain(adoption);
    let refused = if is_in_room { rules_everywhere(only_tcp) } else { rules(only_tcp) };
    refused.into_iter().chain(connects).chain(asked).collect()
}

/// A process becomes another program: its helper notes what it was. What it was cannot be changed, and its parent made it.
pub(super) fn rules_of_noted_programs() -> Vec<CallRule> {
    let noted = |call| CallRule::new(call, When::Always, Verdict::Ask);
    let refused = |call, when| CallRule::new(call, when, Verdict::Refuse(libc::EPERM));
    vec![
        noted(libc::SYS_execve),
        noted(libc::SYS_execveat),
        refused(libc::SYS_prctl, When::Is(0, libc::PR_SET_MM.cast_unsigned())),
        refused(libc::SYS_clone, When::HasBits(0, libc::CLONE_PARENT.cast_unsigned())),
    ]
}

/// The same number on every processor; the C library does not name it yet.
const SYS_SETXATTRAT: c_long = 463;

/// The same; it sets what [`SET_FLAGS`] set.
const SYS_FILE_SETATTR: c_long = 469;

/// Objects that all processes of a user share by number or name, if they are in no room.
const SHARED: [c_long; 10] = [
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Refused: others' processes, mounts, keys, the kernel itself.
const REFUSED: [c_long; 38] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_acct,
    libc::SYS_syslog,
];

/// Attributes of files, which other users of the same files would follow: as on a file system without them.
const SET_ATTRIBUTES: [c_long; 3] = [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr];

/// The requests of `ioctl` that set a file's flags, such as those for backups and times, with which its owner would find it.
const SET_FLAGS: [u32; 2] = [0x4008_6602, 0x401c_5820];

/// The bits by which a program runs with the rights of its file's owner or group.
const RAISES_RIGHTS: u32 = libc::S_ISUID | libc::S_ISGID;

/// Calls that can set these bits.
const RAISED: [(c_long, When); RAISED_CALLS] = [
    (libc::SYS_fchmod, When::HasBits(1, RAISES_RIGHTS)),
    (libc::SYS_fchmodat, When::HasBits(2, RAISES_RIGHTS)),
    (SYS_FCHMODAT2, When::HasBits(2, RAISES_RIGHTS)),
    (libc::SYS_mknodat, When::HasBits(2, RAISES_RIGHTS)),
    (libc::SYS_openat, When::Creates(2, 3, RAISES_RIGHTS)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, When::Creates(1, 2, RAISES_RIGHTS)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, When::HasBits(1, RAISES_RIGHTS)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, When::HasBits(1, RAISES_RIGHTS)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, When::HasBits(1, RAISES_RIGHTS)),
];
const RAISED_CALLS: usize = if cfg!(target_arch = "x86_64") { 9 } else { 5 };
/// The same number on every processor; the C library does not name it yet.
const SYS_FCHMODAT2: c_long = 452;

/// Reported as missing, so that programs fall back to calls that the filter can judge.
const MISSING: [c_long; 10] = [
    // Its mode is in memory, which the filter does not see.
    libc::SYS_openat2,
    SYS_SETXATTRAT,
    SYS_FILE_SETATTR,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
    // All processes of the machine share the number of its events.
    libc::SYS_io_setup,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
];

impl CallRule {
    pub(super) const fn new(call: c_long, when: When, verdict: Verdict) -> Self {
        Self { call, when, verdict }
    }
}

pub(super) fn assemble(rules: &[CallRule]) -> Vec<sock_filter> {
    let refuse_unknown = answer(Verdict::Refuse(libc::ENOSYS));
    let mut program = vec![load(ARCHITECTURE_AT), jump(EQUAL, ARCHITECTURE, 1, 0), refuse_unknown];
    program.extend([load(NUMBER_AT), jump(AT_LEAST, OTHER_INTERFACE, 0, 1), refuse_unknown]);
    for rule in rules {
        program.extend(instructions(rule));
    }
    program.push(constant(RETURN, ALLOW));
    program
}

/// The accumulator holds the number of the call before and after.
fn instructions(rule: &CallRule) -> Vec<sock_filter> {
    // Numbers of calls are small and not negative.
    let number = u32::try_from(rule.call).unwrap_or(u32::MAX);
    let verdict = answer(rule.verdict);
    let test = |argument: u32, test: sock_filter| {
        let body = [load(argument_at(argument)), test, verdict, load(NUMBER_AT)];
        [jump(EQUAL, number, 0, 4)].into_iter().chain(body).collect()
    };
    match rule.when {
        When::Always => vec![jump(EQUAL, number, 0, 1), verdict],
        When::NotZero(argument) => test(argument, jump(EQUAL, 0, 1, 0)),
        When::HasBits(argument, bits) => test(argument, jump(ANY_BIT, bits, 0, 1)),
        When::Is(argument, value) => test(argument, jump(EQUAL, value, 0, 1)),
        When::IsNot(argument, value) => test(argument, jump(EQUAL, value, 1, 0)),
        When::MaskedIs(argument, mask, value) => vec![
            jump(EQUAL, number, 0, 5),
            load(argument_at(argument)),
            constant(MASK, mask),
            jump(EQUAL, value, 0, 1),
            verdict,
            load(NUMBER_AT),
        ],
        When::Creates(flags, mode, bits) => vec![
            jump(EQUAL, number, 0, 6),
            load(argument_at(flags)),
            jump(ANY_BIT, CREATES, 0, 3),
            load(argument_at(mode)),
            jump(ANY_BIT, bits, 0, 1),
            verdict,
            load(NUMBER_AT),
        ],
        When::LocalDatagram => vec![
            jump(EQUAL, number, 0, 8),
            load(argument_at(0)),
            jump(EQUAL, AF_UNIX, 0, 5),
            load(argument_at(1)),
            constant(MASK, TYPE_MASK),
            jump(EQUAL, DATAGRAM, 1, 0),
            jump(EQUAL, RAW, 0, 1),
            verdict,
            load(NUMBER_AT),
        ],
        When::NeitherLocalNorTcp => vec![
            jump(EQUAL, number, 0, 12),
            load(argument_at(0)),
            jump(EQUAL, AF_UNIX, 9, 0),
            jump(EQUAL, AF_INET, 1, 0),
            jump(EQUAL, AF_INET6, 0, 6),
            load(argument_at(1)),
            constant(MASK, TYPE_MASK),
            jump(EQUAL, STREAM, 0, 3),
            load(argument_at(2)),
            jump(EQUAL, 0, 2, 0),
            jump(EQUAL, TCP, 1, 0),
            verdict,
            load(NUMBER_AT),
        ],
    }
}

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const MASK: u16 = 0x54;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

const fn argument_at(argument: u32) -> u32 {
    let upper_half_first = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * argument + upper_half_first
}

const fn load(at: u32) -> sock_filter {
    constant(LOAD, at)
}

const fn constant(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn answer(verdict: Verdict) -> sock_filter {
    constant(
        RETURN,
        match verdict {
            Verdict::Ask => NOTIFY,
            Verdict::Refuse(error) => FAIL | u32::try_from(error).unwrap_or(1),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does, for the instructions that occur in it.
    fn run(program: &[sock_filter], architecture: u32, call: u32, arguments: [u32; 6]) -> u32 {
        let word = |at: u32| match at {
            NUMBER_AT => call,
            ARCHITECTURE_AT => architecture,
            at => arguments[usize::try_from((at - 16) / 8).unwrap()],
        };
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let step = program[at];
            at += 1;
            let holds = match step.code {
                LOAD => {
                    accumulator = word(step.k);
                    continue;
                }
                MASK => {
                    accumulator &= step.k;
                    continue;
                }
                RETURN => return step.k,
                EQUAL => accumulator == step.k,
                AT_LEAST => accumulator >= step.k,
                ANY_BIT => accumulator & step.k != 0,
                code => panic!("unknown instruction {code:#x}"),
            };
            at += usize::from(if holds { step.jt } else { step.jf });
        }
    }

    fn verdict(call: c_long, arguments: [u32; 6]) -> u32 {
        run(
            &assemble(&rules_with_listener(false, false)),
            ARCHITECTURE,
            u32::try_from(call).unwrap(),
            arguments,
        )
    }

    const REFUSE: u32 = FAIL | libc::EPERM as u32;
    const MISS: u32 = FAIL | libc::ENOSYS as u32;

    /// Covers: IS-03, IS-16
    #[test]
    fn calls_that_reach_others_are_refused_and_ordinary_ones_are_not() {
        let none = [0; 6];
        for call in REFUSED.into_iter().chain(SHARED) {
            assert_eq!(verdict(call, none), REFUSE, "{call}");
        }
        for call in MISSING {
            assert_eq!(verdict(call, none), MISS, "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_kill, libc::SYS_exit_group]
        {
            assert_eq!(verdict(call, none), ALLOW, "{call}");
        }
    }

    /// Covers: RO-07
    #[test]
    fn in_a_room_numbers_mean_what_is_the_sessions_own_but_for_its_first_process() {
        let room = assemble(&rules_with_listener(false, true));
        let verdict =
            |call: c_long, arguments| run(&room, ARCHITECTURE, u32::try_from(call).unwrap(), arguments);
        for call in SHARED.into_iter().chain(MEMORY) {
            assert_eq!(verdict(call, [5; 6]), ALLOW, "{call}");
        }
        for (call, argument) in AIMED {
            let mut arguments = [if call == libc::SYS_ioprio_set { IOPRIO_WHO_PROCESS } else { 0 }; 6];
            arguments[usize::try_from(argument).unwrap()] = 77;
            assert_eq!(verdict(call, arguments), ALLOW, "{call}");
            arguments[usize::try_from(argument).unwrap()] = FIRST_PROCESS;
            assert_eq!(verdict(call, arguments), REFUSE, "{call}");
        }
        for call in REFUSED {
            assert_eq!(verdict(call, [0; 6]), REFUSE, "{call}");
        }
    }

    /// Covers: IS-03, IS-16
    #[test]
    fn some_calls_are_refused_by_their_arguments() {
        let with = |index: usize, value: u32| {
            let mut arguments = [0; 6];
            arguments[index] = value;
            arguments
        };
        assert_eq!(verdict(libc::SYS_prlimit64, with(0, 0)), ALLOW);
        let alone = assemble(&rules_alone(false));
        for (call, argument) in AIMED {
            let number = u32::try_from(call).unwrap();
            let mut arguments =
                [if call == libc::SYS_ioprio_set { IOPRIO_WHO_PROCESS } else { 0 }, 0, 0, 0, 0, 0];
            assert_eq!(verdict(call, arguments), ALLOW, "{call}: itself");
            arguments[usize::try_from(argument).unwrap()] = 77;
            assert_eq!(verdict(call, arguments), NOTIFY, "{call}");
            assert_eq!(run(&alone, ARCHITECTURE, number, arguments), REFUSE, "{call}");
        }
        for call in MEMORY {
            assert_eq!(verdict(call, with(0, 5)), NOTIFY);
            assert_eq!(run(&alone, ARCHITECTURE, u32::try_from(call).unwrap(), with(0, 5)), REFUSE);
        }
        for which in [1, 2] {
            assert_eq!(verdict(libc::SYS_setpriority, with(0, which)), REFUSE, "groups and users");
            assert_eq!(verdict(libc::SYS_ioprio_set, with(0, which + 1)), REFUSE, "groups and users");
        }
        let open = |flags: i32| verdict(libc::SYS_openat, with(2, flags.cast_unsigned()));
        assert_eq!(open(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC), NOTIFY);
        for flags in [libc::O_RDWR, libc::O_NOCTTY, libc::O_RDWR | libc::O_NOCTTY | libc::O_CREAT] {
            assert_eq!(open(flags), ALLOW, "{flags:#x}");
        }
        assert_eq!(verdict(libc::SYS_ioctl, with(1, TIOCGPTPEER)), NOTIFY);
        assert_eq!(verdict(libc::SYS_ioctl, with(1, TIOCLINUX)), REFUSE);
        assert_eq!(verdict(libc::SYS_unshare, with(0, 0x400)), ALLOW);
        assert_eq!(verdict(libc::SYS_unshare, with(0, 0x1000_0000)), REFUSE);
        assert_eq!(verdict(libc::SYS_clone, with(0, 0x0120_0011)), ALLOW, "fork");
        assert_eq!(verdict(libc::SYS_clone, with(0, 0x1000_0011)), REFUSE);
        assert_eq!(verdict(libc::SYS_ioctl, with(1, TIOCSTI)), REFUSE);
        assert_eq!(verdict(libc::SYS_ioctl, with(1, 0x5413)), ALLOW);
        assert_eq!(verdict(libc::SYS_socket, with(0, AF_VSOCK)), REFUSE);
        assert_eq!(verdict(libc::SYS_socket, with(0, 2)), ALLOW);
    }

    /// Covers: RO-06
    #[test]
    fn no_call_raises_the_rights_of_a_file_or_sets_its_attributes() {
        let (plain, set) = (0o755, [0o4755, 0o2755, 0o6000]);
        for (call, when) in RAISED {
            let arguments = |mode: u32| {
                let mut arguments = [0; 6];
                let at = if let When::Creates(flags, mode, _) = when {
                    arguments[flags as usize] = libc::O_CREAT.cast_unsigned();
                    mode
                } else if let When::HasBits(mode, _) = when {
                    mode
                } else {
                    panic!("{when:?}")
                };
                arguments[at as usize] = mode;
                arguments
            };
            assert_eq!(verdict(call, arguments(plain)), ALLOW, "{call}");
            for mode in set {
                assert_eq!(verdict(call, arguments(mode)), REFUSE, "{call} {mode:o}");
            }
        }
        // Without O_CREAT the mode is any number.
        assert_eq!(verdict(libc::SYS_openat, [0, 0, 0, 0o6777, 0, 0]), ALLOW);
        let unsupported = FAIL | libc::EOPNOTSUPP as u32;
        for call in SET_ATTRIBUTES {
            assert_eq!(verdict(call, [0; 6]), unsupported, "{call}");
        }
        for request in SET_FLAGS {
            assert_eq!(verdict(libc::SYS_ioctl, [0, request, 0, 0, 0, 0]), unsupported, "{request:#x}");
        }
        let [read_flags, setattr, getattr] = [0x8008_6601, 469, 468];
        assert_eq!(verdict(libc::SYS_ioctl, [0, read_flags, 0, 0, 0, 0]), ALLOW);
        assert_eq!((verdict(setattr.into(), [0; 6]), verdict(getattr.into(), [0; 6])), (MISS, ALLOW));
        assert_eq!(verdict(libc::SYS_sendto, [0, 0, 0, MSG_FASTOPEN, 0, 0]), unsupported, "connects");
    }

    /// Covers: RO-06
    #[test]
    fn on_old_kernels_no_file_is_truncated_that_is_not_open_for_writing() {
        let program = assemble(&rules_of_old_kernels());
        let refused = FAIL | libc::EACCES as u32;
        let run =
            |call: c_long, arguments| run(&program, ARCHITECTURE, u32::try_from(call).unwrap(), arguments);
        let open = |flags: i32| run(libc::SYS_openat, [0, 0, flags.cast_unsigned(), 0, 0, 0]);
        assert_eq!(run(libc::SYS_truncate, [0; 6]), refused);
        assert_eq!(open(libc::O_RDONLY | libc::O_TRUNC), refused);
        assert_eq!(open(libc::O_WRONLY | libc::O_TRUNC), ALLOW, "a right of its own");
        assert_eq!(open(libc::O_RDONLY), ALLOW);
    }

    /// Covers: IS-12
    #[test]
    fn connects_are_decided_outside_and_local_datagrams_are_refused() {
        assert_eq!(verdict(libc::SYS_connect, [0; 6]), NOTIFY);
        let socket = |domain: u32, kind: u32| [domain, kind, 0, 0, 0, 0];
        let cloexec = 0x8_0000;
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            assert_eq!(verdict(call, socket(AF_UNIX, 1 | cloexec)), ALLOW, "a stream");
            assert_eq!(verdict(call, socket(AF_UNIX, 5)), ALLOW, "a stream of messages");
            assert_eq!(verdict(call, socket(AF_UNIX, DATAGRAM | cloexec)), REFUSE);
            assert_eq!(verdict(call, socket(AF_UNIX, RAW)), REFUSE);
            assert_eq!(verdict(call, socket(2, DATAGRAM)), ALLOW, "UDP");
        }
        assert_eq!(verdict(libc::SYS_getpid, [0; 6]), ALLOW, "after the last rule");
    }

    /// Covers: IS-06
    #[test]
    fn without_network_only_local_sockets_and_tcp_are_left() {
        let program = assemble(&rules_with_listener(true, false));
        let number = |call: c_long| u32::try_from(call).unwrap();
        let socket = |domain: u32, kind: u32, protocol: u32| {
            run(&program, ARCHITECTURE, number(libc::SYS_socket), [domain, kind, protocol, 0, 0, 0])
        };
        let closed = FAIL | libc::EACCES as u32;
        let cloexec = 0x8_0000;
        for family in [AF_INET, AF_INET6] {
            assert_eq!(socket(family, STREAM | cloexec, 0), ALLOW);
            assert_eq!(socket(family, STREAM, TCP), ALLOW);
            assert_eq!(socket(family, STREAM, 262), closed, "MPTCP");
            assert_eq!(socket(family, STREAM, 132), closed, "SCTP");
            assert_eq!(socket(family, DATAGRAM | cloexec, 0), closed, "UDP");
            assert_eq!(socket(family, RAW, 1), closed);
        }
        assert_eq!(socket(AF_UNIX, STREAM, 0), ALLOW);
        assert_eq!(socket(AF_UNIX, DATAGRAM, 0), REFUSE);
        for family in [16, 17, AF_VSOCK - 1] {
            assert_eq!(socket(family, STREAM, 0), closed, "{family}");
        }
        for (call, at) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            let mut arguments = [0; 6];
            assert_eq!(run(&program, ARCHITECTURE, number(call), arguments), ALLOW);
            arguments[at] = MSG_FASTOPEN;
            let unsupported = FAIL | libc::EOPNOTSUPP as u32;
            assert_eq!(run(&program, ARCHITECTURE, number(call), arguments), unsupported);
        }
        assert_eq!(run(&program, ARCHITECTURE, number(libc::SYS_getpid), [0; 6]), ALLOW);
    }

    /// Covers: IS-03
    #[test]
    fn another_interface_to_the_kernel_is_no_way_around() {
        let program = assemble(&rules(false));
        assert_eq!(run(&program, 0x4000_0003, 0, [0; 6]), MISS, "32-bit programs");
        assert_eq!(run(&program, ARCHITECTURE, OTHER_INTERFACE | 101, [0; 6]), MISS, "x32");
    }
}
