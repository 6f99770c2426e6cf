# What follows is the same for all programs.

_T = TypeVar("_T")
_In = TypeVar("_In", contravariant=True)
_Out = TypeVar("_Out", covariant=True)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Handle(Protocol[_Out]):
    """The handle of an object: its kind and its key."""

    def _mingle_path(self) -> str: ...

    def _mingle_fields(self, fields: Any) -> _Out: ...


@dataclass(frozen=True)
class Some(Generic[_Out]):
    """A value in an option that stands in another option."""

    some: _Out


@dataclass(frozen=True)
class Rushed(Generic[_Out]):
    """An answer with the level that it has, or none in time."""

    #: The level, or `late`.
    level: str
    #: The value; None if the answer is late.
    value: _Out | None

    @property
    def is_late(self) -> bool:
        """True if no answer came in time."""
        return self.level == "late"


@dataclass(frozen=True)
class Early(Generic[_T]):
    """What a call with `until` gives."""

    #: The result; None also where a store that comes later has yet to compute it.
    result: _T | None
    #: The stores that have yet to commit. They follow by themselves.
    follows: tuple[str, ...]


class Session:
    """One client of the server, and what it has seen: its later calls see that too.

    Calls of one session may run side by side, in threads, up to eight of them; more wait their turn.
    What each of them has seen, all that begin after its answer build upon. A call whose answer was
    lost leaves nothing in the session, unless it is made again with its idempotency key.
    """

    def __init__(self, token: str = "") -> None:
        """A new session, or one that goes on from what `token` gave."""
        parts = (part.strip() for part in token.split(","))
        self._tokens = [part for part in parts if part]
        self._running = 0
        self._changed = threading.Condition()

    @property
    def token(self) -> str:
        """The session as text, which can be kept; empty if it has seen nothing."""
        with self._changed:
            return ", ".join(self._tokens)

    def _learn(self, sent: str, learned: str) -> None:
        # The answer's token takes the place of those that the call began with. So there are never
        # more than calls that run side by side: who began after a token came replaces it.
        covered = [*sent.split(", "), learned]
        with self._changed:
            self._tokens = [token for token in self._tokens if token not in covered]
            self._tokens.append(learned)

    def _enter(self, call: _Attempts) -> None:
        with self._changed:
            while self._running >= _SESSION_CALLS_MAX:
                self._changed.wait(call.left())
            self._running += 1

    def _leave(self) -> None:
        with self._changed:
            self._running -= 1
            # Who has given up waiting leaves its turn to all others: each of them looks again.
            self._changed.notify_all()


@dataclass(frozen=True)
class Options:
    """How something is called, where that is not as the client does it otherwise."""

    #: The session: that of the client if nothing is said.
    session: Session | None = None
    #: How many seconds the call takes at most, everything included.
    timeout: float | None = None
    #: How often the call is made again after an error that is retryable, or after which it is not
    #: known whether it took effect. It runs once all the same: all attempts have one idempotency key.
    retries: int | None = None
    #: For how many seconds the server repeats what conflicts, and waits for others.
    deadline: float | None = None
    #: Calls with one key run once, however often they are made: 1 to 128 visible characters of ASCII.
    idempotency_key: str | None = None


class ExactTime(datetime):
    """A time beyond what a datetime can hold. As a datetime it stands at the end of those."""

    #: Microseconds since 1970-01-01T00:00:00Z; this is what is sent.
    epoch_microseconds: int

    @classmethod
    def at(cls, epoch_microseconds: int) -> ExactTime:
        end = datetime.max if epoch_microseconds > 0 else datetime.min
        clock = (end.hour, end.minute, end.second, end.microsecond)
        far = cls(end.year, end.month, end.day, *clock, tzinfo=timezone.utc)
        far.epoch_microseconds = epoch_microseconds
        return far

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactTime) and self.epoch_microseconds == other.epoch_microseconds

    def __hash__(self) -> int:
        return hash(self.epoch_microseconds)

    def __repr__(self) -> str:
        return f"ExactTime.at({self.epoch_microseconds})"


class ExactDate(_Date):
    """A day beyond what a date can hold. As a date it stands at the end of those."""

    #: Year, month and day, with a sign before the year; this is what is sent.
    text: str

    @classmethod
    def at(cls, text: str) -> ExactDate:
        end = _Date.max if text.startswith("+") else _Date.min
        far = cls(end.year, end.month, end.day)
        far.text = text
        return far

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactDate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"ExactDate.at({self.text!r})"


class MingleError(Exception):
    """Why there is no result."""

    #: What happened, as the server calls it.
    code: str
    #: The status of the answer; None if there was no answer.
    status: int | None
    #: The code of the `require` that failed, if it has one.
    require_code: str | None
    #: The stores that have committed.
    committed: tuple[str, ...]
    #: The store that it is about.
    store: str | None
    #: Whether the same call may succeed later, and can be made without doing anything twice.
    retryable: bool
    #: After how many seconds it may, if the server said so.
    retry_after: float | None

    def __init__(
        self,
        message: str,
        code: str,
        *,
        status: int | None = None,
        require_code: str | None = None,
        committed: tuple[str, ...] = (),
        store: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.require_code = require_code
        self.committed = committed
        self.store = store
        self.retryable = retryable
        self.retry_after = retry_after


class RequireError(MingleError):
    """A `require` of the program failed: see `require_code`. Nothing was written."""


class ExistsError(MingleError):
    """A `new` with a key met an object that exists. Nothing was written."""


class TakenError(MingleError):
    """A write of a `unique` met another object with the same values. Nothing was written."""


class ConstraintError(MingleError):
    """A rule of the database, such as a constraint, does not allow it. Nothing was written."""


class ConflictError(MingleError):
    """Others were in the way until the deadline. Nothing was written by this attempt."""


class StoreError(MingleError):
    """A store failed, see `store`, or what it waits for cannot be finished. Nothing was written."""


class IncompleteError(MingleError):
    """Some stores have committed, see `committed`, and `store` has not: the rest follows by itself."""


class UnknownOutcomeError(MingleError):
    """Whether the call took effect is not known: ask again with the same idempotency key."""


class NoAnswerError(UnknownOutcomeError):
    """No answer came, or none in time: whether the call took effect is not known."""


class ResultGoneError(MingleError):
    """The call took effect, but its result is not known any more."""


class UnavailableError(MingleError):
    """The server cannot take the call now. Nothing was written."""


class InvalidCallError(MingleError):
    """The call is wrong, or too large: as it is, it will never succeed. Nothing was written."""


class InvalidSessionError(InvalidCallError):
    """The session is not one of this server's: go on with a new one. Nothing was written."""


class AccessError(MingleError):
    """The server does not know who calls, or does not let them. Nothing was written."""


class ProtocolError(MingleError):
    """The answer is not one of this program's: the server runs another one, or is no such server."""


#: So many calls of one session run side by side: so many tokens stand in a header.
_SESSION_CALLS_MAX = 8
#: So many connections without work are kept.
_IDLE_MAX = 8
#: How many seconds to wait before the second attempt, and at most before any.
_PAUSE = 0.05
_PAUSE_MAX = 5.0

_ERRORS: dict[str, type[MingleError]] = {
    "require": RequireError,
    "exists": ExistsError,
    "taken": TakenError,
    "conflict": ConflictError,
    "waiting": ConflictError,
    "in-progress": ConflictError,
    "store": StoreError,
    "parked": StoreError,
    "incomplete": IncompleteError,
    "unknown": UnknownOutcomeError,
    "result-gone": ResultGoneError,
    "deadline": InvalidCallError,
    "constraint-conflict": ConstraintError,
    "constraint-violated": ConstraintError,
    "bad-request": InvalidCallError,
    "invalid-host": InvalidCallError,
    "head-too-large": InvalidCallError,
    "overloaded": UnavailableError,
    "shutting-down": UnavailableError,
    "timeout": UnavailableError,
    "invalid-argument": InvalidCallError,
    "misuse": InvalidCallError,
    "unsupported": InvalidCallError,
    "limit": InvalidCallError,
    "not-found": InvalidCallError,
    "method-not-allowed": InvalidCallError,
    "too-large": InvalidCallError,
    "unsupported-media-type": InvalidCallError,
    "idempotency-mismatch": InvalidCallError,
    "invalid-session": InvalidSessionError,
    "unauthenticated": AccessError,
    "forbidden": AccessError,
}


class _Attempts:
    """The time and the attempts that one call has."""

    def __init__(self, timeout: float, retries: int, runs_once: bool) -> None:
        self.timeout = timeout
        self.retries = retries
        self.runs_once = runs_once
        self.end = time.monotonic() + timeout

    def left(self) -> float:
        """How many seconds are left."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.too_late()
        # Locks and sockets take no more.
        return min(left, threading.TIMEOUT_MAX, 1e6)

    def too_late(self) -> NoAnswerError:
        return NoAnswerError(f"no answer within {self.timeout} s", "no-answer")

    def pause(self, attempt: int, error: MingleError) -> bool:
        """Waits if another attempt is worthwhile, and says whether it is."""
        is_unknown = isinstance(error, UnknownOutcomeError) and self.runs_once
        if attempt >= self.retries or not (error.retryable or is_unknown):
            return False
        drawn = min(_PAUSE * 2.0 ** min(attempt, 32), _PAUSE_MAX) * random.uniform(0.5, 1)
        pause = max(drawn, error.retry_after or 0)
        if time.monotonic() + pause >= self.end:
            return False
        time.sleep(pause)
        return True


class _Connection:
    """How requests get to the server. Threads may share it."""

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str] | None,
        timeout: float,
        retries: int,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"expected a URL such as https://shop.example, found {url!r}")
        self.host, self.port, self.is_secure = parts.hostname, parts.port, parts.scheme == "https"
        self.url, self.path = url, parts.path.rstrip("/")
        self.token, self.timeout, self.retries = token, timeout, retries
        self.ssl_context = ssl_context
        self.idle: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()

    def call(
        self,
        session: Session,
        transaction: str,
        params: dict[str, Any],
        result: _Codec[Any, _T],
        until: str | None,
        options: Options,
    ) -> _T | Early[_T]:
        retries = self.retries if options.retries is None else options.retries
        key = options.idempotency_key
        if key is None and retries > 0:
            key = secrets.token_hex(16)
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        deadline = None if options.deadline is None else round(options.deadline * 1000)
        query = _query({"deadline_ms": deadline, "until": until})
        path = f"/v1/transactions/{urllib.parse.quote(transaction, safe='')}{query}"
        body = _written(params).encode()
        attempts = self.attempts(options, retries, key is not None)
        answer = self.run(session, "POST", path, body, headers, attempts)
        with _Reading():
            members = _members(answer, "the answer")
            if until is None:
                return result.decode(members.get("result"), "result")
            follows = tuple(_text(name, "follows") for name in _items(members.get("follows", []), "follows"))
            is_there = not follows or members.get("result") is not None
            return Early(result.decode(members.get("result"), "result") if is_there else None, follows)

    def show(self, session: Session, handle: Handle[_T], limit: int | None, options: Options) -> _T | None:
        path = f"/v1/objects/{handle._mingle_path()}{_query({'limit': limit})}"
        retries = self.retries if options.retries is None else options.retries
        answer = self.run(session, "GET", path, None, {}, self.attempts(options, retries, True))
        if answer is None:
            return None
        with _Reading():
            return handle._mingle_fields(answer)

    def attempts(self, options: Options, retries: int, runs_once: bool) -> _Attempts:
        timeout = self.timeout if options.timeout is None else options.timeout
        return _Attempts(timeout, retries, runs_once)

    def run(
        self,
        session: Session,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        attempts: _Attempts,
    ) -> Any:
        """Makes a request in its session, again and again if that is wanted."""
        session._enter(attempts)
        try:
            attempt = 0
            while True:
                try:
                    return self.once(session, method, path, body, headers, attempts)
                except MingleError as error:
                    if not attempts.pause(attempt, error):
                        raise
                attempt += 1
        finally:
            session._leave()

    def once(
        self,
        session: Session,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        attempts: _Attempts,
    ) -> Any:
        headers = {**headers, "Accept": "application/json, application/problem+json"}
        token = self.token() if callable(self.token) else self.token
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        sent = session.token
        if sent:
            headers["Mingle-Session"] = sent
        try:
            status, answered, text = self.exchange(method, path, body, headers, attempts)
        except TimeoutError as error:
            raise attempts.too_late() from error
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise NoAnswerError(
                f"no answer from {self.url}: {why}", "no-answer", retryable=attempts.runs_once
            ) from error
        learned = answered.get("Mingle-Session")
        if learned is not None:
            session._learn(sent, learned)
        try:
            answer = json.loads(text, parse_float=_number)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and answer is not None:
            return answer
        problem = _problem(status, answered, answer, attempts)
        if method == "GET" and problem.code == "not-found":
            return None
        raise problem

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        attempts: _Attempts,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self.take(attempts)
        try:
            connection.request(method, self.path + path, body, headers)
            # A response that ends the connection takes the socket along.
            socket = connection.sock
            socket.settimeout(attempts.left())
            response = connection.getresponse()
            parts = []
            while part := response.read1(1 << 16):
                parts.append(part)
                socket.settimeout(attempts.left())
            response.close()
        except BaseException:
            connection.close()
            raise
        self.keep(connection)
        return response.status, response.headers, b"".join(parts)

    def take(self, attempts: _Attempts) -> http.client.HTTPConnection:
        """A connection that is open."""
        while True:
            with self.lock:
                connection = self.idle.pop() if self.idle else None
            if connection is None:
                break
            # One that can be read although nothing was asked was closed by the server.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(attempts.left())
                return connection
            connection.close()
        if self.is_secure:
            context = self.ssl_context or ssl.create_default_context()
            left = attempts.left()
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=left, context=context)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=attempts.left())
        connection.connect()
        return connection

    def keep(self, connection: http.client.HTTPConnection) -> None:
        with self.lock:
            if connection.sock is not None and len(self.idle) < _IDLE_MAX:
                self.idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, []
        for connection in idle:
            connection.close()


def _problem(
    status: int, headers: http.client.HTTPMessage, answer: Any, attempts: _Attempts
) -> MingleError:
    """The error that an answer tells of."""
    members = answer if isinstance(answer, dict) else {}

    def text(name: str) -> str | None:
        member = members.get(name)
        return member if isinstance(member, str) else None

    waits = headers.get("Retry-After", "")
    retry_after = float(waits) if re.fullmatch(r"[0-9]{1,9}", waits) else None
    code = text("code")
    if code is None:
        # Somebody between us and the server may have answered, and may have passed the call on.
        retryable = status in (429, 502, 503, 504) and attempts.runs_once
        message = f"the answer with status {status} is none of a server of Mingle"
        return ProtocolError(
            message, "protocol", status=status, retryable=retryable, retry_after=retry_after
        )
    committed = members.get("committed")
    kind = _ERRORS.get(code, MingleError)
    return kind(
        text("detail") or text("title") or code,
        code,
        status=status,
        require_code=text("require_code"),
        committed=tuple(map(str, committed)) if isinstance(committed, list) else (),
        store=text("store"),
        retryable=members.get("retryable") is True,
        retry_after=retry_after,
    )


def _query(members: dict[str, str | int | None]) -> str:
    given = {name: value for name, value in members.items() if value is not None}
    return f"?{urllib.parse.urlencode(given)}" if given else ""


def _path(kind: str, key: Any, is_text: bool) -> str:
    """Where an object is. Texts that would be taken for something else are quoted."""
    is_plain = is_text and key not in ("", ".", "..") and not key.startswith('"')
    shown = key if is_plain else json.dumps(key, ensure_ascii=False)
    return f"{urllib.parse.quote(kind, safe='')}/{urllib.parse.quote(shown, safe='')}"


class _Mismatch(Exception):
    """JSON that is not what the program's types say."""


class _Reading:
    """While an answer is read, what does not fit is an error of the protocol."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _Mismatch):
            raise ProtocolError(str(error), "protocol", status=200) from error


@dataclass(frozen=True)
class _Codec(Generic[_In, _Out]):
    """How values of a type are written as JSON and read from it."""

    encode: Callable[[_In], Any]
    decode: Callable[[Any, str], _Out]


def _expected(what: str, found: Any, path: str) -> NoReturn:
    raise _Mismatch(f"expected {what} as {path}, found {json.dumps(found, default=str)[:40]}")


def _members(found: Any, path: str) -> dict[str, Any]:
    return found if isinstance(found, dict) else _expected("an object", found, path)


def _items(found: Any, path: str) -> list[Any]:
    return found if isinstance(found, list) else _expected("a list", found, path)


def _text(found: Any, path: str) -> str:
    return found if isinstance(found, str) else _expected("a string", found, path)


def _refuse(what: str, found: Any) -> NoReturn:
    """Refuses a value that is of another type: it is never sent as something else."""
    raise TypeError(f"expected {what}, found {type(found).__name__} {str(found)[:40]}")


def _given(name: str, codec: _Codec[_In, Any], value: _In) -> Any:
    """Writes an argument, or a part of one, as JSON; an error names it."""
    try:
        return codec.encode(value)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _is_a(make: Any, value: Any) -> None:
    """Refuses a value that is of another class."""
    if not isinstance(value, make):
        name = make.__name__
        _refuse(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}", value)


def _exactly(kind: type[_T], what: str) -> Callable[[_T], _T]:
    return lambda value: value if isinstance(value, kind) else _refuse(what, value)


def _is_int(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _int_to_json(value: int) -> int | str:
    if isinstance(value, bool):
        return _refuse("an int", value)
    try:
        exact = operator.index(value)
    except TypeError:
        return _refuse("an int", value)
    if not _is_int(exact):
        raise ValueError(f"expected an int of 64 bits, found {exact}")
    # Not all readers of JSON keep greater ones exact.
    return exact if -(2**53) <= exact <= 2**53 else str(exact)


def _int_from_json(found: Any, path: str) -> int:
    if isinstance(found, int) and not isinstance(found, bool) and _is_int(found):
        return found
    if isinstance(found, str) and re.fullmatch(r"-?[0-9]{1,19}", found) and _is_int(int(found)):
        return int(found)
    return _expected("an int", found, path)


def _float_to_json(value: float) -> float | str:
    given: Any = value
    if isinstance(given, (bool, str, bytes, bytearray)):
        return _refuse("a float", given)
    try:
        value = float(given)
    except TypeError:
        return _refuse("a float", given)
    except OverflowError:
        value = float("inf")
    if value == value and value != given:
        raise ValueError(f"expected a number that a float holds exactly, found {str(given)[:40]}")
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _float_from_json(found: Any, path: str) -> float:
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if is_number or found in ("NaN", "Infinity", "-Infinity"):
        return float(found)
    return _expected("a float", found, path)


def _bytes_from_json(found: Any, path: str) -> bytes:
    try:
        return base64.b64decode(_text(found, path), validate=True)
    except (binascii.Error, ValueError):
        return _expected("bytes in base64", found, path)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_RFC_3339 = re.compile(r"([0-9]{4})(-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6})0*)?Z")
_MICROSECONDS = re.compile(r"(-?[0-9]+)us")
#: The years 0 to 3 have as many microseconds; a datetime begins with the year 1.
_FOUR_YEARS = 1461 * 86_400_000_000


def _time_to_json(value: datetime) -> str:
    if not isinstance(value, datetime):
        return _refuse("a datetime", value)
    if isinstance(value, ExactTime):
        return f"{_int_to_json(value.epoch_microseconds)}us"
    if value.tzinfo is None:
        raise ValueError(f"expected a datetime with a time zone, found {value!r}")
    microseconds = (value - _EPOCH) // _MICROSECOND
    try:
        utc = _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        return f"{microseconds}us"
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _time_from_json(found: Any, path: str) -> datetime:
    text = _text(found, path)
    matched = _RFC_3339.fullmatch(text)
    if matched is None:
        far = _MICROSECONDS.fullmatch(text)
        if far is None:
            return _expected("a time", found, path)
        microseconds = int(far.group(1))
    else:
        year, rest, fraction = matched.groups()
        is_zero = year == "0000"
        try:
            moment = datetime.strptime(("0004" if is_zero else year) + rest, "%Y-%m-%dT%H:%M:%S")
        except ValueError:
            return _expected("a time", found, path)
        microseconds = (moment.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND
        microseconds += int((fraction or "").ljust(6, "0")) - (_FOUR_YEARS if is_zero else 0)
    try:
        return _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        return ExactTime.at(microseconds)


#: Years of more than four digits, and those before 0001, are beyond a date.
_FAR_DAY = re.compile(r"(0000|-(?!0000)[0-9]{4}|[+-][1-9][0-9]{4,6})-([0-9]{2}-[0-9]{2})")


def _is_far_day(text: str) -> bool:
    matched = _FAR_DAY.fullmatch(text)
    if matched is None:
        return False
    # The calendar repeats after 400 years.
    try:
        _Date.fromisoformat(f"{2000 + int(matched.group(1)) % 400}-{matched.group(2)}")
    except ValueError:
        return False
    return True


def _date_to_json(value: _Date) -> str:
    if isinstance(value, ExactDate):
        if not _is_far_day(value.text):
            raise ValueError(f"expected a day beyond the years 0001 to 9999, found {value!r}")
        return value.text
    # A datetime is a date, too, but its day depends on the time zone.
    if not isinstance(value, _Date) or isinstance(value, datetime):
        return _refuse("a date", value)
    return value.isoformat()


def _date_from_json(found: Any, path: str) -> _Date:
    text = _text(found, path)
    if _is_far_day(text):
        return ExactDate.at(text)
    try:
        day = _Date.fromisoformat(text)
    except ValueError:
        return _expected("a date", found, path)
    # Newer versions of Python read other forms, too.
    return day if day.isoformat() == text else _expected("a date", found, path)


_NUMBER = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?")


def _is_decimal(text: str) -> bool:
    """True for at most 38 digits, without zeros at either end."""
    matched = _NUMBER.fullmatch(text)
    if matched is None:
        return False
    whole, part = matched.group(1).lstrip("0"), (matched.group(2) or "").rstrip("0")
    return len(whole) + len(part) <= 38


def _decimal_to_json(value: _Decimal) -> str:
    if not isinstance(value, _Decimal):
        return _refuse("a Decimal", value)
    # Numbers of very many digits are not written out.
    text = format(value, "f") if value.is_finite() and abs(value.adjusted()) < 100 else ""
    if not _is_decimal(text):
        raise ValueError(f"expected a decimal of at most 38 digits, found {value!r}")
    return text


def _decimal_from_json(found: Any, path: str) -> _Decimal:
    text = _text(found, path)
    return _Decimal(text) if _is_decimal(text) else _expected("a decimal", found, path)


def _bool_from_json(found: Any, path: str) -> bool:
    return found if isinstance(found, bool) else _expected("a bool", found, path)


def _bytes_to_json(value: bytes) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return _refuse("bytes", value)
    return base64.b64encode(value).decode("ascii")


def _number(text: str) -> float | _Decimal:
    """A number with a point or an exponent: exact, also where a float would round it."""
    rounded = float(text)
    exact = _Decimal(text)
    return rounded if exact == _Decimal(repr(rounded)) else exact


def _written(value: Any) -> str:
    """As `json.dumps`, which takes no Decimal."""
    if isinstance(value, _Decimal):
        return format(value, "f")
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name)}:{_written(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return json.dumps(value, allow_nan=False)


def _json_to_json(value: Any) -> Any:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return _refuse("members whose names are texts", value)
        return {name: _json_to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_to_json(item) for item in value]
    # The server takes 400 digits on each side of the point.
    if isinstance(value, _Decimal) and not (value.is_finite() and abs(value.adjusted()) < 1000):
        raise ValueError(f"expected a number of at most 400 digits before the point and after it, found {value!r}")
    if isinstance(value, float) and value - value != 0:
        raise ValueError(f"expected a number of JSON, found {value!r}")
    if value is not None and not isinstance(value, (bool, int, float, str, _Decimal)):
        return _refuse("a JSON document", value)
    return value


_bool: _Codec[bool, bool] = _Codec(_exactly(bool, "a bool"), _bool_from_json)
_int: _Codec[int, int] = _Codec(_int_to_json, _int_from_json)
_float: _Codec[float, float] = _Codec(_float_to_json, _float_from_json)
_str: _Codec[str, str] = _Codec(_exactly(str, "a str"), _text)
_bytes: _Codec[bytes, bytes] = _Codec(_bytes_to_json, _bytes_from_json)
_time: _Codec[datetime, datetime] = _Codec(_time_to_json, _time_from_json)
_date: _Codec[_Date, _Date] = _Codec(_date_to_json, _date_from_json)
_decimal: _Codec[_Decimal, _Decimal] = _Codec(_decimal_to_json, _decimal_from_json)
_json: _Codec[Any, Any] = _Codec(_json_to_json, lambda found, path: found)
_none: _Codec[None, None] = _Codec(lambda value: None, lambda found, path: None)


def _one_of(name: str, values: tuple[_Key, ...]) -> _Codec[_Key, _Key]:
    what = f"a value of {name}"

    def find(value: Any) -> _Key | None:
        return next((known for known in values if known == value), None)

    def decode(found: Any, path: str) -> _Key:
        known = find(found)
        return _expected(what, found, path) if known is None else known

    def encode(value: _Key) -> Any:
        known = find(value)
        return _refuse(what, value) if known is None else known

    return _Codec(encode, decode)


def _option(inner: _Codec[_In, _Out]) -> _Codec[_In | None, _Out | None]:
    return _Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda found, path: None if found is None else inner.decode(found, path),
    )


def _some(inner: _Codec[_Key, _Value]) -> _Codec[Some[_Key], Some[_Value]]:
    def decode(found: Any, path: str) -> Some[_Value]:
        return Some(inner.decode(_members(found, path).get("some"), f"{path}.some"))

    def encode(value: Some[_Key]) -> Any:
        _is_a(Some, value)
        return {"some": inner.encode(value.some)}

    return _Codec(encode, decode)


def _some_json_from_json(found: Any, path: str) -> Some[Any]:
    # Documents that could be taken for something else have a member around them.
    is_wrapped = isinstance(found, dict) and found.keys() == {"some"}
    return Some(found["some"] if is_wrapped else found)


_some_json: _Codec[Some[Any], Some[Any]] = _Codec(_some(_json).encode, _some_json_from_json)


def _rushed(inner: _Codec[Any, _Value]) -> _Codec[Rushed[_Value], Rushed[_Value]]:
    def decode(found: Any, path: str) -> Rushed[_Value]:
        members = _members(found, path)
        level = _str.decode(members.get("level"), f"{path}.level")
        if level == "late":
            return Rushed(level, None)
        return Rushed(level, inner.decode(members.get("value"), f"{path}.value"))

    return _Codec(lambda value: _refuse("no answer", value), decode)


def _list(inner: _Codec[_In, _Value]) -> _Codec[Sequence[_In], list[_Value]]:
    def decode(found: Any, path: str) -> list[_Value]:
        return [inner.decode(item, f"{path}[{at}]") for at, item in enumerate(_items(found, path))]

    def encode(value: Sequence[_In]) -> Any:
        # The characters of a text are no list of texts.
        if isinstance(value, (str, bytes, bytearray, memoryview)):
            return _refuse("a list", value)
        try:
            items = list(value)
        except TypeError:
            return _refuse("a list", value)
        return [_given(f"[{at}]", inner, item) for at, item in enumerate(items)]

    return _Codec(encode, decode)


def _pairs(
    key: _Codec[Any, _Key], value: _Codec[Any, _Value]
) -> _Codec[NoReturn, list[tuple[_Key, _Value]]]:
    def decode(found: Any, path: str) -> list[tuple[_Key, _Value]]:
        pairs = []
        for at, pair in enumerate(_items(found, path)):
            here = f"{path}[{at}]"
            if len(_items(pair, here)) != 2:
                _expected("a key and a value", pair, here)
            pairs.append((key.decode(pair[0], here), value.decode(pair[1], here)))
        return pairs

    return _Codec(_never, decode)


def _map(key: _Codec[Any, _Key], value: _Codec[Any, _Value]) -> _Codec[NoReturn, dict[_Key, _Value]]:
    pairs = _pairs(key, value)
    return _Codec(_never, lambda found, path: dict(pairs.decode(found, path)))


def _named(value: _Codec[Any, _Value]) -> _Codec[NoReturn, dict[str, _Value]]:
    def decode(found: Any, path: str) -> dict[str, _Value]:
        members = _members(found, path).items()
        return {name: value.decode(item, f"{path}.{name}") for name, item in members}

    return _Codec(_never, decode)


def _never(value: NoReturn) -> NoReturn:
    raise AssertionError(f"{value!r} is only read")


def _fields(
    make: Callable[..., _T], fields: Callable[[], Sequence[tuple[str, str, _Codec[Any, Any]]]]
) -> _Codec[_T, _T]:
    """A class with attributes, and the names that the program has for them."""

    def encode(value: _T) -> Any:
        _is_a(make, value)
        return {name: _given(attribute, codec, getattr(value, attribute)) for attribute, name, codec in fields()}

    def decode(found: Any, path: str) -> _T:
        members = _members(found, path)
        read = ((attribute, codec.decode(members.get(name), f"{path}.{name}")) for attribute, name, codec in fields())
        return make(**dict(read))

    return _Codec(encode, decode)


def _handle(
    make: Callable[[Any], _T], key: Callable[[], _Codec[Any, Any]], kind: Callable[[_T], Any]
) -> _Codec[_T, _T]:
    def encode(value: _T) -> Any:
        _is_a(make, value)
        return kind(value)

    return _Codec(encode, lambda found, path: make(key().decode(found, path)))
