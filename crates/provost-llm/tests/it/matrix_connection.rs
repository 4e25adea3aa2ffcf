//! Connections: reused, and closed when the answer isn't needed any more.

use provost_event::ErrorClass;
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::{Reply, chunk, plain};
use crate::speaker::*;
use crate::support::{DeltaRecorder, in_time};

for_every_provider! {
    turns_go_over_one_connection_also_after_errors,
    a_connection_the_server_has_closed_is_replaced,
    bytes_after_the_answer_dont_matter,
    cancel_closes_the_connection_at_once_and_tells_what_was_taken,
    cancel_works_before_the_server_says_anything,
    a_cancelled_call_doesnt_even_connect,
    dropping_the_call_closes_the_connection,
}

async fn turns_go_over_one_connection_also_after_errors(speaker: &dyn Speaker) {
    let good = || whole(speaker, &speaker.events(&Spoken::everything()));
    let refused = |status| Reply::Whole(plain(status, "", &speaker.refusal(status, "Own words.")));
    let cut = || whole(speaker, &speaker.events(&Spoken::everything())[..1]);
    let replies = [good(), refused(529), good(), refused(404), good(), cut(), good(), refused(429), good()];
    let count = replies.len();
    let mut scene = Scene::new(speaker, replies).await;
    for turn in 0..count {
        match scene.ask().await {
            Ok(answer) => scene.conversation.answered(&answer, "found"),
            Err(failure) => assert_eq!(turn % 2, 1, "{failure:?}"),
        }
    }
    let seen = scene.server.seen();
    assert_eq!((seen.accepted, seen.asked.len()), (1, count));
}

async fn a_connection_the_server_has_closed_is_replaced(speaker: &dyn Speaker) {
    let bytes = streamed(speaker, [stream(&speaker.events(&Spoken::text(&["a"]))).as_bytes()]);
    let scene = Scene::new(speaker, [Reply::Cut(bytes.clone()), Reply::Whole(bytes)]).await;
    scene.ask().await.unwrap();
    scene.server.until(|seen| seen.closed == 1).await;
    scene.ask().await.unwrap();
    assert_eq!(scene.server.seen().accepted, 2);
}

async fn bytes_after_the_answer_dont_matter(speaker: &dyn Speaker) {
    let mut bytes = begun(speaker, stream(&speaker.events(&Spoken::text(&["a"]))));
    bytes.extend(chunk(b"data: not json\n\ndata: "));
    bytes.extend(chunk(speaker.trouble(Trouble::Overloaded, "late").as_bytes()));
    bytes.extend_from_slice(b"0\r\n\r\n");
    let scene = Scene::new(speaker, [Reply::Whole(bytes)]).await;
    scene.ask().await.unwrap();
    scene.ask().await.unwrap();
    assert_eq!(scene.server.seen().accepted, 1);
}

async fn cancel_closes_the_connection_at_once_and_tells_what_was_taken(speaker: &dyn Speaker) {
    let events = speaker.events(&Spoken::text(&["Hello", "you"]));
    let first = &events[..=speaker.before_text()];
    let scene = Scene::new(speaker, [Reply::Hold(begun(speaker, stream(first)))]).await;
    let (heard, cancel) = (DeltaRecorder::default(), CancellationToken::new());
    let (outcome, ()) = tokio::join!(scene.hear(&heard, &cancel), async {
        in_time(heard.until_first()).await;
        assert_eq!(scene.server.seen().closed, 0);
        cancel.cancel();
    });
    let failure = outcome.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Aborted);
    assert_eq!(failure.usage, taken(first.last(), &scene.conversation));
    scene.server.until(|seen| seen.closed == 1).await;
}

async fn cancel_works_before_the_server_says_anything(speaker: &dyn Speaker) {
    for bytes in [Vec::new(), head(speaker)] {
        let scene = Scene::new(speaker, [Reply::Hold(bytes)]).await;
        let (heard, cancel) = (DeltaRecorder::default(), CancellationToken::new());
        let (outcome, ()) = tokio::join!(scene.hear(&heard, &cancel), async {
            scene.server.until(|seen| seen.asked.len() == 1).await;
            cancel.cancel();
        });
        assert_eq!(outcome.unwrap_err().class, ErrorClass::Aborted);
        scene.server.until(|seen| seen.closed == 1).await;
    }
}

async fn a_cancelled_call_doesnt_even_connect(speaker: &dyn Speaker) {
    let scene = Scene::new(speaker, [Reply::Reset]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let failure = scene.hear(&DeltaRecorder::default(), &cancel).await.unwrap_err();
    assert_eq!((failure.class, scene.server.seen().accepted), (ErrorClass::Aborted, 0));
}

async fn dropping_the_call_closes_the_connection(speaker: &dyn Speaker) {
    let scene = Scene::new(speaker, [Reply::Hold(head(speaker))]).await;
    tokio::select! {
        answer = scene.ask() => panic!("{answer:?}"),
        () = scene.server.until(|seen| seen.asked.len() == 1) => {}
    }
    scene.server.until(|seen| seen.closed == 1).await;
}
