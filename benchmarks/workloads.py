# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The workloads: queries in SQL common to Spark and Flink."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """A query to measure.

    Parameters
    ----------
    name : str
        The name on the command line and in results.
    about : str
        A description.
    tables : tuple of str
        The tables of the query.
    sql : str
        The query, for Spark and Flink.
    check : tuple of str
        BIGINT expressions over the result's columns, in SQL common to Spark and Flink, to compute
        the hash of a row.
    flink : str or None
        The query for Flink, if a different form is faster.
    stock : str or None
        The query for stock Spark in update mode, with correctness checks off. None if stock Spark
        can't run the query.
    key : tuple of str
        The key of stock Spark's result, needed since update mode emits after images only.
    """

    name: str
    about: str
    tables: tuple[str, ...]
    sql: str
    check: tuple[str, ...]
    flink: str | None = None
    stock: str | None = None
    key: tuple[str, ...] = ()


PRIME = "CAST(2147483629 AS BIGINT)"


SQUARED = f"MOD(g * g, {PRIME})"


def mixed(check: tuple[str, ...]) -> str:
    """Return an expression that mixes a row's columns into a number, ``g`` in `SQUARED`."""
    result = "CAST(17 AS BIGINT)"
    for column in check:
        result = f"MOD({result} * 1000003 + {column}, {PRIME})"
    return result


def hashed(sql: str, check: tuple[str, ...]) -> str:
    """Return a query with an added column ``h``, a hash of the row."""
    return f"SELECT *, {SQUARED} AS h FROM (SELECT *, {mixed(check)} AS g FROM ({sql}) AS q) AS p"


_COUNTS = "SELECT word, count(*) AS n FROM word GROUP BY word"
_COUNT_OF_COUNTS = f"SELECT n, count(*) AS words FROM ({_COUNTS}) AS c GROUP BY n"
_FINALS = """SELECT a.id, a.category, max(b.price) AS final
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.ts BETWEEN a.ts AND a.expires_ts GROUP BY a.id, a.category"""
_BIDS_OF_AUCTIONS = """SELECT b.id AS bid, a.id AS auction, a.category, b.price
FROM auction a JOIN bid b ON a.id = {}"""
_IN_TIME = _BIDS_OF_AUCTIONS.format("b.auction WHERE b.ts BETWEEN a.ts AND a.expires_ts")
_SKEWED = _BIDS_OF_AUCTIONS.format("CASE WHEN MOD(b.id, 5) = 0 THEN 0 ELSE b.auction END")
_HOT = """SELECT {hint}b.id AS bid, a.id AS auction, a.category, b.price
FROM auction a JOIN (
  SELECT id, price, CASE WHEN MOD(id, 5) > 0 THEN 0 ELSE auction END AS about FROM bid) AS b
ON a.id = b.about"""
_PER_CATEGORY = f"""SELECT category, avg(CAST(final AS DOUBLE)) AS average
FROM ({_FINALS}) AS f GROUP BY category"""
_DISTINCT = """count(*) AS bids, count(DISTINCT bidder) AS bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS cheap_bidders,
  count(DISTINCT auction) AS auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS cheap_auctions"""
_DISTINCT_CHECK = ("bids", "bidders", "cheap_bidders", "auctions", "cheap_auctions")
_TOP = """SELECT auction, bidder, price, id{place} FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, id) AS place
  FROM bid) AS r WHERE place <= 10"""
_TOP_OF_HOT = """SELECT about, bidder, price, id FROM (
  SELECT *, row_number() OVER (PARTITION BY about ORDER BY price DESC, id) AS place FROM (
    SELECT *, CASE WHEN MOD(id, 5) > 0 THEN 0 ELSE auction END AS about FROM bid) AS b) AS r
WHERE place <= 10"""
_LAST = """SELECT bidder, auction, price, ts FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY {time} DESC) AS place
  FROM bid) AS r WHERE place = 1"""
_BEST_OF_ALL = """SELECT bidder, auction, price FROM ({last}) AS l
ORDER BY price DESC, bidder, auction LIMIT 10"""
_EXISTS = """SELECT a.id, a.seller, a.category, a.reserve FROM auction a WHERE {}EXISTS (
  SELECT 1 FROM bid b WHERE b.auction = a.id AND b.price > a.reserve)"""

_STATISTICS = """SELECT auction, count(*) AS n, sum(price) AS total,
  avg(CAST(price AS DOUBLE)) AS average, min(price) AS low, max(price) AS high
FROM bid GROUP BY auction"""
_LAST_BY_MAX = """SELECT bidder, auction, last.price, last.ts FROM (
  SELECT bidder, auction, max_by(struct(price, ts), ts) AS last
  FROM bid GROUP BY bidder, auction)"""
_PASSED = "SELECT auction, bidder, price, channel, ts FROM bid"

ALL = [
    Workload(
        "W0", "source and sink only", ("bid",), _PASSED,
        ("auction", "bidder", "price", "CHAR_LENGTH(channel)", "ts"),
        stock=_PASSED, key=("ts",),
    ),
    Workload(
        "W1", "word count, then count of counts", ("word",),
        _COUNT_OF_COUNTS, ("n", "words"), stock=_COUNT_OF_COUNTS,
        key=("n",),
    ),
    Workload(
        "W2", "count, sum, avg, min, max per auction", ("bid",), _STATISTICS,
        ("auction", "n", "total", "CAST(average AS BIGINT)", "low", "high"),
        stock=_STATISTICS, key=("auction",),
    ),
    Workload(
        "W3", "several COUNT(DISTINCT) per channel and day", ("bid",),
        f"SELECT channel, `day`, {_DISTINCT} FROM bid GROUP BY channel, `day`",
        ("CHAR_LENGTH(channel)", "`day`", *_DISTINCT_CHECK),
    ),
    Workload(
        "W3d", "the same per day: hot groups", ("bid",),
        f"SELECT `day`, {_DISTINCT} FROM bid GROUP BY `day`", ("`day`", *_DISTINCT_CHECK),
    ),
    Workload(
        "W3h", "a million distinct values of one group", ("bid",),
        """SELECT id >= 0 AS hot, count(DISTINCT MOD(id, 1000000)) AS n
FROM bid GROUP BY id >= 0""",
        ("n",),
    ),
    Workload(
        "W4", "bids in the time of their auction, max per auction, avg per category",
        ("auction", "bid"), _PER_CATEGORY, ("category", "CAST(average AS BIGINT)"),
        stock=_PER_CATEGORY,
        key=("category",),
    ),
    Workload(
        "W4j", "bids in the time of their auction", ("auction", "bid"), _IN_TIME,
        ("bid", "auction", "category", "price"), stock=_IN_TIME, key=("bid",),
    ),
    Workload(
        "W4h", "bids and their auction, with a fifth of the bids on one key", ("auction", "bid"),
        _SKEWED, ("bid", "auction", "category", "price"), stock=_SKEWED, key=("bid",),
    ),
    Workload(
        "W4e", "the same, with four fifths", ("auction", "bid"), _HOT.format(hint=""),
        ("bid", "auction", "category", "price"), stock=_HOT.format(hint=""), key=("bid",),
    ),
    Workload(
        "W4es", "the same, spread by a hint", ("auction", "bid"),
        _HOT.format(hint="/*+ SKEW('b', 'about', 0) */ "),
        ("bid", "auction", "category", "price"), flink=_HOT.format(hint=""),
    ),
    Workload(
        "W5", "left outer join with a condition, counted per category", ("auction", "bid"),
        """SELECT a.category, count(*) AS n, count(b.auction) AS matched
FROM auction a LEFT JOIN bid b ON a.id = b.auction AND b.price > a.reserve GROUP BY a.category""",
        ("category", "n", "matched"),
    ),
    Workload(
        "W6", "ten best bids per auction, numbered", ("bid",), _TOP.format(place=", place"),
        ("auction", "bidder", "price", "id", "place"),
    ),
    Workload(
        "W6n", "the same without the number", ("bid",), _TOP.format(place=""),
        ("auction", "bidder", "price", "id"),
    ),
    Workload(
        "W6e", "the same, with four fifths on one auction", ("bid",), _TOP_OF_HOT,
        ("about", "bidder", "price", "id"),
    ),
    Workload(
        "W6g", "the ten best among the last bids per bidder and auction", ("bid",),
        _BEST_OF_ALL.format(last=_LAST.format(time="ts")),
        ("bidder", "auction", "price"),
        flink=_BEST_OF_ALL.format(last=_LAST.format(time="rowtime")),
    ),
    Workload(
        "W7", "last bid per bidder and auction", ("bid",), _LAST.format(time="ts"),
        ("bidder", "auction", "price", "ts"),
        flink=_LAST.format(time="rowtime"),
        stock=_LAST_BY_MAX, key=("bidder", "auction"),
    ),
    Workload(
        "W8s", "auctions with a bid above their reserve", ("auction", "bid"), _EXISTS.format(""),
        ("id", "seller", "category", "reserve"),
    ),
    Workload(
        "W8a", "auctions without such a bid", ("auction", "bid"), _EXISTS.format("NOT "),
        ("id", "seller", "category", "reserve"),
    ),
    Workload(
        "W9", "count and sum over orders with updates and deletes", ("orders",),
        "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
        ("customer", "n", "total"),
    ),
    Workload(
        "W9m", "the same with min and max", ("orders",),
        """SELECT customer, count(*) AS n, sum(amount) AS total, min(amount) AS low,
  max(amount) AS high FROM orders GROUP BY customer""",
        ("customer", "n", "total", "low", "high"),
    ),
    Workload(
        "W10", "full outer join of orders and payments with updates and deletes",
        ("orders", "payments"),
        """SELECT order_id, customer, amount, payment_order, paid
FROM orders FULL JOIN payments ON order_id = payment_order""",
        tuple(
            f"COALESCE({column}, -1)"
            for column in ("order_id", "customer", "amount", "payment_order", "paid")
        ),
    ),
    Workload(
        "W11", "join of orders and payments with updates and deletes, and bids, on one key",
        ("orders", "payments", "bid"),
        """SELECT order_id, customer, amount, paid, price
FROM orders JOIN payments ON order_id = payment_order JOIN bid ON order_id = bid.id""",
        ("order_id", "customer", "amount", "paid", "price"),
    ),
]  # fmt: skip

BY_NAME = {workload.name: workload for workload in ALL}

# The keys of the changing tables.
KEYS = {"orders": "order_id", "payments": "payment_order"}
