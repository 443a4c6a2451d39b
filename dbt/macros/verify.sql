{#
  Fails where a view differs from what its query gives in batch Spark; each row that differs is a failure.

    models:
      - name: totals
        data_tests:
          - spark_changelog.verify
#}
{% test verify(model, sample=none) %}
  {%- set rows = [] -%}
  {%- if execute and flags.WHICH in ['test', 'build'] -%}
    {%- set part = '' if sample is none else ' SAMPLE ' ~ sample ~ ' PERCENT' -%}
    {%- for row in run_query('VERIFY MATERIALIZED VIEW ' ~ model ~ part) -%}
      {%- set values = row.dict() -%}
      {%- set difference = values.pop('_difference') -%}
      {%- do rows.append('(' ~ spark_changelog.literal(difference) ~ ', ' ~ spark_changelog.literal(values) ~ ')') -%}
    {%- endfor -%}
  {%- endif %}
  {%- if rows %}
SELECT * FROM VALUES {{ rows | join(', ') }} AS differences(difference, row)
  {%- else %}
SELECT CAST(NULL AS STRING) AS difference, CAST(NULL AS STRING) AS row WHERE false
  {%- endif %}
{% endtest %}
