//! The settings under which work is judged: a hold that they caused ends when one of them changes.

use liza_ids::{Digest, Role};

use crate::model::{Board, Config, HeadTest, TestFailure};

use super::accepted_settings::network_of;

/// The length of the word for some settings.
const WORD: usize = 16;

/// The most words that a hold keeps. Machines that have accepted different settings try once each, not in turn.
const KEPT: usize = 16;

/// One word for all settings that decide whether a test or a validation can pass, as this machine has accepted them.
pub fn judging_settings(config: &Config) -> String {
    let commands = (&config.validation, &config.gate, &config.setup, &config.copy, &config.exec_wrapper);
    let limits = (config.validation_limit, config.integration_test_limit, config.setup_limit);
    let files = (config.sandbox, config.sandbox_min, config.sandbox_max_abi, &config.sandbox_read);
    let more =
        (&config.sandbox_readable, &config.sandbox_writable, &config.sandbox_sockets, &config.pass_env);
    let network = (&config.network_ports, network_of(&config.roles, Role::CodeReviewer));
    let text = format!("{:?}", (commands, limits, files, more, network));
    Digest::of(text.as_bytes()).as_str().chars().take(WORD).collect()
}

/// True if a judgement was made under today's settings. One without a word is of an earlier version.
pub fn is_of_today(words: &[String], config: &Config) -> bool {
    words.is_empty() || words.contains(&judging_settings(config))
}

/// The words of a hold that is found once more.
pub(crate) fn joined(earlier: &[String], new: &[String]) -> Vec<String> {
    let added = new.iter().filter(|word| !earlier.contains(word)).cloned();
    let mut words: Vec<String> = earlier.iter().cloned().chain(added).collect();
    words.drain(..words.len().saturating_sub(KEPT));
    words
}

/// The failed integration test on the head of the next merge, under today's settings; `None` if it passed there or was not run.
pub fn failing_head(board: &Board) -> Option<(&HeadTest, &TestFailure)> {
    let goal = board.goal.ready()?;
    let test = goal.head_test.as_ref().filter(|test| Some(&test.head) == goal.integration_head.as_ref())?;
    let failure = test.failure.as_ref()?;
    is_of_today(&test.settings, board.config.ready()?).then_some((test, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    /// Covers: JU-03
    #[test]
    fn what_decides_whether_a_command_can_pass_changes_the_word_and_nothing_else_does() {
        let word = judging_settings(&Config::default());
        let deciding = [
            r#"{"validation": ["make"]}"#,
            r#"{"validation_limit": 7}"#,
            r#"{"integration_test_limit": 7}"#,
            r#"{"setup": "make"}"#,
            r#"{"setup_limit": 7}"#,
            r#"{"copy": [".env"]}"#,
            r#"{"gate": {"runs": [], "watched": []}}"#,
            r#"{"sandbox": "off"}"#,
            r#"{"sandbox_readable": ["/opt"]}"#,
            r#"{"sandbox_writable": ["/opt"]}"#,
            r#"{"sandbox_sockets": ["/opt/s"]}"#,
            r#"{"pass_env": ["DISPLAY"]}"#,
            r#"{"network_ports": [5432]}"#,
            r#"{"roles": {"code-reviewer": {"network": "model-only"}}}"#,
        ];
        for text in deciding {
            assert_ne!(judging_settings(&config(text)), word, "{text}");
        }
        for text in [r#"{"lease_duration": 77}"#, r#"{"roles": {"code-reviewer": {"model": "big"}}}"#] {
            assert_eq!(judging_settings(&config(text)), word, "{text}");
        }
    }

    /// Covers: JU-03
    #[test]
    fn a_hold_keeps_the_words_of_several_machines_and_not_without_end() {
        let words = |from: usize, to: usize| (from..to).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(joined(&words(0, 2), &words(1, 3)), words(0, 3));
        assert_eq!(joined(&words(0, KEPT), &words(20, 21)).len(), KEPT);
        assert!(joined(&words(0, KEPT), &words(20, 21)).contains(&"20".to_owned()));
    }
}
