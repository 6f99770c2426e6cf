//! Adds a network distance to a store.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::layer::{Layer, Layered, Request, Work};
use crate::limits::DISTANCE_MAX;
use crate::store::{Capabilities, DataStore, StoreError};
use crate::world::World;

/// The duration of a round trip: uniformly distributed between `mean - jitter` and `mean + jitter`.
///
/// # Examples
///
/// ```
/// use mingle_store::wrap::distance::Distance;
///
/// let distance: Distance = "85ms±10ms".parse().unwrap();
/// assert_eq!(distance.mean.as_millis(), 85);
/// assert_eq!(distance.to_string(), "85ms±10ms");
/// let error = "far".parse::<Distance>().unwrap_err();
/// assert!(error.to_string().contains("85ms±10ms"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// The mean duration.
    pub mean: Duration,
    /// The greatest deviation from the mean.
    pub jitter: Duration,
}

/// The error for a text that is no distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceError {
    message: String,
}

impl fmt::Display for DistanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DistanceError {}

impl FromStr for Distance {
    type Err = DistanceError;

    fn from_str(text: &str) -> Result<Self, DistanceError> {
        let fail = |why: String| DistanceError {
            message: format!("expected a distance such as 85ms, 1.5s or 85ms±10ms: {why}"),
        };
        let (mean, jitter) = match text.split_once('±').or_else(|| text.split_once("+-")) {
            Some((mean, jitter)) => (mean, Some(jitter)),
            None => (text, None),
        };
        let mean = parse_duration(mean).map_err(fail)?;
        let jitter = jitter.map_or(Ok(Duration::ZERO), parse_duration).map_err(fail)?;
        if jitter > mean {
            return Err(fail(format!("the jitter {jitter:?} is more than the mean {mean:?}")));
        }
        Ok(Self { mean, jitter })
    }
}

/// Reads a duration such as `85ms`, `1s`, `250us` or `2min`.
///
/// # Errors
///
/// A description of the text that was found instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number
        .parse()
        .map_err(|_| format!("found {text:?}, which does not begin with a number"))?;
    let seconds = match unit.trim() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "" => return Err(format!("{text:?} has no unit; write {text}ms or {text}s")),
        other => return Err(format!("{other:?} is no unit; use us, ms, s or min")),
    };
    let duration = Duration::try_from_secs_f64(number * seconds)
        .map_err(|error| format!("{text:?}: {error}"))?;
    if duration > DISTANCE_MAX {
        return Err(format!("{text:?} is more than {DISTANCE_MAX:?}"));
    }
    Ok(duration)
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.mean)?;
        if !self.jitter.is_zero() {
            write!(f, "±{:?}", self.jitter)?;
        }
        Ok(())
    }
}

impl Distance {
    /// Draws the duration of one round trip.
    pub fn draw(&self, world: &dyn World) -> Duration {
        if self.jitter.is_zero() {
            return self.mean;
        }
        let range = u64::try_from(self.jitter.as_nanos() * 2)
            .expect("a distance is bounded by DISTANCE_MAX");
        let drawn = Duration::from_nanos(world.random() % (range + 1));
        self.mean.saturating_sub(self.jitter) + drawn
    }
}

/// A store at a distance. Half of each round trip passes before the store is called, and half
/// after it has answered.
pub type DistantStore = Layered<Distant>;

/// The layer that delays calls.
#[derive(Clone)]
pub struct Distant {
    world: Arc<dyn World>,
    distance: Distance,
}

impl DistantStore {
    /// Puts `inner` at `distance`.
    pub fn new(inner: Arc<dyn DataStore>, distance: Distance, world: Arc<dyn World>) -> Arc<Self> {
        Self::around(inner, Distant { world, distance })
    }
}

impl Layer for Distant {
    fn change(&self, capabilities: &mut Capabilities) {
        capabilities.round_trip += self.distance.mean;
    }

    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if request.is_free() {
            return work().await;
        }
        let half = self.distance.draw(&*self.world) / 2;
        self.world.sleep(half).await;
        let answer = work().await;
        self.world.sleep(half).await;
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(u64, u64), &str>) {
        match (text.parse::<Distance>(), expected) {
            (Ok(found), Ok((mean, jitter))) => {
                assert_eq!(found.mean, Duration::from_micros(mean));
                assert_eq!(found.jitter, Duration::from_micros(jitter));
                assert_eq!(found.to_string().parse(), Ok(found));
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn distances_are_read_from_text() {
        check("85ms", Ok((85_000, 0)));
        check("85ms±10ms", Ok((85_000, 10_000)));
        check(" 1s +- 0.5s ", Ok((1_000_000, 500_000)));
        check("250us", Ok((250, 0)));
        check("0ms", Ok((0, 0)));
        check("85", Err("write 85ms or 85s"));
        check("10ms±20ms", Err("more than the mean"));
        check("far", Err("does not begin with a number"));
        check("3 parsecs", Err("use us, ms, s or min"));
        check("900000s", Err("is more than"));
        check("", Err("does not begin with a number"));
    }
}
