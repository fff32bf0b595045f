//! What a session used: the place where the clients' own event streams are read.
//!
//! Every client but goose writes one JSON object per line to its output; which of them carries tokens, cost and
//! errors differs, so there is to be one reader per built-in provider here. A reader sees the kept lines of one
//! session in order and gives what `Command::RecordUsage` takes, with the error kind by which a quota is told from a
//! crash. It never matches words in ordinary output. Until there is one, a session is judged from the blackboard
//! and its exit alone.
