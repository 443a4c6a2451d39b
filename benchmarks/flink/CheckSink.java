// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import java.util.Set;
import java.util.concurrent.atomic.LongAdder;

import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.types.RowKind;

/**
 * Counts rows and sums their first column, a hash of the row. Retracted rows count negative, so the
 * final count and sum are of the final rows.
 */
public final class CheckSink implements DynamicTableSink {
  private static final LongAdder EMITTED = new LongAdder();
  private static final LongAdder COUNT = new LongAdder();
  private static final LongAdder SUM = new LongAdder();

  static void reset() {
    EMITTED.reset();
    COUNT.reset();
    SUM.reset();
  }

  static String totals() {
    return String.format(
        "\"emitted\": %s, \"count\": %s, \"sum\": %s", EMITTED.sum(), COUNT.sum(), SUM.sum());
  }

  /** Creates the sink for {@code 'connector' = 'check'}. */
  public static final class Factory implements DynamicTableSinkFactory {
    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
      return new CheckSink();
    }

    @Override
    public String factoryIdentifier() {
      return "check";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
      return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
      return Set.of();
    }
  }

  @Override
  public ChangelogMode getChangelogMode(ChangelogMode requested) {
    return requested; // with before images, needed for the sum
  }

  @Override
  public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
    return SinkV2Provider.of(new Totals());
  }

  @Override
  public DynamicTableSink copy() {
    return new CheckSink();
  }

  @Override
  public String asSummaryString() {
    return "check";
  }

  private static final class Totals implements Sink<RowData> {
    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
      return new Writer();
    }
  }

  private static final class Writer implements SinkWriter<RowData> {
    private long emitted;
    private long count;
    private long sum;

    @Override
    public void write(RowData row, Context context) {
      RowKind kind = row.getRowKind();
      int sign = kind == RowKind.INSERT || kind == RowKind.UPDATE_AFTER ? 1 : -1;
      emitted++;
      count += sign;
      sum += sign * row.getLong(0);
    }

    @Override
    public void flush(boolean endOfInput) {
      EMITTED.add(emitted);
      COUNT.add(count);
      SUM.add(sum);
      emitted = count = sum = 0;
    }

    @Override
    public void close() {
      flush(true);
    }
  }
}
