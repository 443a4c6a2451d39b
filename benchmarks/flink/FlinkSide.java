// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs scripts of Flink SQL in order, and prints the time of the INSERT of each script.
 *
 * <p>A line of a script is a setting ({@code SET key=value}) or a statement. The time is the job's
 * time as reported by Flink, without the start of the cluster and without planning.
 */
public final class FlinkSide {
  public static void main(String[] scripts) throws Exception {
    for (String script : scripts) {
      System.out.println("RESULT " + run(Path.of(script)));
    }
    System.exit(0); // the cluster's threads would delay the end of the process
  }

  private static String run(Path script) throws Exception {
    Configuration settings = new Configuration();
    List<String> statements = new ArrayList<>();
    for (String line : Files.readAllLines(script)) {
      if (line.startsWith("SET ")) {
        String[] setting = line.substring(4).split("=", 2);
        settings.setString(setting[0], setting[1]);
      } else if (!line.isBlank()) {
        statements.add(line);
      }
    }
    TableEnvironment tables =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
    CheckSink.reset();
    double seconds = 0;
    for (String statement : statements) {
      if (statement.startsWith("EXPLAIN")) {
        tables.executeSql(statement).print();
      } else {
        TableResult result = tables.executeSql(statement);
        if (statement.startsWith("INSERT")) {
          seconds =
              result.getJobClient().orElseThrow().getJobExecutionResult().get()
                      .getNetRuntime(TimeUnit.MILLISECONDS) / 1000.0;
        }
      }
    }
    return String.format(
        "{\"seconds\": %s, %s, \"peak_bytes\": %s, \"version\": \"Flink %s, Java %s\"}",
        seconds, CheckSink.totals(), peakBytes(),
        TableEnvironment.class.getPackage().getImplementationVersion(),
        System.getProperty("java.version"));
  }

  /** The largest resident size of this process, if the system reports it. */
  private static String peakBytes() throws Exception {
    Path status = Path.of("/proc/self/status");
    if (!Files.exists(status)) {
      return "null";
    }
    for (String line : Files.readAllLines(status)) {
      if (line.startsWith("VmHWM")) {
        return Long.toString(Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024);
      }
    }
    return "null";
  }
}
