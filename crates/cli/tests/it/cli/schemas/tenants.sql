-- A shop for several tenants: each key begins with the tenant, and so do the foreign keys.
CREATE TABLE tenants (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE products (
    tenant_id integer REFERENCES tenants,
    sku text COLLATE "C",
    title text NOT NULL,
    PRIMARY KEY (tenant_id, sku)
);
CREATE TABLE orders (
    tenant_id integer REFERENCES tenants,
    id bigint,
    placed timestamptz NOT NULL,
    -- Another order of the same tenant, or none.
    replaces bigint,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, replaces) REFERENCES orders (tenant_id, id)
);
CREATE TABLE lines (
    tenant_id integer NOT NULL,
    order_id bigint NOT NULL,
    number integer,
    sku text COLLATE "C" NOT NULL,
    amount integer NOT NULL,
    PRIMARY KEY (tenant_id, order_id, number),
    FOREIGN KEY (order_id, tenant_id) REFERENCES orders (id, tenant_id),
    FOREIGN KEY (tenant_id, sku) REFERENCES products
);
CREATE INDEX ON lines (tenant_id, sku);
-- Only two columns, and one of them refers to an object; but parcels refer to these rows.
CREATE TABLE deliveries (tenant_id integer REFERENCES tenants, day date, PRIMARY KEY (tenant_id, day));
CREATE TABLE parcels (
    id uuid PRIMARY KEY,
    tenant_id integer NOT NULL REFERENCES tenants,
    order_id bigint,
    back_tenant integer,
    back_order bigint,
    day date,
    half integer,
    kind integer NOT NULL,
    code text COLLATE "C",
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders,
    FOREIGN KEY (back_tenant, back_order) REFERENCES orders,
    FOREIGN KEY (half, day) REFERENCES deliveries,
    FOREIGN KEY (kind, code) REFERENCES products
);
INSERT INTO tenants VALUES (1, 'north'), (2, 'south');
INSERT INTO products VALUES (1, 'tea', 'Tea');
INSERT INTO orders VALUES (1, 7, '2026-01-02', NULL), (1, 8, '2026-01-03', 7);
INSERT INTO lines VALUES (1, 8, 1, 'tea', 3);
INSERT INTO deliveries VALUES (1, '2026-02-01');
INSERT INTO parcels VALUES
    ('0e37df36-f698-11e6-8dd4-cb9ced3df976', 1, 7, 1, 8, '2026-02-01', 1, 1, NULL);
