-- The shape of a shop that rents films: an enumeration, a domain, arrays, a search vector that a trigger fills, partitions.
CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE DOMAIN year AS integer CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE TABLE language (language_id serial PRIMARY KEY, name character(20) NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE category (category_id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE actor (actor_id serial PRIMARY KEY, first_name text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE film (film_id serial PRIMARY KEY, title text NOT NULL, description text, release_year year,
    language_id integer NOT NULL REFERENCES language, rental_duration smallint NOT NULL DEFAULT 3,
    rental_rate numeric(4,2) NOT NULL DEFAULT 4.99, rating mpaa_rating DEFAULT 'G', special_features text[],
    fulltext tsvector NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TRIGGER film_fulltext BEFORE INSERT OR UPDATE ON film FOR EACH ROW
    EXECUTE FUNCTION tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title', 'description');
CREATE TABLE film_actor (actor_id integer REFERENCES actor, film_id integer REFERENCES film,
    last_update timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (actor_id, film_id));
CREATE TABLE film_category (film_id integer REFERENCES film, category_id integer REFERENCES category,
    PRIMARY KEY (film_id, category_id));
CREATE TABLE store (store_id serial PRIMARY KEY, manager_staff_id integer NOT NULL);
CREATE TABLE staff (staff_id serial PRIMARY KEY, first_name text NOT NULL, store_id integer NOT NULL REFERENCES store, picture bytea);
ALTER TABLE store ADD FOREIGN KEY (manager_staff_id) REFERENCES staff DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE inventory (inventory_id serial PRIMARY KEY, film_id integer NOT NULL REFERENCES film, store_id integer NOT NULL REFERENCES store);
CREATE TABLE customer (customer_id serial PRIMARY KEY, store_id integer NOT NULL REFERENCES store, email text,
    activebool boolean NOT NULL DEFAULT true, create_date date NOT NULL DEFAULT current_date);
CREATE TABLE rental (rental_id serial PRIMARY KEY, rental_date timestamptz NOT NULL, rental_period tstzrange,
    inventory_id integer NOT NULL REFERENCES inventory, customer_id integer NOT NULL REFERENCES customer);
CREATE TABLE payment (payment_id serial, customer_id integer NOT NULL REFERENCES customer, amount numeric(5,2) NOT NULL,
    payment_date timestamptz NOT NULL, PRIMARY KEY (payment_date, payment_id)) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_p1 PARTITION OF payment FOR VALUES FROM ('2022-01-01') TO ('2023-01-01');
CREATE VIEW film_list AS SELECT film_id, title, rating FROM film;
CREATE MATERIALIZED VIEW rental_by_category AS SELECT category_id, count(*) FROM film_category GROUP BY category_id;
INSERT INTO language (name) VALUES ('English');
INSERT INTO film (title, language_id, rating, special_features, release_year)
    VALUES ('Dino Academy', 1, 'PG-13', '{Trailers,"Deleted Scenes"}', 2006);
INSERT INTO actor (first_name) VALUES ('Pia');
INSERT INTO film_actor VALUES (1, 1);
