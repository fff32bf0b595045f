//! Answers of git that follow from named objects alone. An object never changes, so each question is asked once.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

/// The most bytes that all answers have together, and one of them.
const KEPT_MAX: usize = 16 << 20;
const ANSWER_MAX: usize = KEPT_MAX / 4;

/// The most answers.
const COUNT_MAX: usize = 2_048;

#[derive(Debug, Default)]
pub(crate) struct KnownAnswers(Mutex<VecDeque<Known>>);

#[derive(Debug)]
struct Known {
    question: Question,
    answer: Vec<u8>,
}

/// The arguments of git, and its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub arguments: Vec<OsString>,
    pub input: Vec<u8>,
}

impl KnownAnswers {
    pub(crate) fn get(&self, question: &Question) -> Option<Vec<u8>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|known| known.question == *question).map(|known| known.answer.clone())
    }

    /// Keeps an answer, and forgets the oldest ones.
    pub(crate) fn keep(&self, question: Question, answer: &[u8]) {
        if question.input.len() + answer.len() > ANSWER_MAX {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back(Known { question, answer: answer.to_owned() });
        let size = |known: &Known| known.question.input.len() + known.answer.len();
        let mut all: usize = known.iter().map(size).sum();
        while all > KEPT_MAX || known.len() > COUNT_MAX {
            all -= known.pop_front().as_ref().map_or(all, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(word: usize) -> Question {
        Question { arguments: vec![word.to_string().into()], input: b"input".to_vec() }
    }

    /// Covers: JU-10
    #[test]
    fn the_newest_answers_are_kept_as_far_as_they_fit() {
        let known = KnownAnswers::default();
        known.keep(question(0), &vec![0; ANSWER_MAX]);
        assert_eq!(known.get(&question(0)), None, "too long");
        (0..5).for_each(|word| known.keep(question(word), &vec![1; ANSWER_MAX - 5]));
        assert_eq!((known.get(&question(0)), known.get(&question(1)).is_some()), (None, true));
        (10..10 + COUNT_MAX).for_each(|word| known.keep(question(word), b"short"));
        assert_eq!((known.get(&question(4)), known.get(&question(10))), (None, Some(b"short".to_vec())));
        assert_eq!(known.get(&Question { input: Vec::new(), ..question(10) }), None, "another input");
    }
}
