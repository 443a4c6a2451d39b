// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.{FilterOutputStream, IOException, OutputStream}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

import io.sparkchangelog.ChangelogCheckpointFileManager

/** Files of checkpoints that can't be written when a test says so: a full disk, a lost connection. */
class FailingCheckpointFiles(path: Path, hadoopConf: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, hadoopConf) {

  override def createAtomic(
      path: Path,
      overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    FailingCheckpointFiles.create(path)(super.createAtomic(path, overwriteIfPossible))
}

/** The same of our files. */
class FailingLocalCheckpointFiles(path: Path, hadoopConf: Configuration)
    extends ChangelogCheckpointFileManager(path, hadoopConf) {

  override def createAtomic(
      path: Path,
      overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    FailingCheckpointFiles.create(path)(super.createAtomic(path, overwriteIfPossible))
}

object FailingCheckpointFiles {
  private[testing] def create(path: Path)(
      file: => CancellableFSDataOutputStream): CancellableFSDataOutputStream =
    faultFor(path) match {
      case Some(AtCreation) => throw full(path)
      case Some(fault) => new FailingFile(path, file, fault)
      case None => file
    }

  sealed trait Fault
  case object AtCreation extends Fault
  final case class Within(bytes: Int) extends Fault
  case object AtClose extends Fault

  /** The file is there, but its writer is not told so. */
  case object AfterClose extends Fault

  /** Which file fails how; none if that says nothing. */
  @volatile var faultFor: Path => Option[Fault] = _ => None

  /** Fails so at files whose names end so, until `body` is done. */
  def failing[T](nameEnd: String, fault: Fault)(body: => T): T = {
    faultFor = path => if (path.getName.endsWith(nameEnd)) Some(fault) else None
    try body
    finally faultFor = _ => None
  }

  private def full(path: Path): IOException = new IOException(s"No space left on device: $path")

  private class FailingFile(path: Path, file: CancellableFSDataOutputStream, fault: Fault)
      extends CancellableFSDataOutputStream(new LimitedStream(path, file, fault)) {
    private var isClosed = false

    override def close(): Unit = if (!isClosed) {
      isClosed = true
      if (fault == AtClose) {
        file.cancel()
        throw full(path)
      }
      file.close()
      if (fault == AfterClose) throw full(path)
    }

    override def cancel(): Unit = {
      isClosed = true
      file.cancel()
    }
  }

  private class LimitedStream(path: Path, file: OutputStream, fault: Fault)
      extends FilterOutputStream(file) {
    private var room = fault match {
      case Within(bytes) => bytes
      case _ => Int.MaxValue
    }

    override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

    override def write(bytes: Array[Byte], start: Int, size: Int): Unit = {
      room -= size
      if (room < 0) throw full(path)
      file.write(bytes, start, size)
    }
  }
}
