{#
  Makes a model's view, or brings it up to date.

  What a view was made of is remembered in its property dbt.definition. As long as that stays the same, a run is a
  REFRESH, which reads what has changed since; with --full-refresh all rows are computed anew. Where the definition is
  another one, the view is replaced, unless on_configuration_change says otherwise.
#}
{% macro keep(kind) %}
  {%- set existing = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set is_table = config.get('file_format') == 'delta' -%}
  {%- set target = api.Relation.create(
    database=database, schema=schema, identifier=model['alias'], type='table' if is_table else 'view') -%}
  {%- set known = spark_changelog.properties_of(target) if spark_changelog.is_kept(target, existing) else none -%}
  {%- set wanted = spark_changelog.wanted_properties(kind) -%}

  {{ run_hooks(pre_hooks) }}

  {% if known is none %}
    {% if existing is not none %}
      {% do adapter.drop_relation(existing) %}
    {% endif %}
    {% do spark_changelog.make(kind, target, wanted, replace=false) %}
  {% elif known.get('dbt.definition') != wanted['dbt.definition'] %}
    {% if spark_changelog.may_change(target, 'its query or its format') %}
      {% do spark_changelog.make(kind, target, wanted, replace=true) %}
    {% else %}
      {% do spark_changelog.refresh(target) %}
    {% endif %}
  {% else %}
    {% do spark_changelog.alter(target, known, wanted) %}
    {% do spark_changelog.refresh(target, 'FULL' if should_full_refresh() else '') %}
  {% endif %}

  {% do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=false)) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmacro %}


{# The properties that a model's view shall have, with those by which the next run knows it. #}
{% macro wanted_properties(kind) %}
  {%- set wanted = {} -%}
  {%- for name, value in (config.get('tblproperties') or {}).items() -%}
    {%- do wanted.update({name: value | string}) -%}
  {%- endfor -%}
  {%- set names = wanted.keys() | sort | join(',') -%}
  {%- set made_of = [kind, sql, config.get('file_format'), config.get('partition_by'), spark_changelog.comment()] -%}
  {%- do wanted.update({'dbt.definition': local_md5(tojson(made_of)), 'dbt.properties': names}) -%}
  {{ return(wanted) }}
{% endmacro %}


{% macro make(kind, target, properties, replace) %}
  {% call statement('main') -%}
    CREATE {{ 'OR REPLACE ' if replace }}{{ kind | upper }} {{ target }}
    {{ file_format_clause() }}
    {{ partition_cols(label='PARTITIONED BY') }}
    {{ spark_changelog.comment() }}
    TBLPROPERTIES ({{ spark_changelog.pairs(properties) }})
    AS {{ sql }}
  {%- endcall %}
{% endmacro %}


{% macro refresh(target, how='') %}
  {% call statement('main') -%}
    REFRESH MATERIALIZED VIEW {{ target }} {{ how }}
  {%- endcall %}
{% endmacro %}


{# Sets the properties that are others than before, and takes away those that the model has no more. #}
{% macro alter(target, known, wanted) %}
  {%- set changed = {} -%}
  {%- for name, value in wanted.items() if known.get(name) != value -%}
    {%- do changed.update({name: value}) -%}
  {%- endfor -%}
  {%- set gone = [] -%}
  {%- for name in known.get('dbt.properties', '').split(',') if name and name not in wanted -%}
    {%- do gone.append(spark_changelog.literal(name)) -%}
  {%- endfor -%}
  {% if (changed or gone) and spark_changelog.may_change(target, 'its properties') %}
    {% if changed %}
      {% do run_query('ALTER MATERIALIZED VIEW ' ~ target ~ ' SET TBLPROPERTIES (' ~ spark_changelog.pairs(changed) ~ ')') %}
    {% endif %}
    {% if gone %}
      {% do run_query('ALTER MATERIALIZED VIEW ' ~ target ~ ' UNSET TBLPROPERTIES IF EXISTS (' ~ gone | join(', ') ~ ')') %}
    {% endif %}
  {% endif %}
{% endmacro %}


{# Whether a view may become what the model says now: on_configuration_change is apply (default), continue or fail. #}
{% macro may_change(target, what) %}
  {%- set policy = config.get('on_configuration_change') | string -%}
  {% if policy == 'fail' %}
    {{ exceptions.raise_compiler_error(target ~ ': ' ~ what ~ ' changed, and on_configuration_change is fail') }}
  {% elif policy == 'continue' %}
    {{ exceptions.warn(target ~ ': ' ~ what ~ ' changed, but the view goes on as it was') }}
  {% endif %}
  {{ return(policy != 'continue') }}
{% endmacro %}


{# Whether there is a view of that name that statements about views know. #}
{% macro is_kept(target, existing) %}
  {% if existing is none %}{{ return(false) }}{% endif %}
  {%- set found = run_query('SHOW MATERIALIZED VIEWS IN ' ~ target.schema ~ ' LIKE ' ~ spark_changelog.literal(target.identifier)) -%}
  {{ return(found | length > 0) }}
{% endmacro %}


{% macro properties_of(target) %}
  {%- set properties = {} -%}
  {%- for row in run_query('SHOW TBLPROPERTIES ' ~ target) -%}
    {%- do properties.update({row[0]: row[1]}) -%}
  {%- endfor -%}
  {{ return(properties) }}
{% endmacro %}


{% macro comment() %}
  {%- if config.get('persist_docs', {}).get('relation') and model.description -%}
    {{ return('COMMENT ' ~ spark_changelog.literal(model.description)) }}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}


{% macro pairs(properties) %}
  {%- set texts = [] -%}
  {%- for name, value in properties.items() -%}
    {%- do texts.append(spark_changelog.literal(name) ~ ' = ' ~ spark_changelog.literal(value)) -%}
  {%- endfor -%}
  {{ return(texts | join(', ')) }}
{% endmacro %}


{% macro literal(text) %}
  {{ return("'" ~ (text | string).replace('\\', '\\\\').replace("'", "\\'") ~ "'") }}
{% endmacro %}
