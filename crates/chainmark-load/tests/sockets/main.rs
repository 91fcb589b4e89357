//! Loads and observations over real sockets.

mod observer;
mod sender;
mod server;
