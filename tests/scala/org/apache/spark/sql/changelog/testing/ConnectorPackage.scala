// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.matching.Regex

/**
 * A package of `connectors`, which alone knows a library that may be missing.
 *
 * @param member
 *   a class of the package
 * @param library
 *   how the names of the library's classes begin
 */
class ConnectorPackage(member: Class[_], library: String) {
  private val name = member.getPackageName

  private def isInside(file: Path): Boolean =
    file.getParent.endsWith(s"connectors/${name.split('.').last}")

  /** Whether a file is in the package, with such a name. */
  def has(file: Path, names: String): Boolean =
    isInside(file) && file.getFileName.toString.matches(names)

  /** The sources of other packages that contain `known`. */
  def sourcesOutside(known: Regex): Seq[Path] = {
    val home = Paths.get(sys.props("spark.changelog.test.home"))
    UsedPackages
      .sources(home.resolve("scala/src/main"))
      .filter(file => !isInside(file) && known.findFirstIn(Files.readString(file)).nonEmpty)
  }

  /** The compiled classes that are linked with the library. */
  def linked: Seq[Path] = {
    val all =
      Files.walk(Paths.get(member.getProtectionDomain.getCodeSource.getLocation.toURI))
    try {
      val files = all.iterator.asScala.filter(_.toString.endsWith(".class")).toSeq
      files.filter(Files.readString(_, ISO_8859_1).contains(library.replace('.', '/')))
    } finally all.close()
  }

  /** Loads a class of the package once more, by a class loader that doesn't find the library. */
  def loadWithoutLibrary(wanted: Class[_]): Class[_] =
    new ClassLoader(member.getClassLoader) {
      override protected def loadClass(called: String, resolve: Boolean): Class[_] =
        if (called.startsWith(library)) throw new ClassNotFoundException(called)
        else if (called.startsWith(s"$name.")) {
          Option(findLoadedClass(called)).getOrElse {
            val file = getParent.getResourceAsStream(called.replace('.', '/') + ".class")
            val bytes =
              try file.readAllBytes()
              finally file.close()
            defineClass(called, bytes, 0, bytes.length)
          }
        } else super.loadClass(called, resolve)
    }.loadClass(wanted.getName)
}
