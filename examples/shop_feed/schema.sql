-- The tables of a shop that has been running for years.

CREATE TABLE customers (
    email text PRIMARY KEY,
    name text NOT NULL
);

CREATE TABLE items (
    sku text PRIMARY KEY,
    title text NOT NULL,
    price bigint NOT NULL CHECK (price >= 0),
    stock integer NOT NULL CHECK (stock >= 0)
);

CREATE TABLE orders (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    customer text NOT NULL REFERENCES customers,
    item text NOT NULL REFERENCES items,
    count integer NOT NULL CHECK (count > 0),
    placed timestamptz NOT NULL DEFAULT now()
);

INSERT INTO customers VALUES ('ana@example.org', 'Ana'), ('bob@example.org', 'Bob');
INSERT INTO items VALUES ('tea', 'Green tea', 350, 100), ('pot', 'A tea pot', 2900, 5);
