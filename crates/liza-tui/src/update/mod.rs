//! The change of each event, and its effects. Pure: no clock, no terminal, no files.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "keys are not our enum, and most of them mean nothing here"
)]

pub(crate) mod keys;
pub(crate) mod search;

use liza_status::action::{Action, ActionName, ActionSubject};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::Line;

use crate::model::dialog::Dialog;
use crate::model::input_field::InputField;
use crate::model::page::{Page, PageSource, Scroll};
use crate::model::{ActionNotice, Effect, Event, Model, Panel, Prompt};
use crate::styled::{self, printable};
use crate::theme::Theme;
use crate::update::keys::action_of;
use crate::update::search::find;

use crate::{CommandResult, ScreenMode};

/// The rows around the content of a page: title, progress, tabs, footer.
pub(crate) const PAGE_FRAME: u16 = 4;

const NO_TASK: &str = "select a task first";

/// Changes the model by an event; returns the effects.
pub(crate) fn update(model: &mut Model, event: Event, theme: &Theme) -> Vec<Effect> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Key(key) => {
            // From now on the keys go where the person thinks that they go.
            model.moved = true;
            on_key(model, key)
        }
        Event::Paste(text) => {
            paste(model, &text);
            Vec::new()
        }
        Event::Resize(columns, rows) => {
            model.size = (columns, rows);
            // Pages are wrapped for the width.
            if let Some(page) = &mut model.page {
                page.loading = false;
                page.loaded_at = 0;
                page.lines = page.lines.take().filter(|_| page.source().is_none());
            }
            refresh(model)
        }
        Event::View(view) => {
            model.set_view(view);
            model.drop_old_notice();
            refresh(model)
        }
        Event::Unreadable(why) => {
            model.problem = Some(why);
            Vec::new()
        }
        Event::Log(lines) => {
            model.add_log(lines);
            Vec::new()
        }
        Event::Loaded(source, result) => {
            loaded(model, &source, &result, theme);
            Vec::new()
        }
        Event::Executed { words, result } => executed(model, &words, &result, theme),
        Event::End => vec![Effect::Quit],
    }
}

/// Changes the model by these events up to the one that ends the screen: the person does not see what a later
/// key would act on.
pub(crate) fn update_all(
    model: &mut Model,
    events: impl Iterator<Item = Event>,
    theme: &Theme,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in events {
        effects.extend(update(model, event, theme));
        if effects.contains(&Effect::Quit) {
            break;
        }
    }
    effects
}

fn refresh(model: &mut Model) -> Vec<Effect> {
    let second = model.view.as_ref().map_or(0, |view| view.now.unix());
    let task = model.page.as_ref().and_then(Page::task).and_then(|task| model.task_view(task));
    let revision = task.map(|task| task.revision);
    let due = model.page.as_mut().and_then(|page| page.next_load(second, revision));
    due.map(Effect::Load).into_iter().collect()
}

fn loaded(model: &mut Model, source: &PageSource, result: &CommandResult, theme: &Theme) {
    let columns = usize::from(model.size.0);
    let Some(page) = model.page.as_mut().filter(|page| page.source() == Some(source)) else { return };
    page.loading = false;
    let mut lines = styled::lines(&result.text, theme);
    // The title of the page names the task already.
    let is_title = |line: &Line<'_>| {
        page.tab == 0 && page.task().is_some_and(|task| line.to_string().starts_with(task.as_str()))
    };
    if lines.first().is_some_and(is_title) {
        lines.remove(0);
    }
    page.lines = Some(styled::wrapped(lines, columns));
}

/// Shows the result of an action: in the footer if it is one line, else as a page.
fn executed(model: &mut Model, words: &[String], result: &CommandResult, theme: &Theme) -> Vec<Effect> {
    if let Some(ended) = model.running.iter().position(|running| running == words) {
        model.running.remove(ended);
    }
    let lines = styled::lines(&result.text, theme);
    let said: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let first = said.iter().find(|line| !line.trim().is_empty()).cloned().unwrap_or_default();
    let short = said.iter().filter(|line| !line.trim().is_empty()).count() <= 2;
    if result.succeeded && !short {
        let lines = styled::wrapped(lines, usize::from(model.size.0));
        model.page = Some(Page::of_result(words, lines));
        // The page says it; the footer has its keys.
        model.notice = None;
        return Vec::new();
    }
    let text = if result.succeeded { first } else { said.join(" ") };
    let text = if text.is_empty() { "done".to_owned() } else { text };
    model.notice = Some(ActionNotice::new(text, result.succeeded));
    Vec::new()
}

fn on_key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return leave(model);
    }
    if model.is_too_small() {
        let quits = key.code == KeyCode::Char('q') && model.mode == ScreenMode::Observer;
        return if quits { vec![Effect::Quit] } else { Vec::new() };
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('l') {
        return vec![Effect::Redraw];
    }
    if model.prompt.is_some() {
        return on_prompt_key(model, key);
    }
    if model.dialog.is_some() {
        return on_dialog_key(model, key);
    }
    // A result stays until the next key.
    model.notice = None;
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return Vec::new();
    }
    if model.page.is_some() {
        if let Some(effects) = on_page_key(model, key) {
            return effects;
        }
    } else if let Some(effects) = on_board_key(model, key) {
        return effects;
    }
    match key.code {
        KeyCode::Char('?') => open(model, Page::of_keys()),
        KeyCode::Char('/') => {
            model.prompt = Some(Prompt::Search(InputField::search()));
            Vec::new()
        }
        KeyCode::Char('y') => copy(model),
        KeyCode::Char('d') => match model.subject().map(|task| Page::of_diff(&task.id)) {
            Some(page) => open(model, page),
            None => refuse(model, NO_TASK),
        },
        KeyCode::Char('e') => match model.subject().map(|task| task.id.to_string()) {
            Some(task) => edit(model, task),
            None => refuse(model, NO_TASK),
        },
        KeyCode::Char(key) => match action_of(key, model.action_subject()) {
            Ok(action) if action.name == Some(ActionName::Resume) => resume(model, &action),
            Ok(action) => begin(model, &action),
            Err("") => Vec::new(),
            Err(_) if key == 'a' && model.asking_task().is_some() => {
                let subject = ActionSubject { task: model.asking_task(), agent: None };
                let action = Action::requested(ActionName::Answer, subject, None);
                match action {
                    Ok(action) => begin(model, &action),
                    Err(why) => refuse(model, why),
                }
            }
            Err(why) => refuse(model, why),
        },
        _ => Vec::new(),
    }
}

/// Says why a key does nothing.
fn refuse(model: &mut Model, why: &str) -> Vec<Effect> {
    model.notice = Some(ActionNotice::refusal(why));
    Vec::new()
}

/// Copies the command of the selection, and names it.
fn copy(model: &mut Model) -> Vec<Effect> {
    let Some(command) = model.selected_command() else { return refuse(model, "there is no command to copy") };
    model.notice = Some(ActionNotice::command(format!("copied: {command}")));
    vec![Effect::Copy(command)]
}

/// Opens a task in the person's editor. The team of this process would take its Ctrl-C.
fn edit(model: &mut Model, task: String) -> Vec<Effect> {
    let words = vec!["edit".to_owned(), task];
    match model.mode {
        ScreenMode::Observer => vec![Effect::InTerminal(words)],
        ScreenMode::Team => in_another_terminal(model, &styled::shell_line(&words)),
    }
}

/// Answers a question of the screen.
fn on_prompt_key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(mut prompt) = model.prompt.take() else { return Vec::new() };
    match (&mut prompt, key.code) {
        (_, KeyCode::Esc) => {}
        (Prompt::Search(field), KeyCode::Enter) => {
            let text = std::mem::take(&mut field.text);
            return search(model, text);
        }
        (Prompt::Search(field), _) => {
            field.edit(key);
            model.prompt = Some(prompt);
        }
        (Prompt::Leave, KeyCode::Char('d')) => return vec![Effect::Detach, Effect::Quit],
        (Prompt::Leave, KeyCode::Char('s')) => return leave(model),
        (Prompt::Leave, KeyCode::Char('n' | 'q')) => {}
        (Prompt::Leave, _) => model.prompt = Some(prompt),
    }
    Vec::new()
}

/// Goes to the next place that has the text; without one, the text of the last search.
fn search(model: &mut Model, text: String) -> Vec<Effect> {
    if !text.is_empty() {
        model.sought = text;
    }
    let sought = model.sought.clone();
    let height = page_height(model);
    if !sought.is_empty() && !find(model, &sought, height) {
        return refuse(model, &format!("not found: {sought}"));
    }
    Vec::new()
}

fn page_height(model: &Model) -> usize {
    usize::from(model.size.1.saturating_sub(PAGE_FRAME)).max(1)
}

/// Lets the team continue; a budget that is used up has to be raised first.
fn resume(model: &mut Model, action: &Action) -> Vec<Effect> {
    let raise = model.used_up_budget().map(Action::answering);
    begin(model, raise.as_ref().unwrap_or(action))
}

/// Ctrl-C: leaves the screen, or stops the team of this process.
fn leave(model: &mut Model) -> Vec<Effect> {
    match model.mode {
        ScreenMode::Observer => vec![Effect::Quit],
        ScreenMode::Team => {
            model.killing = std::mem::replace(&mut model.stopping, true);
            (model.dialog, model.prompt, model.notice) = (None, None, None);
            vec![Effect::StopTeam]
        }
    }
}

/// Starts an action, or asks first.
fn begin(model: &mut Model, action: &Action) -> Vec<Effect> {
    let budgets = model.view.as_ref().map(|view| view.budgets.as_slice()).unwrap_or_default();
    match Dialog::of(action, budgets) {
        Some(dialog) => {
            model.dialog = Some(dialog);
            Vec::new()
        }
        None => execute(model, action.words(&[])),
    }
}

/// Shows a command that cannot run here.
fn in_another_terminal(model: &mut Model, command: &str) -> Vec<Effect> {
    let text = format!("in another terminal: {command}");
    model.notice = Some(ActionNotice::command(text));
    Vec::new()
}

fn execute(model: &mut Model, words: Vec<String>) -> Vec<Effect> {
    model.running.push(words.clone());
    vec![Effect::Execute(words)]
}

fn open(model: &mut Model, page: Page) -> Vec<Effect> {
    model.page = Some(page);
    refresh(model)
}

/// A key of the board; `None` if it may be an action.
fn on_board_key(model: &mut Model, key: KeyEvent) -> Option<Vec<Effect>> {
    let rows = isize::try_from(model.size.1 / 2).unwrap_or(10);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => select(model, -1),
        KeyCode::Down | KeyCode::Char('j') => select(model, 1),
        KeyCode::PageUp => select(model, -rows),
        KeyCode::PageDown => select(model, rows),
        KeyCode::Home | KeyCode::Char('g') => select(model, isize::MIN),
        KeyCode::End | KeyCode::Char('G') => select(model, isize::MAX),
        KeyCode::Tab | KeyCode::Right => next_panel(model, 1),
        KeyCode::BackTab | KeyCode::Left => next_panel(model, Panel::ALL.len() - 1),
        KeyCode::Enter => return Some(enter(model)),
        KeyCode::Char('q') => {
            return Some(match model.mode {
                ScreenMode::Observer => vec![Effect::Quit],
                ScreenMode::Team => {
                    model.prompt = Some(Prompt::Leave);
                    Vec::new()
                }
            });
        }
        _ => return None,
    }
    Some(Vec::new())
}

fn select(model: &mut Model, by: isize) {
    model.moved = true;
    let moved = |from: usize, length: usize| from.saturating_add_signed(by).min(length.saturating_sub(1));
    match model.panel {
        Panel::NeedsYou => {
            model.need = moved(model.need, model.needs().len());
            model.drop_arrival();
        }
        Panel::Tasks => model.task = moved(model.task, model.tasks().len()),
        Panel::Agents => model.agent = moved(model.agent, model.agents().len()),
        // The newest line is at the bottom.
        Panel::Log => {
            let back = by.checked_neg().unwrap_or(isize::MAX);
            let most = model.log_most.min(model.log.len().saturating_sub(1));
            model.log_back = model.log_back.min(most).saturating_add_signed(back).min(most);
        }
    }
}

/// Gives the keys to another panel that has something to show.
fn next_panel(model: &mut Model, steps: usize) {
    model.moved = true;
    let at = Panel::ALL.iter().position(|panel| *panel == model.panel).unwrap_or(0);
    let shown = |panel: &Panel| match panel {
        Panel::NeedsYou => !model.needs().is_empty(),
        Panel::Agents => !model.agents().is_empty(),
        Panel::Tasks | Panel::Log => true,
    };
    let count = Panel::ALL.len();
    let mut others = (1..=count).map(|n| Panel::ALL[(at + n * steps) % count]);
    if let Some(panel) = others.find(shown) {
        model.panel = panel;
    }
}

/// Opens or answers the selection.
fn enter(model: &mut Model) -> Vec<Effect> {
    match model.panel {
        Panel::NeedsYou => {
            let Some(need) = model.needs().get(model.need) else { return Vec::new() };
            let (action, command) = (Action::answering(need), need.command.clone());
            match action.needs_terminal() {
                true => in_another_terminal(model, &command),
                false => begin(model, &action),
            }
        }
        Panel::Tasks => {
            let Some(task) = model.tasks().get(model.task) else { return Vec::new() };
            open(model, Page::of_task(&task.id.clone()))
        }
        Panel::Agents => match model.selected_agent() {
            Some(agent) => open(model, Page::of_agent(agent)),
            None => Vec::new(),
        },
        Panel::Log => Vec::new(),
    }
}

/// A key of a page; `None` if it may be an action.
fn on_page_key(model: &mut Model, key: KeyEvent) -> Option<Vec<Effect>> {
    let height = page_height(model);
    let page = model.page.as_mut()?;
    let step = isize::try_from(height).unwrap_or(10);
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => model.page = None,
        KeyCode::Up | KeyCode::Char('k') => page.scroll_by(-1, height),
        KeyCode::Down | KeyCode::Char('j') => page.scroll_by(1, height),
        KeyCode::PageUp => page.scroll_by(-step, height),
        KeyCode::PageDown | KeyCode::Char(' ') => page.scroll_by(step, height),
        KeyCode::Home | KeyCode::Char('g') => page.scroll = Scroll::From(0),
        KeyCode::End | KeyCode::Char('G') => page.scroll = Scroll::End,
        KeyCode::Tab | KeyCode::Right => return Some(next_tab(model, 1)),
        KeyCode::BackTab | KeyCode::Left => {
            let steps = page.tabs.len().saturating_sub(1);
            return Some(next_tab(model, steps));
        }
        KeyCode::Char(digit @ '1'..='9') => {
            let tab = digit as usize - '1' as usize;
            if tab < page.tabs.len() {
                page.open(tab);
            }
            return Some(refresh(model));
        }
        _ => return None,
    }
    Some(Vec::new())
}

fn next_tab(model: &mut Model, steps: usize) -> Vec<Effect> {
    if let Some(page) = model.page.as_mut().filter(|page| page.tabs.len() > 1) {
        let tab = (page.tab + steps) % page.tabs.len();
        page.open(tab);
    }
    refresh(model)
}

fn on_dialog_key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(dialog) = &mut model.dialog else { return Vec::new() };
    let (count, current) = (dialog.fields.len(), dialog.current);
    if key.code == KeyCode::Esc {
        model.dialog = None;
        return Vec::new();
    }
    let Some(field) = dialog.field() else {
        // Nothing to type: a question.
        return match key.code {
            KeyCode::Char('y' | 'Y') => confirm(model),
            KeyCode::Char('n' | 'N' | 'q') => {
                model.dialog = None;
                Vec::new()
            }
            _ => Vec::new(),
        };
    };
    match key.code {
        KeyCode::Enter if !field.is_filled() => {}
        KeyCode::Enter if current + 1 < count => dialog.current += 1,
        KeyCode::Enter => return confirm(model),
        KeyCode::Tab | KeyCode::Down => dialog.current = (current + 1) % count,
        KeyCode::BackTab | KeyCode::Up => dialog.current = (current + count - 1) % count,
        _ => field.edit(key),
    }
    Vec::new()
}

/// Runs what the dialog asked for, once everything is filled in.
fn confirm(model: &mut Model) -> Vec<Effect> {
    let Some(dialog) = model.dialog.take() else { return Vec::new() };
    if let Some(missing) = dialog.fields.iter().position(|field| !field.is_filled()) {
        model.dialog = Some(Dialog { current: missing, ..dialog });
        return Vec::new();
    }
    execute(model, dialog.words())
}

/// A paste is text, never keys: without a field it does nothing.
fn paste(model: &mut Model, text: &str) {
    if model.is_too_small() {
        return;
    }
    // Terminals send line breaks as carriage returns.
    let lines: Vec<String> = text.replace("\r\n", "\n").split(['\r', '\n']).map(printable).collect();
    if let Some(field) = model.typed_field() {
        field.insert(&lines.join(" "));
    }
}
