//! How the program ends: every failure has a kind, an exit code and a sentence.

use thiserror::Error;

/// Why the program ends before its work is done. Who stopped it knows why; every other failure says so in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The command line asks for something that is not there, or that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The model, this device or its files cannot do it.
    #[error("{0}")]
    Failed(String),
    /// The relay or the room is not there, refuses, or ended.
    #[error("{0}")]
    Room(String),
    /// Somebody stopped the program.
    #[error("the program was stopped")]
    Stopped(Signal),
    /// Nobody reads the output any more.
    #[error("nobody reads the output any more")]
    OutputClosed,
}

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// A request of another program.
    Terminate,
}

impl Signal {
    /// What a shell reports for it: 128 and its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl Failure {
    /// The program's exit code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Room(_) => 3,
            Self::Stopped(signal) => signal.code(),
            // What a shell reports for a program that writes to a closed pipe.
            Self::OutputClosed => 141,
        }
    }

    /// What a person reads.
    #[must_use]
    pub fn sentence(&self) -> Option<&str> {
        match self {
            Self::Usage(sentence) | Self::Failed(sentence) | Self::Room(sentence) => Some(sentence),
            Self::Stopped(_) | Self::OutputClosed => None,
        }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.to_string()
    }
}
