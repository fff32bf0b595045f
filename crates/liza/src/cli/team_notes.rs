//! Notes for a person before a team starts. Reads; changes and refuses nothing.

use liza_agents::providers::{Provider, has_choice};
use liza_core::model::{Config, Role, State, Value};
use liza_core::rules::triggers::proposed_tasks;
use liza_core::text::count;
use liza_status::command_line::StartCommands;
use liza_team::engine::integration_branch;
use liza_team::observe::last_run::last_run;
use liza_team::observe::vision_gap;
use liza_team::project::Project;
use liza_team::run::{TeamOptions, is_first_run};
use liza_team::supervisor::Post;

use super::spec_path;
use crate::recognition::test_command::how_to_test;

/// All notes about this team in this project.
pub(crate) fn team_notes(
    project: &Project,
    state: &State,
    config: &Config,
    options: &TeamOptions,
    posts: &[Post],
) -> Vec<String> {
    let notes = [
        chosen_by_itself(config, options).filter(|_| is_first_run(project) && has_choice()),
        other_program(project, config, options, posts),
        uncounted(config, posts.iter().map(|post| &post.provider)),
        missing_roles(|role| posts.iter().any(|post| post.role == role)),
        vision_warning(project, state),
        waiting_plan(state),
        test_warning(project, state),
        behind_main(project, state),
    ];
    notes.into_iter().flatten().collect()
}

/// True if a person has named an agent program.
pub(crate) fn is_named(config: &Config, options: &TeamOptions) -> bool {
    let names_program = |role: &Value| role.as_map().is_some_and(|role| role.contains_key("provider"));
    config.roles.values().any(names_program) || options.named().iter().any(Option::is_some)
}

/// The note about an agent program that no one has named.
fn chosen_by_itself(config: &Config, options: &TeamOptions) -> Option<String> {
    let default = options.default_provider.as_ref().filter(|name| *name != "claude")?;
    let text = format!(
        "no agent program is named; {default} is installed and is used. To name one: liza run --cli NAME"
    );
    (!is_named(config, options)).then_some(text)
}

/// The note about a team for which no program is named, unlike for the last one.
fn other_program(
    project: &Project,
    config: &Config,
    options: &TeamOptions,
    posts: &[Post],
) -> Option<String> {
    let (last, none) = (last_run(project).run, StartCommands::default().run);
    let first = posts.first()?.provider.name();
    let text = format!("this team uses {first}; to start the last one again: {last}");
    (last != none && !is_named(config, options)).then_some(text)
}

/// The note about a limit of tokens for a program that reports none.
pub(crate) fn uncounted<'p>(
    config: &Config,
    mut providers: impl Iterator<Item = &'p Provider>,
) -> Option<String> {
    let (problem, remedy) = providers.find_map(|provider| provider.uncounted_tokens(config))?;
    Some(format!("{problem}; {remedy}"))
}

/// The same for the programs that the settings name.
pub(crate) fn uncounted_by_roles(config: &Config) -> Option<String> {
    let named = Role::ALL.iter().filter_map(|role| Provider::choose(config, *role, None).ok());
    uncounted(config, named.collect::<Vec<_>>().iter())
}

/// The limits of a team that was started without coders or without code reviewers.
fn missing_roles(has: impl Fn(Role) -> bool) -> Option<String> {
    let (role, lacks) = match (has(Role::Coder), has(Role::CodeReviewer)) {
        (true, true) => return None,
        (false, _) => (Role::Coder, "built"),
        (true, false) => (Role::CodeReviewer, "merged"),
    };
    let (name, prefix) = (role.title().to_lowercase(), role.id_prefix());
    Some(format!("this team has no {name}: nothing is {lacks}. To add one: liza agent {prefix}"))
}

/// A warning if the vision document, which the planner plans from, is not written yet.
fn vision_warning(project: &Project, state: &State) -> Option<String> {
    let spec = state.board.goal.ready()?.spec_ref.as_deref()?;
    Some(vision_gap(project, state)?.problem(spec_path::file_of(spec)))
}

/// A plan that waits for the person since an earlier run.
fn waiting_plan(state: &State) -> Option<String> {
    let names: Vec<&str> = proposed_tasks(state).map(|(id, _)| id.as_str()).collect();
    (!names.is_empty()).then(|| {
        let number = count(names.len(), "task");
        format!("a plan waits for your approval: {number}, {}. Read it: liza plan; approve it: liza plan --approve", names.join(", "))
    })
}

/// A warning if the integration test of the person's checkout tests no merge.
fn test_warning(project: &Project, state: &State) -> Option<String> {
    let integration = integration_branch(&state.board).ok()?;
    let unused = project.repo().ok()?.unused_test(&integration).ok()??;
    Some(format!("{}; to use it: {}", unused.problem(), unused.fix()))
}

/// The note if no test judges merges.
pub(crate) fn untested(project: &Project, state: &State) -> Option<String> {
    let is_tested = project.is_tested(state)?;
    let is_validated = state.board.config.ready().is_some_and(|config| !config.validation.is_empty());
    (!is_tested && !is_validated).then(|| {
        let how = how_to_test(project.root());
        format!("nothing but the code reviewer judges merges; to test them: {how}")
    })
}

/// The note if the person has commits that the agents do not have.
fn behind_main(project: &Project, state: &State) -> Option<String> {
    let name = state.board.config.ready()?.main_branch.clone()?;
    let repo = project.repo().ok()?;
    let main = repo.tip(&name.parse().ok()?).ok()??;
    // With a remote, the branch here may be behind what the agents have.
    let goal = state.board.goal.ready()?;
    let recorded =
        goal.integration_head.clone().filter(|head| repo.has_commit(head).is_ok_and(|known| known));
    let head = match recorded {
        Some(head) => head,
        None => repo.tip(&integration_branch(&state.board).ok()?).ok()??,
    };
    let missing = repo.count_commits(&head, &main).ok().filter(|missing| *missing > 0)?;
    let missing = count(usize::try_from(missing).unwrap_or(usize::MAX), "commit");
    Some(format!("{name} has {missing} that the agents do not have; to bring them to the agents: liza sync"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_team_that_lacks_a_role_says_what_it_cannot_do() {
        let say = |counts: &[(Role, u32)]| {
            missing_roles(|role| counts.iter().any(|(one, n)| *one == role && *n > 0))
        };
        assert_eq!(say(&[(Role::Planner, 1), (Role::Coder, 1), (Role::CodeReviewer, 1)]), None);
        assert_eq!(
            say(&[(Role::CodeReviewer, 1)]).as_deref(),
            Some("this team has no coder: nothing is built. To add one: liza agent coder")
        );
        assert_eq!(
            say(&[(Role::Coder, 1)]).as_deref(),
            Some("this team has no code reviewer: nothing is merged. To add one: liza agent code-reviewer")
        );
    }
}
