//! The driver's side of a connection, which sends what is asked and takes what is answered. Whoever
//! waits for an answer moves it, in the task that waits: a task of its own would have to be woken for
//! each request and each answer, which takes longer than most statements do.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// What moves bytes, until the connection is closed.
pub type Moving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// So often one poll moves it, before others have their turn.
const TURNS_MAX: usize = 16;

/// A connection's line to its server.
pub struct Line {
    /// None once it is closed, or somebody else moves it.
    moving: Mutex<Option<Moving>>,
    relay: Arc<Relay>,
    waker: Waker,
}

/// Wakes whoever waits, unless they are at it.
#[derive(Default)]
struct Relay {
    waiter: AtomicWaker,
    is_polled: AtomicBool,
    has_more: AtomicBool,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_more.store(true, Ordering::SeqCst);
        if !self.is_polled.load(Ordering::SeqCst) {
            self.waiter.wake();
        }
    }
}

impl Line {
    /// Of what moves its bytes.
    pub fn new(moving: Moving) -> Self {
        let relay = Arc::new(Relay::default());
        let waker = Waker::from(Arc::clone(&relay));
        Self { moving: Mutex::new(Some(moving)), relay, waker }
    }

    fn moving(&self) -> MutexGuard<'_, Option<Moving>> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a future that waits for answers of this connection.
    pub async fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        // It has asked nothing yet that could be answered.
        let mut has_asked = false;
        poll_fn(|context| self.poll(future.as_mut(), &mut has_asked, context)).await
    }

    fn poll<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        has_asked: &mut bool,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.relay.waiter.register(context.waker());
        for _ in 0..TURNS_MAX {
            self.relay.is_polled.store(true, Ordering::SeqCst);
            self.relay.has_more.store(false, Ordering::SeqCst);
            let takes_turn = std::mem::replace(has_asked, true);
            if takes_turn {
                self.turn();
            }
            let found = future.as_mut().poll(&mut Context::from_waker(&self.waker));
            self.relay.is_polled.store(false, Ordering::SeqCst);
            // What was asked is yet to be sent, and what was taken may be a part of what is waited for.
            let has_more = !takes_turn || self.relay.has_more.load(Ordering::SeqCst);
            if found.is_ready() || !has_more {
                return found;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes what has come while nobody waited, such as that the server has closed it.
    pub fn hear(&self) {
        self.relay.is_polled.store(true, Ordering::SeqCst);
        self.turn();
        self.relay.is_polled.store(false, Ordering::SeqCst);
    }

    /// Sends and takes what can be sent and taken now.
    fn turn(&self) {
        let mut moving = self.moving();
        let Some(future) = moving.as_mut() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready() {
            *moving = None;
        }
    }

    /// What moves it, for somebody else to do so; none if that was taken before, or it is closed.
    pub fn take(&self) -> Option<Moving> {
        self.moving().take()
    }
}

impl Drop for Line {
    /// Whoever asked is gone before, so that the server is told that nothing more comes.
    fn drop(&mut self) {
        self.hear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::{FutureExt as _, poll};
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    type Request = oneshot::Sender<u32>;

    /// A server that answers each request with how many there were, and closes when it is told nothing
    /// more; it is slow where each answer needs a wake of its own.
    fn line(is_slow: bool) -> (mpsc::UnboundedSender<Request>, Line) {
        let (asking, mut asked) = mpsc::unbounded_channel::<Request>();
        let moving = async move {
            let mut count = 0;
            while let Some(answer) = asked.recv().await {
                if is_slow {
                    tokio::task::yield_now().await;
                }
                count += 1;
                let _ = answer.send(count);
            }
        };
        (asking, Line::new(Box::pin(moving)))
    }

    async fn ask(asking: &mpsc::UnboundedSender<Request>) -> Option<u32> {
        let (answer, answered) = oneshot::channel();
        asking.send(answer).ok()?;
        answered.await.ok()
    }

    #[tokio::test]
    async fn whoever_waits_moves_it() {
        for is_slow in [false, true] {
            let (asking, line) = line(is_slow);
            for count in 1..100 {
                assert_eq!(line.drive(ask(&asking)).await, Some(count), "slow: {is_slow}");
            }
            let both = async { (ask(&asking).await, ask(&asking).await) };
            assert_eq!(line.drive(both).await, (Some(100), Some(101)));
        }
    }

    #[test]
    fn without_a_wait_one_turn_is_made() {
        let (asking, line) = line(false);
        assert_eq!(line.drive(ask(&asking)).now_or_never(), Some(Some(1)));
        let (answer, mut answered) = oneshot::channel();
        asking.send(answer).expect("it is open");
        assert_eq!(line.drive(std::future::pending::<()>()).now_or_never(), None);
        assert_eq!(answered.try_recv(), Ok(2), "what was asked is sent, though nobody waits");
    }

    #[test]
    fn who_is_away_is_woken_once_and_who_is_at_it_is_not() {
        struct Woken(AtomicUsize);

        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }

        let (asking, line) = line(false);
        let (answer, answered) = oneshot::channel();
        let mut waiting = pin!(line.drive(answered));
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        asking.send(answer).expect("it is open");
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn others_have_their_turn_with_what_never_rests() {
        let moving = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let line = Line::new(Box::pin(moving));
        let mut waiting = pin!(line.drive(std::future::pending::<()>()));
        for _ in 0..10 {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
    }

    #[test]
    fn what_takes_many_turns_goes_on_without_news_from_elsewhere() {
        struct Woken(AtomicBool);

        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }

        let mut left = 5 * TURNS_MAX;
        let (done, is_done) = oneshot::channel();
        let mut done = Some(done);
        let moving = std::future::poll_fn(move |context| {
            left -= 1;
            if left == 0 {
                done.take().expect("it ends once").send(()).expect("it is waited for");
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let line = Line::new(Box::pin(moving));
        let mut waiting = pin!(line.drive(is_done));
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        // As an executor does: who was not woken is not polled.
        while woken.0.swap(false, Ordering::SeqCst) {
            if waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return;
            }
        }
        panic!("it rests, with turns left to make");
    }

    #[test]
    fn the_server_is_told_when_it_is_dropped() {
        let (asking, mut asked) = mpsc::unbounded_channel::<Request>();
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        let line = Line::new(Box::pin(async move {
            while asked.recv().await.is_some() {}
            tell.store(true, Ordering::SeqCst);
        }));
        line.hear();
        drop(asking);
        assert!(!told.load(Ordering::SeqCst));
        drop(line);
        assert!(told.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn who_hears_learns_that_it_is_closed() {
        let (asking, line) = line(false);
        line.hear();
        let (answer, waiting) = oneshot::channel();
        asking.send(answer).expect("it is open");
        drop(asking);
        line.hear();
        assert_eq!(waiting.await, Ok(1));
        assert!(line.take().is_none(), "it is closed");
        let (_asking, other) = super::tests::line(false);
        assert!(other.take().is_some() && other.take().is_none(), "somebody else moves it");
    }
}
