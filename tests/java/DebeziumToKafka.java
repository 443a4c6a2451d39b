// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends what a Debezium connector reads to Kafka, until standard input ends.
 *
 * <p>Run as a source file with the jars on the class path; the first argument is a file with the
 * engine's properties, and `bootstrap.servers`.
 */
public class DebeziumToKafka {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(Path.of(arguments[0]))) {
      properties.load(reader);
    }
    Properties target = new Properties();
    target.put("bootstrap.servers", properties.remove("bootstrap.servers"));
    target.put("acks", "all");
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try (var producer =
            new KafkaProducer<>(target, new StringSerializer(), new StringSerializer());
        DebeziumEngine<ChangeEvent<String, String>> engine =
            DebeziumEngine.create(Json.class)
                .using(properties)
                .notifying(
                    event ->
                        producer.send(
                            new ProducerRecord<>(
                                event.destination(), event.key(), event.value())))
                .using((success, message, error) -> {
                  if (!success) {
                    System.err.println(message);
                    if (error != null) error.printStackTrace();
                    System.exit(1);
                  }
                })
                .build()) {
      thread.execute(engine);
      while (System.in.read() >= 0) {}
    }
    thread.shutdown();
  }
}
