-- SPDX-FileCopyrightText: the spark-changelog authors
-- SPDX-License-Identifier: Apache-2.0

-- A view of the revenue of each country over plain tables. INSERT, UPDATE and DELETE write the tables
-- as usual, and a refresh reads their changes.
--
--   spark-sql --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
--             --conf spark.jars=dist/spark-changelog_2.13-0.1.0-SNAPSHOT.jar \
--             --conf spark.sql.extensions=io.sparkchangelog.ChangelogExtensions,io.delta.sql.DeltaSparkSessionExtension \
--             --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
--             -f examples/views.sql

CREATE TABLE customers (customer INT, country STRING) USING delta;
CREATE TABLE orders (id INT, customer INT, amount INT) USING delta
  TBLPROPERTIES (delta.enableChangeDataFeed = true);
INSERT INTO customers VALUES (1, 'Norway'), (2, 'Italy');
INSERT INTO orders VALUES (1, 1, 30), (2, 2, 20), (3, 2, 5);

EXPLAIN CREATE MATERIALIZED VIEW revenue USING delta AS
  SELECT country, count(*) AS orders, sum(amount) AS total
  FROM orders JOIN customers USING (customer) GROUP BY country;

CREATE MATERIALIZED VIEW revenue USING delta AS
  SELECT country, count(*) AS orders, sum(amount) AS total
  FROM orders JOIN customers USING (customer) GROUP BY country;

SELECT * FROM revenue ORDER BY country;

UPDATE orders SET amount = 50 WHERE id = 3;
DELETE FROM orders WHERE id = 2;
UPDATE customers SET country = 'Iceland' WHERE customer = 1;
REFRESH MATERIALIZED VIEW revenue;

SELECT * FROM revenue ORDER BY country;

SELECT * FROM changes('revenue') ORDER BY _commit_version, country, _change_type;

VERIFY MATERIALIZED VIEW revenue;

SHOW REFRESHES OF revenue;
