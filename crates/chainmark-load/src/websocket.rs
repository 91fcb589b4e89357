//! Dialling of WebSocket connections.

use crate::error::LoadError;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Responses are short; the library's own default would clear 128 KiB for each read.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// # Errors
/// [`LoadError::Connect`], also when the handshake takes longer than `timeout`.
pub(crate) async fn dial(url: &str, timeout: Duration) -> Result<Socket, LoadError> {
    let failed = |reason: String| LoadError::Connect { url: url.to_owned(), reason };
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    // Nagle's algorithm would delay a transaction until the previous one is acknowledged.
    let dialling = connect_async_with_config(url, Some(config), true);
    match tokio::time::timeout(timeout, dialling).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("no response within {} s", timeout.as_secs_f64()))),
    }
}

/// # Errors
/// [`LoadError::Argument`] if it is not a `ws://` URL.
pub(crate) fn check_url(url: &str) -> Result<(), LoadError> {
    match url.strip_prefix("ws://") {
        Some(rest) if !rest.is_empty() => Ok(()),
        _ => Err(LoadError::Argument {
            name: "the WebSocket URL",
            value: url.into(),
            condition: "like ws://host:port/websocket",
        }),
    }
}
