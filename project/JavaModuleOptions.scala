// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

/** The JVM flags Spark 4.2 starts itself with on Java 17 and later; a forked test JVM needs them too. */
object JavaModuleOptions {

  private val opened = Seq(
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5")

  val all: Seq[String] =
    Seq("-XX:+IgnoreUnrecognizedVMOptions", "--add-modules=jdk.incubator.vector") ++
      opened.map(module => s"--add-opens=$module=ALL-UNNAMED") ++
      Seq(
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dio.netty.allocator.type=pooled",
        "--enable-native-access=ALL-UNNAMED")
}
