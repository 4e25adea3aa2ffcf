//! A child with pipes where there is no guard: dropping this kills it; its descendants may outlive it.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use provost_event::Exit;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::{Launch, OpenPipes, OwnStreams, PtySignal, launch};

pub(super) type Output = ChildStdout;

/// A started child.
pub(super) struct Started {
    pub(super) keeper: Keeper,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Owns the child.
pub(super) struct Keeper {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    kills: mpsc::Sender<()>,
    _waiter: AbortOnDropHandle<()>,
}

#[expect(clippy::unused_async, reason = "the shape that the other platforms need")]
pub(super) async fn start(launch: Arc<Launch<OpenPipes>>) -> io::Result<Started> {
    let mut child = launch::start(&launch, Stdio::piped())?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the child has no pipes"));
    };
    Ok(Started { keeper: Keeper::of(child), stdin, stdout, stderr })
}

/// Starts it with the streams of this process.
#[expect(clippy::unused_async, reason = "the shape that the other platforms need")]
pub(super) async fn start_with_own(launch: Arc<Launch<OwnStreams>>) -> io::Result<Keeper> {
    Ok(Keeper::of(launch::start_with_own(&launch)?))
}

async fn wait(mut child: Child, told: watch::Sender<Option<Exit>>, mut orders: mpsc::Receiver<()>) {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = orders.recv() => match child.kill().await {
            Ok(()) => child.wait().await,
            Err(error) => Err(error),
        },
    };
    let exit = status.ok().and_then(|status| status.code()).map_or(Exit::Unseen, Exit::Code);
    told.send_replace(Some(exit));
}

impl Keeper {
    fn of(child: Child) -> Self {
        let pid = child.id().unwrap_or_default();
        let (told, exit) = watch::channel(None);
        let (kills, orders) = mpsc::channel(1);
        let waiter = AbortOnDropHandle::new(tokio::spawn(wait(child, told, orders)));
        Self { pid, exit, kills, _waiter: waiter }
    }

    /// There are no signals but the kill.
    #[expect(clippy::unused_self, clippy::unused_async, reason = "as where there are guards")]
    pub(super) async fn signal(&mut self, _signal: PtySignal) {}

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    pub(super) async fn exited(&self) -> Exit {
        self.exit.clone().wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(Exit::Unseen)
    }

    pub(super) async fn gone(&self) {
        self.exited().await;
    }

    /// Without guards, descendants aren't tracked.
    #[expect(clippy::unused_self, reason = "as where there are guards")]
    pub(super) const fn is_all_ended(&self) -> bool {
        false
    }

    /// There is no request to end.
    pub(super) async fn ask_to_end(&mut self) {
        self.kill().await;
    }

    pub(super) async fn kill(&mut self) {
        drop(self.kills.send(()).await);
    }
}
