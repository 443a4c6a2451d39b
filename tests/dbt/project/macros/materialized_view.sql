{% materialization materialized_view, adapter='spark' %}
  {{ return(spark_changelog.materialization_materialized_view_spark()) }}
{% endmaterialization %}
