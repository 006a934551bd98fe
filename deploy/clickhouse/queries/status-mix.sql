-- What servers answered when pages were asked for.
-- answer: the status, or why there was none · fetches · share · hosts
SELECT
    if(fetch_status > 0, toString(fetch_status), error) AS answer,
    count() AS fetches,
    round(fetches / sum(fetches) OVER (), 4) AS share,
    uniqExact(host) AS hosts
FROM fetches
WHERE outcome_kind = 'page'
GROUP BY answer
ORDER BY fetches DESC, answer
