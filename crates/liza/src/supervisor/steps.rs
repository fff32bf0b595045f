//! What the loop does for one agent: carries out the next step, watches over its session, takes its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{AgentStatus, Role, Status, TaskId, Timestamp};
use liza_core::watch::supervise::{AfterSession, EndedSession as Judged, RunningSession, SessionEnd, Situation, Step, StopCause, StopReason, StopStep, WaitReason, backoff, is_done, next_step, still_owns, still_registered, stop_step};

use crate::project::now;
use crate::providers::usage::SessionUsage;

use super::errand::{self, Errand, in_words};
use super::event::{Outcome, Seat, Weight};
use super::member::{End, Member, Phase, Run, Sight};
use super::order::{Report, Word};
use super::registration::a_while;
use super::team::{Team, after, moment};
use super::trouble::Trouble;

/// Claims lost in a row after which an agent waits for news instead of trying again.
const LOST_CLAIMS: u32 = 3;

impl Team<'_> {
    /// Has the next thing done for an agent, where it is its turn.
    pub(super) fn advance(&mut self, seat: Seat) {
        let Some(member) = self.members.get(seat) else { return };
        match member.phase {
            Phase::Gone(_) => {}
            Phase::Errand | Phase::Leaving(_) if !self.errands_are_over() => {}
            // What it was at is cut off: without a registration, whatever it still tries is refused.
            Phase::Errand => self.leave(seat, End::Signalled),
            Phase::Leaving(_) => {}
            Phase::RunningSession(_) => self.watch_over(seat),
            Phase::Looking if self.stopping.is_some() => self.leave(seat, End::Signalled),
            Phase::Looking if !self.readable => self.wake_at(seat, Instant::now() + Duration::from_secs(1)),
            Phase::Looking if member.has_seen(&self.sight()) => {}
            Phase::Looking => self.look_for_work(seat),
        }
    }

    fn look_for_work(&mut self, seat: Seat) {
        let state = Arc::clone(&self.state);
        let Some(member) = self.members.get_mut(seat) else { return };
        member.rests = None;
        let who = &member.who;
        if !still_registered(&state, who.agent, who.generation) {
            member.phase = Phase::Gone(End::Lost);
            self.alert(seat, "is no longer registered here: ending");
            return;
        }
        if Instant::now() < member.from {
            member.wake = Some(member.from);
            return;
        }
        let situation = Situation {
            state: &state,
            agent: who.agent,
            halt: self.halt,
            now: now(),
            idle_since: member.idle_since,
            in_team: self.in_team,
        };
        let step = narrowed(next_step(&situation), member, &situation);
        self.carry_out(seat, step);
    }

    fn carry_out(&mut self, seat: Seat, step: Step) {
        if self.holding && !matches!(step, Step::Hold(_)) {
            self.holding = false;
            self.say_all(Weight::News, "going on");
        }
        match step {
            Step::Stop(reason) => {
                self.mutter(seat, farewell(&reason));
                self.leave(seat, End::Stop(reason));
            }
            Step::Hold(file) => {
                self.holding = true;
                self.say_all(Weight::News, &format!("holding: {} stands", file.name()));
                self.not_idle(seat);
                self.rest(seat, after(self.config.coder_poll_interval));
            }
            Step::Merge(task) => {
                self.say(seat, format!("merging {task}"));
                self.begin(seat, Errand::Merge(task));
            }
            Step::Code(tasks) => self.try_for(seat, tasks, Errand::Code),
            Step::Review(tasks) => self.try_for(seat, tasks, Errand::Review),
            Step::Plan(triggers) => {
                let words = triggers.iter().map(|trigger| format!("{} {}", trigger.kind, trigger.subject));
                self.say(seat, format!("woken by {}", words.collect::<Vec<_>>().join(", ")));
                self.begin(seat, Errand::Plan(triggers));
            }
            Step::Wait { why, until } => self.wait(seat, &why, until),
        }
    }

    /// Sends an agent after the first task that no other of the team is trying for.
    fn try_for(&mut self, seat: Seat, mut tasks: Vec<TaskId>, errand: fn(Vec<TaskId>) -> Errand) {
        let role = self.members.get(seat).map(|member| member.post.role);
        let others = self.members.iter().filter(|other| Some(other.post.role) == role);
        let taken: Vec<&TaskId> = others.filter_map(|other| other.trying.as_ref()).collect();
        tasks.retain(|task| !taken.contains(&task));
        let Some(first) = tasks.first().cloned() else {
            return self.rest(seat, after(self.config.coder_poll_interval));
        };
        if let Some(member) = self.members.get_mut(seat) {
            member.trying = Some(first);
        }
        self.begin(seat, errand(tasks));
    }

    fn wait(&mut self, seat: Seat, why: &WaitReason, until: Timestamp) {
        let text = match why {
            WaitReason::Drafts(number) => format!("waiting: {number} draft(s) are not finalized"),
            WaitReason::NoGoal => "waiting: there is no goal yet (liza goal new \"GOAL\")".to_owned(),
            WaitReason::NoWork => "waiting for work".to_owned(),
        };
        match why {
            WaitReason::NoGoal => self.say(seat, text),
            WaitReason::Drafts(_) | WaitReason::NoWork => self.mutter(seat, text),
        }
        let Some(member) = self.members.get_mut(seat) else { return };
        if member.post.role == Role::Planner && !member.waiting {
            member.waiting = true;
            self.begin(seat, Errand::Show(AgentStatus::Waiting));
            return;
        }
        let end = member.idle_since + self.config.coder_max_wait;
        let lone = !self.in_team && end > now();
        self.rest(seat, moment(if lone { until.min(end) } else { until }));
    }

    /// There is nothing for an agent in what can be seen: it need not look again at the same.
    fn rest(&mut self, seat: Seat, until: Instant) {
        let seen = self.sight();
        if let Some(member) = self.members.get_mut(seat) {
            member.wake = Some(until);
            member.rests = Some(seen);
        }
    }

    pub(super) fn sight(&self) -> Sight {
        Sight { edition: self.editions, halt: self.halt, errands_done: self.errands_done }
    }

    fn wake_at(&mut self, seat: Seat, time: Instant) {
        if let Some(member) = self.members.get_mut(seat) {
            member.wake = Some(time);
        }
    }

    fn begin(&mut self, seat: Seat, errand: Errand) {
        if let Some(member) = self.members.get_mut(seat) {
            member.phase = Phase::Errand;
        }
        self.send(seat, errand);
    }

    /// Takes what an errand brought.
    pub(super) fn done(&mut self, seat: Seat, done: Result<Outcome, Trouble>) {
        let Some(member) = self.members.get_mut(seat) else { return };
        member.trying = None;
        match (&member.phase, done) {
            (Phase::Leaving(end), Ok(Outcome::Left(trouble))) => {
                member.phase = Phase::Gone(end.clone());
                self.left(seat, trouble);
            }
            // Whatever was still under way is void: only the leaving itself counts, and how it ended stays.
            (Phase::Leaving(_) | Phase::Gone(_), _) => {}
            (Phase::Errand | Phase::Looking | Phase::RunningSession(_), Ok(outcome)) => {
                member.went_well(&outcome);
                self.went_well(seat, outcome);
            }
            (Phase::Errand | Phase::Looking | Phase::RunningSession(_), Err(trouble)) => {
                self.went_wrong(seat, trouble);
            }
        }
    }

    fn left(&mut self, seat: Seat, trouble: Option<Trouble>) {
        match trouble {
            Some(trouble) => self.alert(seat, format!("could not be taken off the board: {trouble}")),
            None => self.mutter(seat, "off the board"),
        }
    }

    fn went_well(&mut self, seat: Seat, outcome: Outcome) {
        match outcome {
            Outcome::Ready(notes) => {
                notes.into_iter().for_each(|note| self.say(seat, note));
                self.not_idle(seat);
                self.look_from(seat, Instant::now());
            }
            Outcome::Merged(text) => {
                self.say(seat, text);
                self.not_idle(seat);
                self.look_from(seat, Instant::now());
            }
            Outcome::Started(session) => {
                let lease = self.lease_of(seat).unwrap_or_else(now);
                let Some(member) = self.members.get(seat) else { return };
                self.say(seat, at_work(member.post.role, session.task.as_ref()));
                let Some(member) = self.members.get_mut(seat) else { return };
                member.waiting = false;
                member.phase = Phase::RunningSession(Box::new(Run::new(*session, now(), lease)));
            }
            Outcome::Judged { next, leave, notes } => self.judged(seat, &next, leave, notes),
            Outcome::Shown => self.look_from(seat, Instant::now()),
            Outcome::Left(_) => {}
        }
    }

    fn judged(&mut self, seat: Seat, next: &AfterSession, leave: Option<TaskId>, notes: Vec<String>) {
        for note in notes {
            if note.starts_with("ALERT") { self.alert(seat, note) } else { self.say(seat, note) }
        }
        if next.progress {
            self.mutter(seat, in_words(next));
        } else {
            self.say(seat, in_words(next));
        }
        self.not_idle(seat);
        let limit = self.config.max_crashes;
        let Some(member) = self.members.get_mut(seat) else { return };
        member.waiting = member.post.role == Role::Planner;
        if next.progress {
            member.crashes = 0;
        }
        if member.post.once {
            return self.leave(seat, End::Once);
        }
        if member.post.role == Role::Planner && member.crashes >= limit {
            let text = format!("{} crashed {limit} times in a row", member.who.agent);
            self.alert(seat, format!("{text}: ending; look into .liza/agent-outputs/"));
            return self.leave(seat, End::Trouble(Trouble::Failed(text)));
        }
        if let Some(task) = leave {
            member.left.push(task.clone());
            self.alert(seat, format!("gives the review of {task} up: another code reviewer has to take it"));
        }
        self.look_from(seat, after(next.pause));
    }

    fn went_wrong(&mut self, seat: Seat, trouble: Trouble) {
        let Some(member) = self.members.get_mut(seat) else { return };
        match &trouble {
            Trouble::Refused(text) => {
                let text = text.clone();
                member.lost_claims += 1;
                let over = member.lost_claims >= LOST_CLAIMS;
                let pause = if over {
                    Duration::from_secs(self.config.coder_poll_interval.0.min(30))
                } else {
                    a_while()
                };
                if over && let Some(member) = self.members.get_mut(seat) {
                    member.lost_claims = 0;
                }
                self.say(seat, text);
                self.look_from(seat, Instant::now() + pause);
            }
            Trouble::Halted(text) => {
                let text = text.clone();
                self.say(seat, text);
                self.look_from(seat, Instant::now() + Duration::from_millis(200));
            }
            Trouble::Fenced(text) => {
                let text = format!("{text}: ending");
                member.phase = Phase::Gone(End::Lost);
                self.alert(seat, text);
            }
            Trouble::Locked(text) => {
                let text = text.clone();
                self.alert(seat, text);
                self.leave(seat, End::Trouble(trouble));
            }
            Trouble::Inconsistent(text) | Trouble::Failed(text) => {
                let text = text.clone();
                member.failures += 1;
                let pause = backoff(member.failures);
                self.alert(seat, format!("{text}; trying again in {pause}"));
                self.look_from(seat, after(pause));
            }
        }
    }

    fn look_from(&mut self, seat: Seat, from: Instant) {
        if let Some(member) = self.members.get_mut(seat) {
            member.phase = Phase::Looking;
            member.from = from;
            member.wake = Some(from);
        }
    }

    fn not_idle(&mut self, seat: Seat) {
        if let Some(member) = self.members.get_mut(seat) {
            member.idle_since = now();
        }
    }

    fn lease_of(&self, seat: Seat) -> Option<Timestamp> {
        let agent = self.members.get(seat)?.who.agent;
        self.state.board.agents.ready()?.get(&agent)?.lease_expires
    }

    /// Stops a session that has to end, as hard as it is time for.
    fn watch_over(&mut self, seat: Seat) {
        let (state, halt, config, now) =
            (Arc::clone(&self.state), self.halt, Arc::clone(&self.config), now());
        let lease = self.lease_of(seat);
        let (stopping, urgent) = (self.stopping.is_some(), self.urgent);
        let Some(member) = self.members.get_mut(seat) else { return };
        let who = &member.who;
        let registered = still_registered(&state, who.agent, who.generation);
        let interactive = member.post.interactive;
        let Phase::RunningSession(run) = &mut member.phase else { return };
        run.lease = lease.filter(|_| registered).unwrap_or(run.lease);
        let halted = halt.pause || halt.checkpoint;
        run.halted_since = halted.then(|| run.halted_since.unwrap_or(now));
        // A person ends their own session.
        let done = !interactive && is_done(&state, who.agent, run.session.task.as_ref());
        run.done_since = done.then(|| run.done_since.unwrap_or(now));
        let running = RunningSession {
            started: run.started,
            lease_expires: run.lease,
            owns_task: registered && still_owns(&state, who.agent, run.session.task.as_ref()),
            done_since: run.done_since,
            halted_since: run.halted_since,
            terminated_at: run.terminated_at,
        };
        let step = match stop_step(&running, halt, &config, now) {
            StopStep::Leave(_) if urgent => StopStep::Kill,
            step @ (StopStep::Leave(_) | StopStep::Terminate(_) | StopStep::Kill) => step,
        };
        let said = match step {
            StopStep::Leave(_) if stopping && run.terminated_at.is_none() => {
                run.leaving = true;
                run.terminated_at = Some(now);
                run.session.tell(Word::Terminate);
                member.wake = Some(Instant::now() + Duration::from_millis(100));
                Some("its session is asked to end".to_owned())
            }
            StopStep::Leave(until) => {
                member.wake = Some(moment(until));
                None
            }
            StopStep::Terminate(cause) => {
                run.cause = Some(cause);
                run.terminated_at = Some(now);
                run.session.tell(Word::Terminate);
                member.wake = Some(Instant::now() + Duration::from_millis(100));
                Some(format!("its session is asked to end: {}", why(cause)))
            }
            StopStep::Kill => {
                let first = !std::mem::replace(&mut run.killed, true);
                if first {
                    run.session.tell(Word::Kill);
                }
                member.wake = Some(Instant::now() + Duration::from_secs(1));
                first.then(|| "its session is ended".to_owned())
            }
        };
        if let Some(text) = said {
            self.say(seat, text);
        }
    }

    /// Takes what a session's helper reports.
    pub(super) fn reported(&mut self, seat: Seat, report: Report) {
        let ending = match report {
            Report::Started { pid } => return self.mutter(seat, format!("process {pid}")),
            Report::Used(measured) => return self.measured(seat, measured),
            Report::Flooded { kept } => {
                return self.alert(seat, format!("floods its output; {} MiB are kept", kept >> 20));
            }
            Report::Ended { code: Some(code), .. } => SessionEnd::Code(code),
            Report::Ended { signal, .. } => SessionEnd::Signal(signal.unwrap_or(9)),
            Report::Failed { message } => {
                self.alert(seat, message);
                SessionEnd::Code(127)
            }
        };
        let Some(member) = self.members.get_mut(seat) else { return };
        let Phase::RunningSession(run) = &member.phase else { return };
        let ending = match run.cause {
            Some(StopCause::OverTime) => SessionEnd::OverTime,
            Some(
                StopCause::Abort
                | StopCause::Halt
                | StopCause::TaskLost
                | StopCause::LeaseEnding
                | StopCause::Done,
            ) => SessionEnd::Stopped,
            None if run.leaving => SessionEnd::Stopped,
            None => ending,
        };
        self.ended(seat, ending);
    }

    /// Writes down what a session has used, and says when it should hand over.
    fn measured(&mut self, seat: Seat, measured: SessionUsage) {
        let Some(member) = self.members.get_mut(seat) else { return };
        let Phase::RunningSession(run) = &mut member.phase else { return };
        let before = std::mem::replace(&mut run.used, measured);
        errand::book(&self.project, &member.who, run.account());
        if run.used.should_hand_over() && !before.should_hand_over() {
            let percent = run.used.context_percent.unwrap_or_default();
            self.alert(seat, format!("{percent} % of its context is used: it should hand over"));
        }
    }

    fn ended(&mut self, seat: Seat, ending: SessionEnd) {
        let Some(member) = self.members.get_mut(seat) else { return };
        let Phase::RunningSession(run) = &member.phase else { return };
        let judged = Judged {
            agent: member.who.agent,
            task: run.session.task.clone(),
            began_at: run.session.began_at,
            began: run.session.began,
            crashes_before: member.crashes,
        };
        let (triggers, checkout) = (run.session.triggers.clone(), run.session.checkout.clone());
        let account = run.account();
        member.crashes = match ending {
            SessionEnd::Signal(_) | SessionEnd::OverTime => member.crashes + 1,
            SessionEnd::Code(code) if !matches!(code, 0 | liza_core::watch::supervise::EXIT_RESTART) => {
                member.crashes + 1
            }
            SessionEnd::Code(_) | SessionEnd::Stopped => 0,
        };
        self.mutter(seat, format!("session ended: {}", how(ending)));
        self.begin(seat, Errand::Judge { session: judged, ending, triggers, checkout, account });
    }
}

/// The step as far as the agent's post goes: one task only, or not the reviews that it has given up.
fn narrowed(step: Step, member: &Member, situation: &Situation<'_>) -> Step {
    let only = member.post.task.as_ref();
    let status = only.and_then(|task| situation.state.board.status(task));
    if status.is_some_and(Status::is_terminal) {
        return Step::Stop(StopReason::RoleComplete);
    }
    let wanted = |task: &TaskId| only.is_none_or(|only| only == task) && !member.left.contains(task);
    let config = situation.state.board.config.ready().cloned().unwrap_or_default();
    let waited = situation.now.since(situation.idle_since) >= config.coder_max_wait;
    let nothing = || match waited && !situation.in_team {
        true => Step::Stop(StopReason::WaitedLongEnough),
        false => Step::Wait { why: WaitReason::NoWork, until: situation.now + config.coder_poll_interval },
    };
    let some = |tasks: Vec<TaskId>, make: fn(Vec<TaskId>) -> Step| {
        let tasks: Vec<TaskId> = tasks.into_iter().filter(|task| wanted(task)).collect();
        if tasks.is_empty() { nothing() } else { make(tasks) }
    };
    match step {
        Step::Code(tasks) => some(tasks, Step::Code),
        Step::Review(tasks) => some(tasks, Step::Review),
        Step::Stop(_) | Step::Hold(_) | Step::Merge(_) | Step::Plan(_) | Step::Wait { .. } => step,
    }
}

fn at_work(role: Role, task: Option<&TaskId>) -> String {
    match (role, task) {
        (Role::Coder, Some(task)) => format!("works on {task}"),
        (Role::CodeReviewer, Some(task)) => format!("reviews {task}"),
        (Role::Planner, _) | (_, None) => "plans".to_owned(),
    }
}

fn farewell(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Aborted => "ABORT stands: ending",
        StopReason::RoleComplete => "nothing is left to do: ending",
        StopReason::WaitedLongEnough => "no work has come: ending",
    }
}

fn why(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Abort => "ABORT stands",
        StopCause::Halt => "PAUSE or CHECKPOINT stands",
        StopCause::TaskLost => "its task is no longer its own",
        StopCause::LeaseEnding => "its lease could not be renewed",
        StopCause::OverTime => "it has run too long",
        StopCause::Done => "its work is done",
    }
}

fn how(ending: SessionEnd) -> String {
    match ending {
        SessionEnd::Code(code) => format!("exit {code}"),
        SessionEnd::Signal(signal) => format!("killed by signal {signal}"),
        SessionEnd::Stopped => "stopped".to_owned(),
        SessionEnd::OverTime => "stopped, it ran too long".to_owned(),
    }
}
