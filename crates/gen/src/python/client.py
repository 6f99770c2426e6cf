    #: The session of its calls, unless they say another: what one has seen, the next ones see.
    session: Session

    def __init__(
        self,
        url: str,
        *,
        token: str | Callable[[], str] | None = None,
        session: Session | None = None,
        timeout: float = 60.0,
        retries: int = 0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """A client of the server at `url`, such as `https://shop.example`. Threads may share it.

        `token` is who calls: what stands after `Bearer`, or what gives it before each request.
        `timeout` is how many seconds a call takes at most, and `retries` how often it is made again
        that may then succeed, unless the call says otherwise.
        """
        self._connection = _Connection(url, token, timeout, retries, ssl_context)
        self.session = Session() if session is None else session

    def with_session(self, session: Session) -> Client:
        """The same, for another session."""
        other = Client.__new__(Client)
        other._connection, other.session = self._connection, session
        return other

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(
        self, handle: Handle[_T], *, limit: int | None = None, options: Options | None = None
    ) -> _T | None:
        """Reads an object, of each collection at most `limit` items; None if there is none."""
        options = options or Options()
        return self._connection.show(options.session or self.session, handle, limit, options)

    def _call(
        self,
        transaction: str,
        params: dict[str, Any],
        result: _Codec[Any, _T],
        until: str | None,
        options: Options | None,
    ) -> _T | Early[_T]:
        options = options or Options()
        session = options.session or self.session
        return self._connection.call(session, transaction, params, result, until, options)
