//! The panel of the agents.

use liza_core::model::{Seconds, Usage};
use liza_host::columns::{cut, cut_middle, pad, width};
use liza_status::view::{AgentView, Liveness};
use liza_status::words::{self, agent_activity, agent_doing, agent_doing_short, agent_lease, agent_sign};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::model::Panel;

use super::{NAME, Painter, fitting, put, row, span, window, with_right};

/// The indent of an agent's activity on a row of its own.
const ACTIVITY_INDENT: usize = 6;

/// A silence that is news: it is shown even where words have to be cut for it.
const LONG_QUIET: Seconds = Seconds(30);

/// From this width on, what an agent does fits beside its name.
pub(super) const ACTIVITY_BESIDE: u16 = 110;

impl Painter<'_> {
    pub(crate) fn agents(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::Agents;
        let agents = self.model.agents();
        let detail = self.model.view.as_ref().map(|view| words::at_work(view, self.model.stopping));
        let detail = detail.unwrap_or_default();
        put(buffer, row(area, 0), &self.heading("AGENTS", &detail, focused, area.width));
        let height = usize::from(area.height - 1);
        let second = self.second_rows(area.width, height);
        let rows_of = |at: usize| if second.get(at).is_some_and(Option::is_some) { 2 } else { 1 };
        let is_short = agents.len() > height;
        // The last row says how many are hidden.
        let shown = if is_short && height > 1 { height - 1 } else { agents.len().min(height) };
        // Those at work are at the top; a selected one is looked for only where the keys are.
        let first = if focused { window(self.model.agent, agents.len(), shown) } else { 0 };
        if is_short && height > 1 {
            let hidden = at_work(agents) - at_work(&agents[first..first + shown]);
            let working = if hidden > 0 { format!(", {hidden} at work") } else { String::new() };
            let text = format!("    … {} more{working}", agents.len() - shown);
            put(
                buffer,
                row(area, u16::try_from(height).unwrap_or(u16::MAX)),
                &Line::styled(text, self.theme.dim),
            );
        }
        let name = agents.iter().map(|agent| width(&agent.id.to_string())).max().unwrap_or(0).min(NAME);
        let mut at_row = 1;
        for (at, agent) in agents.iter().enumerate().skip(first).take(shown) {
            let place = |more: usize| row(area, u16::try_from(at_row + more).unwrap_or(u16::MAX));
            put(buffer, place(0), &self.agent(agent, (name, rows_of(at) == 1), area.width));
            self.mark(buffer, place(0), focused && at == self.model.agent);
            if let Some(Some(text)) = second.get(at) {
                let text = cut_activity(agent, text, usize::from(area.width).saturating_sub(ACTIVITY_INDENT));
                let line = format!("{}{text}", " ".repeat(ACTIVITY_INDENT));
                put(buffer, place(1), &Line::styled(line, self.theme.dim));
            }
            at_row += rows_of(at);
        }
    }

    /// The second row of each agent, if one row is too narrow and `height` is enough for all.
    fn second_rows(&self, columns: u16, height: usize) -> Vec<Option<String>> {
        let agents = self.model.agents().iter();
        let second: Vec<Option<String>> =
            agents.map(|agent| second_row(agent).or_else(|| agent_activity(agent))).collect();
        let fits = second.len() + second.iter().flatten().count() <= height;
        if columns < ACTIVITY_BESIDE && fits { second } else { Vec::new() }
    }

    /// The rows of the panel in at most that many: with a second one for what each agent does, where there is room.
    pub(crate) fn agents_height(&self, columns: u16, at_most: u16) -> u16 {
        let second = self.second_rows(columns, usize::from(at_most.saturating_sub(1)));
        match self.model.agents().len() {
            0 => 0,
            count => u16::try_from(count + second.iter().flatten().count() + 1)
                .unwrap_or(u16::MAX)
                .min(at_most.max(3)),
        }
    }

    /// An agent: what it does, for how long it has been silent, its lease, its context and its cost.
    fn agent(
        &self,
        agent: &AgentView,
        (name, activity_beside): (usize, bool),
        columns: u16,
    ) -> Line<'static> {
        let style = match agent.liveness {
            Liveness::Live => self.theme.good,
            Liveness::Grace => self.theme.warning,
            Liveness::Gone | Liveness::Dead => self.theme.bad,
        };
        let head = vec![
            span(format!("  {} ", agent_sign(agent)), style),
            Span::raw(format!("{}  ", pad(&agent.id.to_string(), name))),
        ];
        let used_columns: usize = head.iter().map(Span::width).sum();
        let room = usize::from(columns).saturating_sub(used_columns);
        let doing = agent_doing(agent);
        let activity = agent_activity(agent).filter(|_| activity_beside);
        let (figures, wanted) = (agent_figures(agent), activity.as_ref().map_or(0, |text| width(text) + 3));
        // The activity comes first; a long silence is shown beside it in any case.
        let is_quiet = agent.liveness != Liveness::Live
            || agent.is_in_session() && agent.output_age.is_some_and(|age| age >= LONG_QUIET);
        let least = figures.first().filter(|_| is_quiet).map_or(0, |first| width(first));
        let spare = room.saturating_sub(width(&doing) + wanted + 2).max(least);
        let facts = fitting(figures, spare.min(room / 2));
        let left = room.saturating_sub(width(&facts) + 2);
        let doing = if activity_beside { doing } else { agent_doing_short(agent) };
        let doing = cut(&doing, left);
        let rest = left.saturating_sub(width(&doing) + 3);
        let mut line = Line::from(head);
        let doing_style = if agent.liveness.is_present() { Style::new() } else { self.theme.bad };
        line.push_span(span(doing, doing_style));
        if let Some(activity) = activity.filter(|_| rest >= 8) {
            line.push_span(span(format!("   {}", cut_activity(agent, &activity, rest)), self.theme.dim));
        }
        with_right(line, vec![span(facts, self.theme.dim)], columns)
    }
}

/// The action of a session begins with its tool; a failure ends with its cause.
fn cut_activity(agent: &AgentView, text: &str, columns: usize) -> String {
    if agent.is_in_session() { cut(text, columns) } else { cut_middle(text, columns) }
}

fn at_work(agents: &[AgentView]) -> usize {
    agents.iter().filter(|agent| agent.is_at_work()).count()
}
/// The text of an agent's second row, beyond its session.
fn second_row(agent: &AgentView) -> Option<String> {
    let merge = agent.merge().filter(|_| agent.liveness == Liveness::Live);
    let test = merge.filter(|(_, is_testing, _)| *is_testing);
    test.map(|(_, _, age)| format!("integration test, {age}")).or_else(|| held_until(agent))
}

/// The time at which a held agent continues, and the key that tries it now.
fn held_until(agent: &AgentView) -> Option<String> {
    let held = agent.held()?;
    let key = if held.again_in.is_some_and(|left| left.0 > 0) { "; now: r" } else { "" };
    Some(format!("{}{key}", held.again()))
}

/// The figures of an agent, the most important first.
fn agent_figures(agent: &AgentView) -> Vec<String> {
    let in_session = agent.is_in_session();
    let mut facts = Vec::new();
    match (agent.output_age.filter(|_| in_session), agent.heartbeat_age) {
        (Some(age), _) => facts.push(format!("quiet {age}")),
        // A live agent is seen all the time: no news.
        (None, Some(age)) if agent.liveness != Liveness::Live => facts.push(format!("seen {age}")),
        (None, Some(_) | None) => {}
    }
    facts.extend(agent.context_percent.filter(|_| in_session).map(|percent| format!("context {percent} %")));
    facts.extend(agent_lease(agent));
    facts.extend(agent.usage.as_ref().and_then(Usage::in_words));
    facts
}
