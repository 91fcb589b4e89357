//! The calls to the kernel that no library wraps: making namespaces and network devices. All unsafe code of the crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::thread::UnshareFlags;

/// Move the calling thread, and no other, into a new network namespace.
pub fn unshare_network() -> io::Result<()> {
    // SAFETY: only unsharing the table of open files could break what other threads rely on; this does not.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Give only the calling thread the lowest real-time priority; false if that is not permitted.
pub fn become_realtime() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameters` is valid for the call, which only reads it. 0 means the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Block every signal that can be blocked in the calling thread: they are for the program, whose other threads handle
/// them.
pub fn block_signals() {
    // SAFETY: sigfillset initialises `all`, and pthread_sigmask only reads it; the old mask is not requested.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// A request to the kernel about the device `name`.
///
/// # Errors
/// A name that is empty or longer than the kernel permits.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is plain integers and a pointer that nothing here follows; all of them may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || !name.is_ascii() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its name has not 1 to 15 ASCII characters"));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    Ok(request)
}

fn order(file: &impl AsFd, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` is a valid, exclusive ifreq, which is what each of the orders of this module reads and writes.
    let status = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), number, std::ptr::from_mut(request)) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Make the layer-3 device `name` in the namespace in which `tun` was opened; it exists as long as the file.
pub fn attach_tun(tun: &File, name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    order(tun, libc::TUNSETIFF, &mut request)
}

/// Set how long a packet may be, in bytes. `socket` is any socket of the device's namespace, here and below.
pub fn set_mtu(socket: &impl AsFd, name: &str, bytes: u16) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_mtu = libc::c_int::from(bytes);
    order(socket, libc::SIOCSIFMTU as libc::Ioctl, &mut request)
}

/// Set how many packets may wait for the reader of the device.
pub fn set_queue(socket: &impl AsFd, name: &str, packets: u16) -> io::Result<()> {
    let mut request = request(name)?;
    // The kernel reads the same integer of the union as for the MTU.
    request.ifr_ifru.ifru_mtu = libc::c_int::from(packets);
    order(socket, libc::SIOCSIFTXQLEN as libc::Ioctl, &mut request)
}

/// Set the device's address and the network behind it.
pub fn set_address(socket: &impl AsFd, name: &str, address: Ipv4Addr, prefix_bits: u8) -> io::Result<()> {
    let mask = Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefix_bits)).unwrap_or(0));
    for (number, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_addr = socket_address(value);
        order(socket, number as libc::Ioctl, &mut request)?;
    }
    Ok(())
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (slot, byte) in data[2..6].iter_mut().zip(address.octets()) {
        *slot = byte as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

/// Bring the device up.
pub fn set_up(socket: &impl AsFd, name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    order(socket, libc::SIOCGIFFLAGS as libc::Ioctl, &mut request)?;
    // SAFETY: the kernel has just written the flags of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    order(socket, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_name_that_the_kernel_would_truncate_is_rejected() {
        assert!(request("wan0").is_ok());
        for name in ["", "sixteen-letters!", "wän0"] {
            assert!(request(name).is_err());
        }
    }
}
