//! TUN devices: a network device whose other end is this process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::NetError;
use crate::namespace::{Namespace, any_socket, within};
use crate::system;

/// Packets that may wait for the switch: half a second of a busy node while the machine does something else.
const QUEUE_PACKETS: u16 = 10_000;
/// The column of /proc/net/dev with the number of packets that were dropped before the reader.
const DROPPED_FIELD: usize = 11;

/// One device, up, with an address; it exists as long as this value.
#[derive(Debug)]
pub struct Device {
    name: String,
    file: File,
    /// The namespace's table of devices.
    table: File,
}

impl Device {
    /// Make the device `name` in a namespace (None: the caller's) with an address of a network of `prefix_bits`.
    ///
    /// # Errors
    /// [`NetError::NoTun`] or [`NetError::Device`], if the machine does not permit it.
    pub fn new(
        namespace: Option<&Namespace>,
        name: &str,
        address: Ipv4Addr,
        prefix_bits: u8,
        mtu: u16,
    ) -> Result<Self, NetError> {
        let failed = |action| move |source| NetError::Device { device: name.to_owned(), action, source };
        within(namespace, || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open("/dev/net/tun")
                .map_err(|source| NetError::NoTun { source })?;
            system::attach_tun(&file, name).map_err(failed("made"))?;
            let socket = any_socket()?;
            // The host's own setting must not make this end use IPv6; refused, such packets are counted.
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1").ok();
            system::set_mtu(&socket, name, mtu).map_err(failed("given a packet size"))?;
            system::set_queue(&socket, name, QUEUE_PACKETS).map_err(failed("given a queue"))?;
            system::set_address(&socket, name, address, prefix_bits).map_err(failed("given an address"))?;
            system::set_up(&socket, name).map_err(failed("brought up"))?;
            let table = File::open("/proc/thread-self/net/dev").map_err(failed("looked at"))?;
            Ok(Self { name: name.to_owned(), file, table })
        })
    }

    /// Read one packet without waiting; None if there is none.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hand over one packet; false if the kernel did not accept it.
    pub fn write(&self, packet: &[u8]) -> bool {
        (&self.file).write(packet).is_ok_and(|bytes| bytes == packet.len())
    }

    /// Packets that were dropped because they were not read in time; 0 if the kernel does not report it.
    pub fn unread(&self) -> u64 {
        let mut text = String::new();
        let mut table = &self.table;
        if table.rewind().and_then(|()| table.read_to_string(&mut text)).is_err() {
            return 0;
        }
        dropped(&text, &self.name).unwrap_or(0)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn dropped(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(DROPPED_FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_dropped_unread_are_counted_in_the_kernels_table() {
        let table = "Inter-|   Receive                            |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop ...\n\
                     \x20   lo:  100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n\
                     \x20 wan0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(dropped(table, "wan0"), Some(12));
        assert_eq!(dropped(table, "wan"), None);
    }
}
