//! The server that runs over the same store, if one does.

use provost_client::{Client, ClientError, ServerAddress};
use provost_event::RunId;
use provost_runtime::StateDir;

/// A client of that server; `None` where there is none, or another user's.
pub(crate) fn running(place: &StateDir) -> Option<Client> {
    let token = std::fs::read_to_string(place.server_token()).ok()?;
    Some(Client::new(ServerAddress::Unix(place.server_socket()), token.trim()))
}

/// Has that server go on with a run. `None` without a server.
///
/// # Errors
/// Why it doesn't, for people.
pub(crate) async fn takes_up(place: &StateDir, run: RunId) -> Option<Result<(), String>> {
    match running(place)?.resume(run, None).await {
        Ok(()) => Some(Ok(())),
        // A server that was killed has left its token.
        Err(ClientError::Unreachable { .. }) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}
