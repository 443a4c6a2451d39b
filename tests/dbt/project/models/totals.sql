{{ config(materialized='materialized_view', file_format='parquet', tblproperties={'changelog.lag': '5 minutes'}) }}
SELECT city, count(*) AS rides, sum(fare) AS total
FROM {{ ref('rides') }}
GROUP BY city
