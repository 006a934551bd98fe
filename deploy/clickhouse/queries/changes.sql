-- How often pages change: pages by how many of their fetches brought other content, for pages fetched twice or more.
-- host · pages · fetches · changes: of the text, seen between two fetches · change_rate: changes for each fetch after the first
SELECT
    p.host AS host,
    count() AS pages,
    sum(f.fetches) AS fetches,
    sum(p.change_count) AS changes,
    round(changes / (fetches - pages), 4) AS change_rate
FROM pages AS p
INNER JOIN
(
    SELECT url_hash, count() AS fetches
    FROM fetches
    WHERE outcome_kind = 'page' AND fetch_status IN (200, 304)
    GROUP BY url_hash
    HAVING fetches > 1
) AS f ON f.url_hash = p.url_hash
GROUP BY p.host
ORDER BY pages DESC, host
LIMIT 100
