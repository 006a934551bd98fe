-- Groups of pages that say nearly the same: SimHashes that differ in at most 3 of 64 bits, of pages with 50 words or more.
-- leader: a SimHash · pages: near it · hosts · distance: the largest to the leader · examples: at most five URLs
-- Two hashes with at most 3 different bits agree in one of four 16-bit bands, so only those that share a band are
-- compared; of a band's value at most 1,000 hashes are.
WITH
    fingerprints AS
    (
        SELECT simhash, count() AS pages, groupUniqArray(100)(host) AS hosts, arraySort(groupArraySorted(5)(url)) AS urls
        FROM pages
        WHERE state = 'known' AND reason = 'ok' AND token_count >= 50
        GROUP BY simhash
    ),
    buckets AS
    (
        SELECT groupArray(1000)(simhash) AS members
        FROM fingerprints
        ARRAY JOIN range(4) AS band
        GROUP BY band, bitAnd(bitShiftRight(simhash, 16 * band), 65535)
        HAVING count() > 1
    ),
    near AS
    (
        SELECT DISTINCT a AS simhash, b AS other
        FROM (SELECT arrayJoin(members) AS a, members FROM buckets)
        ARRAY JOIN members AS b
        WHERE bitHammingDistance(a, b) <= 3
        UNION DISTINCT
        SELECT simhash, simhash FROM fingerprints
    ),
    -- The smallest hash that is near: whoever is near none smaller leads.
    led AS
    (
        SELECT simhash, min(other) AS leader FROM near GROUP BY simhash
    )
SELECT
    toString(leader) AS leader,
    sum(pages) AS pages,
    length(groupUniqArrayArray(hosts)) AS hosts,
    max(bitHammingDistance(led.simhash, led.leader)) AS distance,
    arraySlice(arraySort(arrayFlatten(groupArray(urls))), 1, 5) AS examples
FROM led
INNER JOIN fingerprints USING (simhash)
GROUP BY led.leader
HAVING pages > 1
ORDER BY pages DESC, leader
LIMIT 100
