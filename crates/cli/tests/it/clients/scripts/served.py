"""What a server of a program does."""

import sys
from concurrent.futures import ThreadPoolExecutor

from clients.bank import (
    AccessError,
    Account,
    Client,
    Customer,
    ExistsError,
    InvalidCallError,
    InvalidSessionError,
    Options,
    RequireError,
    Session,
)

url, token = sys.argv[1:]
try:
    Client(url).deposit(Account("1"), 1)
    raise SystemExit("anybody may call")
except AccessError:
    pass
client = Client(url, token=token, retries=3)
ana = Customer("ana")
source, target = client.open_account("1", ana), client.open_account("2", Customer("bob"))
assert source == Account("1")
try:
    client.open_account("1", ana)
    raise SystemExit("it was opened twice")
except ExistsError:
    pass

# Repeated calls with one key take effect once.
once = Options(idempotency_key="once")
assert client.deposit(source, 100, options=once) == 100
assert client.deposit(source, 100, options=once) == 100
try:
    client.deposit(source, 50, options=once)
    raise SystemExit("a key stands for two calls")
except InvalidCallError:
    pass
try:
    client.transfer(source, target, 1000)
    raise SystemExit("there was not so much")
except RequireError as error:
    assert (error.require_code, str(error)) == ("too_low", "the balance is too low")

# Later calls of a session see the writes of earlier ones, even if those ran concurrently.
early = client.deposit(source, 1, until="accounts")
assert (early.result, early.follows) == (101, ())
with ThreadPoolExecutor(12) as pool:
    for transfer in [pool.submit(client.transfer, source, target, 1) for _ in range(12)]:
        transfer.result()
resumed = client.with_session(Session(client.session.token))
assert len(resumed.messages(ana, 100)) == 12
assert len(client.session.token.split(",")) <= 8
account = client.show(target)
assert account is not None and (account.balance, len(account.history)) == (12, 12)
for options in (Options(session=Session("made up")), Options(deadline=-1)):
    try:
        client.messages(ana, 1, options=options)
        raise SystemExit(f"{options} was taken")
    except InvalidSessionError:
        assert options.session is not None
    except InvalidCallError:
        assert options.session is None
client.close()
