//! What the kernel knows of a TCP connection.

use std::os::fd::{AsFd, AsRawFd};

/// Whether sent data have not been acknowledged; false if the kernel does not report it.
pub(crate) fn has_unacknowledged(socket: impl AsFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as it is borrowed, and the request writes one integer to `bytes`.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    status == 0 && bytes > 0
}

#[cfg(test)]
mod tests {
    use super::has_unacknowledged;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn data_sent_to_a_closed_connection_is_never_acknowledged() {
        let (mut client, server) = pair();
        drop(server);
        client.write_all(b"request").unwrap();
        let _ = client.read(&mut [0; 8]); // its end
        assert!(has_unacknowledged(&client));
    }

    #[test]
    fn data_read_by_a_server_before_it_closed_is_acknowledged() {
        let (mut client, mut server) = pair();
        client.write_all(b"request").unwrap();
        server.read_exact(&mut [0; 7]).unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        assert!(!has_unacknowledged(&client));
    }
}
