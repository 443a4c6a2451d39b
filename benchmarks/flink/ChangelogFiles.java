// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.core.fs.Path;
import org.apache.flink.formats.parquet.ParquetColumnarRowInputFormat;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.RowKind;
import org.apache.hadoop.conf.Configuration;

/**
 * Reads Parquet files with the row kind in the last column, {@code op}.
 *
 * <p>The result of Flink's FROM_CHANGELOG has no primary key. A join then stores rows as a multiset,
 * which is slower than by key.
 */
public final class ChangelogFiles implements ScanTableSource {
  private static final ConfigOption<String> PATH =
      ConfigOptions.key("path").stringType().noDefaultValue();

  private final RowType columns;
  private final String path;

  private ChangelogFiles(RowType columns, String path) {
    this.columns = columns;
    this.path = path;
  }

  /** Creates the source for {@code 'connector' = 'changelog-files'}. */
  public static final class Factory implements DynamicTableSourceFactory {
    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
      FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
      helper.validate();
      RowType columns = (RowType) context.getPhysicalRowDataType().getLogicalType();
      return new ChangelogFiles(columns, helper.getOptions().get(PATH));
    }

    @Override
    public String factoryIdentifier() {
      return "changelog-files";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
      return Set.of(PATH);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
      return Set.of();
    }
  }

  @Override
  public ChangelogMode getChangelogMode() {
    return ChangelogMode.all();
  }

  @Override
  public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
    return new Provider(columns, path);
  }

  @Override
  public DynamicTableSource copy() {
    return new ChangelogFiles(columns, path);
  }

  @Override
  public String asSummaryString() {
    return "changelog files";
  }

  private record Provider(RowType columns, String path) implements DataStreamScanProvider {
    @Override
    public DataStream<RowData> produceDataStream(
        ProviderContext context, StreamExecutionEnvironment environment) {
      List<RowType.RowField> fields = new ArrayList<>(columns.getFields());
      fields.add(new RowType.RowField("op", VarCharType.STRING_TYPE));
      RowType read = new RowType(fields);
      ParquetColumnarRowInputFormat<FileSourceSplit> format =
          ParquetColumnarRowInputFormat.createPartitionedFormat(
              new Configuration(), read, InternalTypeInfo.of(read), List.of(), null, 2048, true, true);
      FileSource<RowData> source = FileSource.forBulkFileFormat(format, new Path(path)).build();
      return environment
          .fromSource(source, WatermarkStrategy.noWatermarks(), "changes")
          .map(new WithKind(columns.getFieldCount()))
          .returns(InternalTypeInfo.of(columns));
    }

    @Override
    public boolean isBounded() {
      return true;
    }
  }

  /** Sets the kind of a row from the row's last column. */
  private record WithKind(int position) implements MapFunction<RowData, RowData> {
    private static final Map<String, RowKind> KINDS =
        Map.of(
            "INSERT", RowKind.INSERT,
            "UPDATE_BEFORE", RowKind.UPDATE_BEFORE,
            "UPDATE_AFTER", RowKind.UPDATE_AFTER,
            "DELETE", RowKind.DELETE);

    @Override
    public RowData map(RowData row) {
      row.setRowKind(KINDS.get(row.getString(position).toString()));
      return row;
    }
  }
}
