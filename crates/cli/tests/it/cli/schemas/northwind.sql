-- The shape of a trading company: keys of type character, prices of type real, details with a key of two columns.
CREATE TABLE categories (category_id smallint PRIMARY KEY, category_name varchar(15) NOT NULL, description text, picture bytea);
CREATE TABLE customers (customer_id character(5) PRIMARY KEY, company_name varchar(40) NOT NULL, country varchar(15));
CREATE TABLE customer_demographics (customer_type_id character(10) PRIMARY KEY, customer_desc text);
CREATE TABLE customer_customer_demo (customer_id character(5) REFERENCES customers,
    customer_type_id character(10) REFERENCES customer_demographics, PRIMARY KEY (customer_id, customer_type_id));
CREATE TABLE employees (employee_id smallint PRIMARY KEY, last_name varchar(20) NOT NULL, birth_date date,
    reports_to smallint REFERENCES employees, photo bytea);
CREATE TABLE region (region_id smallint PRIMARY KEY, region_description character(60) NOT NULL);
CREATE TABLE territories (territory_id varchar(20) PRIMARY KEY, territory_description character(60) NOT NULL,
    region_id smallint NOT NULL REFERENCES region);
CREATE TABLE employee_territories (employee_id smallint REFERENCES employees, territory_id varchar(20) REFERENCES territories,
    PRIMARY KEY (employee_id, territory_id));
CREATE TABLE shippers (shipper_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL);
CREATE TABLE suppliers (supplier_id smallint PRIMARY KEY, company_name varchar(40) NOT NULL, homepage text);
CREATE TABLE products (product_id smallint PRIMARY KEY, product_name varchar(40) NOT NULL, supplier_id smallint REFERENCES suppliers,
    category_id smallint REFERENCES categories, unit_price real, units_in_stock smallint, discontinued integer NOT NULL);
CREATE TABLE orders (order_id smallint PRIMARY KEY, customer_id character(5) REFERENCES customers,
    employee_id smallint REFERENCES employees, order_date date, ship_via smallint REFERENCES shippers, freight real);
CREATE TABLE order_details (order_id smallint REFERENCES orders, product_id smallint REFERENCES products,
    unit_price real NOT NULL, quantity smallint NOT NULL, discount real NOT NULL, PRIMARY KEY (order_id, product_id));
CREATE TABLE us_states (state_id smallint UNIQUE NOT NULL, state_name varchar(100), state_abbr varchar(2));
INSERT INTO customers VALUES ('ALFKI', 'Alf', 'DE'), ('BO', 'Bo', 'SE');
INSERT INTO customer_demographics VALUES ('new', 'since this year');
INSERT INTO customer_customer_demo VALUES ('BO', 'new');
INSERT INTO products VALUES (11, 'Queso', NULL, NULL, 21.05, 22, 0);
INSERT INTO orders VALUES (1, 'BO', NULL, '1996-07-04', NULL, 32.38);
INSERT INTO order_details VALUES (1, 11, 14, 12, 0.15);
INSERT INTO us_states VALUES (7, 'Colorado', 'CO');
