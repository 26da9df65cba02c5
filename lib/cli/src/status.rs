//! The three exit statuses, the same for every program.

use std::process::ExitCode;

/// How a program ended. Only `main` turns it into a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0: done.
    Done,
    /// 1: the tool worked and the answer is no.
    No,
    /// 2: the tool could not do it: usage, unreadable or malformed input, input or output errors.
    Failed,
}

impl Status {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::No => 1,
            Status::Failed => 2,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.code())
    }
}
