-- Nexmark, query 11: user sessions.
SELECT bidder, count(*) AS bids, session_window.start AS starttime, session_window.end AS endtime
FROM bid GROUP BY bidder, session_window(dateTime, '1 second')
