//! Decides outside a session about its system calls that the filter alone cannot judge. The kernel reports
//! them. A call is handed back only if nothing was decided from memory that the caller can still change.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;

use liza_host::listener::Places;
use rustix::io::Errno;

use super::super::{shared_memory, system};
use super::ConnectPolicy;
use super::connects::{Deciding, connect_for};
use super::filter::aimed_at;
use super::members::{is_own, leader_of};
use super::own_network::Led;
use super::seccomp::{CallEnd, PendingCall, answer, receive};
use super::terminals::{open_by_name, open_terminal};

/// The most calls that are decided at once, each in a thread of this process: more than the connections of a room.
const DECIDED_MAX: usize = 320;

/// Decides until no process of the session is left.
pub(super) fn serve(deciding: Deciding) {
    let (shared, places) = (Arc::new(deciding), Places::new(DECIDED_MAX));
    thread::spawn(move || {
        loop {
            match receive(shared.listener.as_fd()) {
                Ok(call) => {
                    if decide_in_thread(&shared, &places, call).is_none() {
                        answer(shared.listener.as_fd(), call.id, CallEnd::Fails(libc::EAGAIN));
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // The thread that made the call is gone, or every process is.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                    if is_over(&shared.listener) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    });
}

/// Connecting can take long, and others must not wait for it. `None` if too many calls wait.
fn decide_in_thread(shared: &Arc<Deciding>, places: &Places, call: PendingCall) -> Option<()> {
    let (place, shared) = (places.take()?, Arc::clone(shared));
    let decide = move || {
        decide(&shared, call);
        drop(place);
    };
    thread::Builder::new().spawn(decide).ok().map(drop)
}

/// True if no process with the filter is left.
fn is_over(listener: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)).is_ok() && ready[0].revents().contains(PollFlags::HUP)
}

fn decide(deciding: &Deciding, call: PendingCall) {
    let Deciding { listener, policy, .. } = deciding;
    let decided = match call.call {
        libc::SYS_connect => match connect_for(deciding, &call) {
            Ok(Led::Later(waiting)) => {
                answer(listener.as_fd(), call.id, CallEnd::Fails(libc::EINPROGRESS));
                return waiting.finish();
            }
            led => led.map(|_| CallEnd::Returns(0)),
        },
        libc::SYS_ioctl => open_terminal(listener, &call),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => open_by_name(listener, &call, 0),
        libc::SYS_openat => open_by_name(listener, &call, 1),
        libc::SYS_shmget => make_memory(&call),
        libc::SYS_shmat | libc::SYS_shmctl => judge_memory(&call),
        libc::SYS_prctl => judge_adoption(policy, &call),
        libc::SYS_execve | libc::SYS_execveat => note_program(policy, &call),
        other => judge_aim(policy, &call, aimed_at(other)),
    };
    let end = decided.unwrap_or_else(|error| CallEnd::Fails(error.raw_os_error()));
    answer(listener.as_fd(), call.id, end);
}

/// Allows a call that targets a process of the session. The caller can no longer change the argument.
fn judge_aim(policy: &ConnectPolicy, call: &PendingCall, argument: Option<usize>) -> Result<CallEnd, Errno> {
    let target = argument.and_then(|argument| call.arguments.get(argument)).ok_or(Errno::PERM)?;
    if is_own(policy.client, *target as u32) { Ok(CallEnd::Continues) } else { Err(Errno::PERM) }
}

/// Decides whether a process may adopt orphans: it must not lend its voice to orphans that have none.
fn judge_adoption(policy: &ConnectPolicy, call: &PendingCall) -> Result<CallEnd, Errno> {
    let orphans_speak = (policy.speakers)(&[], std::process::id(), policy.client).is_ok();
    // What is not code under test may become a program with a voice, and keeps its orphans.
    let may_adopt = orphans_speak || policy.may_speak(call.thread) == Err(Errno::ACCESS);
    if may_adopt { Ok(CallEnd::Continues) } else { Err(Errno::PERM) }
}

/// Notes what a process is, before it becomes another program.
fn note_program(policy: &ConnectPolicy, call: &PendingCall) -> Result<CallEnd, Errno> {
    let process = leader_of(call.thread).ok_or(Errno::SRCH)?;
    let started = system::start_time(process).ok_or(Errno::SRCH)?;
    let is_client = policy.client == Some(process);
    policy.programs.note(process, started, system::image(process), is_client);
    Ok(CallEnd::Continues)
}

/// Makes shared memory in the caller's place, whose processes may end before the session does.
fn make_memory(call: &PendingCall) -> Result<CallEnd, Errno> {
    let [key, size, flags, ..] = call.arguments;
    let size = usize::try_from(size).map_err(|_| Errno::INVAL)?;
    shared_memory::make(key as i32, size, flags as i32).map(|number| CallEnd::Returns(number.into()))
}

/// Allows shared memory that this process made.
fn judge_memory(call: &PendingCall) -> Result<CallEnd, Errno> {
    let [number, ..] = call.arguments;
    if shared_memory::is_own(number as i32) { Ok(CallEnd::Continues) } else { Err(Errno::ACCESS) }
}
