//! The errors of this crate: one sentence that names the cause, and a hint.

use std::io;

use thiserror::Error;

/// Why links between namespaces could not be set up, or no longer work.
#[derive(Debug, Error)]
pub enum NetError {
    #[error("a network namespace cannot be made ({source})")]
    Namespace { source: io::Error },
    #[error("the network namespace cannot be entered ({source})")]
    Enter { source: io::Error },
    #[error("/dev/net/tun cannot be opened ({source})")]
    NoTun { source: io::Error },
    #[error("the network device {device} cannot be {action} ({source})")]
    Device { device: String, action: &'static str, source: io::Error },
    #[error("{name} is {value}; it must be {condition}")]
    Argument { name: &'static str, value: String, condition: &'static str },
    #[error("the delay switch cannot use the operating system's {what} ({source})")]
    OperatingSystem { what: &'static str, source: io::Error },
    #[error("the delay switch has ended")]
    Ended,
}

impl NetError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Namespace { .. } | Self::Enter { .. } => "it takes root, or the capability CAP_SYS_ADMIN",
            Self::NoTun { .. } => "load the kernel module `tun`, and give this container the device /dev/net/tun",
            Self::Device { .. } => "it takes root, or the capability CAP_NET_ADMIN",
            Self::Argument { .. } => "correct the argument",
            Self::OperatingSystem { .. } => "raise the limit of open files or threads",
            Self::Ended => "make a new one for each network",
        }
    }

    /// Whether an argument is the cause, and not the machine.
    pub fn is_argument(&self) -> bool {
        matches!(self, Self::Argument { .. })
    }
}
