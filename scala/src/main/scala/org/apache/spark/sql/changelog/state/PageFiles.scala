// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.nio.file.Path

import scala.collection.mutable

/**
 * The pages of a table that are in local files.
 *
 * Room in a file is used once: what reads a page that has gone meanwhile, as the writer of a snapshot does,
 * still finds it. A file goes with the last of its pages, and when less than half of it is
 * needed, those that are move to another one.
 */
private[state] final class PageFiles(memory: StateMemory) {
  private var current: PageFile = _
  // full ones that are needed
  private val full = mutable.LinkedHashSet.empty[PageFile]

  /** A page with the same bytes in a file; none if that can't be written. */
  def moved(page: Page, size: Int): Option[Page] = memory.intoFile {
    val file = fileFor(size)
    val inFile = page.movedTo(file, size)
    file.numWantedBytes += size
    memory.takeFile(size)
    inFile
  }

  def drop(page: Page): Unit = {
    val file = page.file
    file.numWantedBytes -= page.size
    if (file.numWantedBytes == 0 && full.remove(file)) memory.takeFile(-file.numBytes)
  }

  /** Moves what is needed of one file, if that is less than half of it. */
  def reclaim(pages: Array[Page]): Unit =
    full.find(file => file.numWantedBytes < file.capacity / 2).foreach { file =>
      var number = 0
      while (number < pages.length) {
        val page = pages(number)
        if (page != null && (page.file eq file)) {
          moved(page, page.size).foreach { other =>
            pages(number) = other
            drop(page)
          }
        }
        number += 1
      }
    }

  private def fileFor(size: Int): PageFile = {
    if (current == null || !current.hasRoomFor(size)) {
      val next = new PageFile(memory.directory(), math.max(memory.fileSize, size))
      if (current != null) {
        current.finish()
        if (current.numWantedBytes > 0) full += current
        else memory.takeFile(-current.numBytes)
      }
      current = next
    }
    current
  }
}

/** A file of pages. */
private[state] final class PageFile(directory: Path, capacity: Long)
    extends LocalFile(directory, capacity) {

  /** Bytes of the pages that are needed. */
  var numWantedBytes: Long = 0
}
