//! The driver's side of a connection: it sends requests and receives answers. A task that waits for
//! an answer polls it itself. A separate task would have to be woken for each request and each
//! answer, and the wake takes longer than most statements.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// The driver's connection future, which runs until the connection is closed.
pub type Moving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Number of times that one poll moves the line before it yields to other tasks.
const TURNS_MAX: usize = 16;

/// A connection's line to its server.
pub struct Line {
    /// None once the connection is closed, or another task moves it.
    moving: Mutex<Option<Moving>>,
    relay: Arc<Relay>,
    waker: Waker,
}

/// Wakes the waiting task, unless that task is polling the line now.
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
    /// Creates the line of a connection future.
    pub fn new(moving: Moving) -> Self {
        let relay = Arc::new(Relay::default());
        let waker = Waker::from(Arc::clone(&relay));
        Self { moving: Mutex::new(Some(moving)), relay, waker }
    }

    fn moving(&self) -> MutexGuard<'_, Option<Moving>> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives a future that waits for answers of this connection.
    pub async fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        // The future has not sent anything yet that could be answered.
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
            // Requests are yet to be sent, and a received answer may be only a part of the awaited
            // one.
            let has_more = !takes_turn || self.relay.has_more.load(Ordering::SeqCst);
            if found.is_ready() || !has_more {
                return found;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives everything that arrived while no task waited, for example that the server has
    /// closed the connection.
    pub fn hear(&self) {
        self.relay.is_polled.store(true, Ordering::SeqCst);
        self.turn();
        self.relay.is_polled.store(false, Ordering::SeqCst);
    }

    /// Sends and receives everything that is possible now.
    fn turn(&self) {
        let mut moving = self.moving();
        let Some(future) = moving.as_mut() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready() {
            *moving = None;
        }
    }

    /// Returns the connection future, for another task to move; none if it was taken or is closed.
    pub fn take(&self) -> Option<Moving> {
        self.moving().take()
    }
}

impl Drop for Line {
    /// Tells the server that nothing more comes: the sender has been dropped before.
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

    /// A server that answers each request with the number of requests, and closes when the senders
    /// are gone. If it is slow, each answer needs a wake of its own.
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
        // Like an executor: a task that was not woken is not polled.
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
