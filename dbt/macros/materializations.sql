{# What models may be: views and tables that are brought up to date by what has changed. #}

{% materialization materialized_view, adapter='spark' %}
  {{ return(spark_changelog.keep('materialized view')) }}
{% endmaterialization %}

{% materialization streaming_table, adapter='spark' %}
  {{ return(spark_changelog.keep('streaming table')) }}
{% endmaterialization %}
