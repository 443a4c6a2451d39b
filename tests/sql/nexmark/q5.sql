-- Nexmark, query 5: hot items.
WITH counts AS (
  SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
  FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds'))
SELECT c.auction, c.num, c.starttime
FROM counts c
JOIN (SELECT max(num) AS maxn, starttime, endtime FROM counts GROUP BY starttime, endtime) m
  ON c.starttime = m.starttime AND c.endtime = m.endtime AND c.num >= m.maxn
