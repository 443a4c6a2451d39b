{{ config(materialized='streaming_table', file_format='parquet') }}
SELECT city, fare FROM STREAM {{ ref('rides') }} WHERE fare > 4
