#!/bin/sh
# The old application: buy.sh CUSTOMER ITEM COUNT
set -e

# First write: the order, in one transaction of PostgreSQL.
psql -q "$DATABASE_URL" -v ON_ERROR_STOP=1 -v customer="$1" -v item="$2" -v count="$3" <<'SQL'
BEGIN;
UPDATE items SET stock = stock - :count WHERE sku = :'item';
INSERT INTO orders (customer, item, count) VALUES (:'customer', :'item', :count);
COMMIT;
SQL

# What a crash, a deployment or the end of memory does to it now and then.
if [ -n "$CRASH" ]; then kill -9 $$; fi

# Second write: the feed that the customer sees, in Redis.
redis-cli -u "$REDIS_URL" RPUSH "feed:$1" "bought $3 of $2" > /dev/null
