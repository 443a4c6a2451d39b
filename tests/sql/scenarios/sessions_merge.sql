-- A click between two sessions makes them one; when it is taken back there are two again.
-- tags: aggregate, time, same-batch
feed clicks(who STRING, at TIMESTAMP)
query SELECT who, minute(session_window.start) AS from, minute(session_window.end) AS until,
  count(*) AS clicks
  FROM clicks GROUP BY who, session_window(at, '10 minutes')

clicks +I ann 2024-01-01T10:00:00
-> +I ann 0 10 1
clicks +I ann 2024-01-01T10:15:00
& clicks +I bob 2024-01-01T10:15:00
-> +I ann 15 25 1
-> +I bob 15 25 1
clicks +I ann 2024-01-01T10:08:00
-> -D ann 0 10 1
-> -D ann 15 25 1
-> +I ann 0 25 3
clicks -D ann 2024-01-01T10:08:00
-> -D ann 0 25 3
-> +I ann 0 10 1
-> +I ann 15 25 1
clicks -D ann 2024-01-01T10:00:00
-> -D ann 0 10 1
