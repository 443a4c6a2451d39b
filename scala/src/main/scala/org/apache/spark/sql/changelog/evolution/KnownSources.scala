// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

/**
 * Which sources of a changed query the query before has read. One that is read once more, apart, has been read
 * as far as before: which of the two readings is that of what is kept does not matter then.
 *
 * @param was
 *   what those of the query before are called, in the order of its offsets
 * @param is
 *   what those of the changed query are called
 */
private[evolution] class KnownSources(was: Seq[String], is: Seq[String]) {

  /** The place that each had before; none of one that is new. */
  val before: Seq[Option[Int]] = {
    val old = was.zipWithIndex.groupMap(_._1)(_._2)
    is.zipWithIndex.map { case (source, place) =>
      val sameBefore = is.take(place).count(_ == source)
      old.get(source).map(places => places.lift(sameBefore).getOrElse(places.last))
    }
  }
}
