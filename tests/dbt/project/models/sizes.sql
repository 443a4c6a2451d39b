{{ config(materialized='materialized_view', file_format='parquet') }}
SELECT rides, count(*) AS cities FROM {{ ref('totals') }} GROUP BY rides
