//! Network namespaces without a name: held by a file descriptor, gone with the last process that uses them.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::NetError;
use crate::system;

const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
const LOOPBACK: &str = "lo";

/// One network namespace, with its loopback device up and without IPv6.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Make a namespace.
    ///
    /// # Errors
    /// [`NetError::Namespace`] if that is not permitted.
    pub fn new() -> Result<Self, NetError> {
        on_thread(|| {
            system::unshare_network().map_err(|source| NetError::Namespace { source })?;
            let file = File::open(OWN_NAMESPACE).map_err(|source| NetError::Namespace { source })?;
            // Without it devices would send their own router solicitations. If it cannot be set they are counted as
            // packets that are not IPv4.
            for scope in ["all", "default"] {
                fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1").ok();
            }
            let socket = any_socket()?;
            system::set_up(&socket, LOOPBACK).map_err(|source| NetError::Device {
                device: LOOPBACK.to_owned(),
                action: "brought up",
                source,
            })?;
            Ok(Self { file })
        })
    }

    /// The descriptor that holds it; `/proc/<process>/fd/<descriptor>` is its path.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Run `work` on a thread in the namespace. Sockets and devices that it opens stay in it permanently.
    ///
    /// # Errors
    /// Those of `work`; [`NetError::Enter`] if the namespace cannot be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> Result<T, NetError> + Send) -> Result<T, NetError> {
        on_thread(|| {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| NetError::Enter { source: error.into() })?;
            work()
        })
    }
}

/// Run `work` in the namespace, or in the caller's if there is none.
///
/// # Errors
/// As [`Namespace::enter`].
pub fn within<T: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> Result<T, NetError> + Send,
) -> Result<T, NetError> {
    match namespace {
        Some(namespace) => namespace.enter(work),
        None => work(),
    }
}

/// A socket through which devices of the thread's namespace are set up.
///
/// # Errors
/// [`NetError::OperatingSystem`] if there are no more.
pub fn any_socket() -> Result<UdpSocket, NetError> {
    UdpSocket::bind("0.0.0.0:0").map_err(|source| NetError::OperatingSystem { what: "sockets", source })
}

/// Run `work` on a thread that ends with it: a thread's namespace, and its priority, do not outlive it.
pub(crate) fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, NetError> + Send) -> Result<T, NetError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|source| NetError::OperatingSystem { what: "threads", source })?;
        thread.join().expect("such work does not panic")
    })
}
