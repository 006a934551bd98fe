-- Why links that were found are not followed.
-- processor, code: who refused, and the rule · links · pages: that have such links · example
SELECT processor, code, sum(count) AS links, uniqExact(url) AS pages, anyIf(examples[1], notEmpty(examples)) AS example
FROM decisions
WHERE processor != 'schedule' AND code != 'admitted'
GROUP BY processor, code
ORDER BY links DESC, processor, code
