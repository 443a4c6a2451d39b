// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.{ByteArrayOutputStream, IOException}
import java.net.URI
import java.nio.file.{FileAlreadyExistsException, Files, StandardCopyOption}

import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE
import org.apache.hadoop.fs._

/**
 * An object store in local files. A renamed file appears at once, but replaces an existing file, and any process may
 * write between the look for a file and the rename.
 *
 *   - `store`: creates a file on the condition that it is absent, as S3 does
 *   - `unconditional`: the same without the condition
 *   - `ignorant`: claims to know the condition, and ignores it
 *   - `lagging`: does not list the files of the last second
 */
abstract class StoreFileSystem(scheme: String) extends RawLocalFileSystem {
  import StoreFileSystem._

  override def getScheme: String = scheme

  override def getUri: URI = URI.create(s"$scheme:///")

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == FS_OPTION_CREATE_CONDITIONAL_OVERWRITE && scheme != Unconditional ||
      super.hasPathCapability(path, capability)

  override def createFile(path: Path): FSDataOutputStreamBuilder[_, _] = new Builder(this, path)

  private def put(path: Path, bytes: Array[Byte], ifAbsent: Boolean): Unit = {
    val file = pathToFile(path).toPath
    Files.createDirectories(file.getParent)
    val whole = Files.createTempFile(file.getParent, ".whole", "")
    try {
      Files.write(whole, bytes)
      if (ifAbsent && scheme != "ignorant") Files.createLink(file, whole)
      else Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE)
    } catch {
      case _: FileAlreadyExistsException => throw new IOException("412 Precondition Failed")
    } finally Files.deleteIfExists(whole)
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    val now = System.currentTimeMillis()
    super.listStatus(path).filterNot { status =>
      scheme == "lagging" && status.isFile && now - status.getModificationTime < 1000
    }
  }

  override def rename(from: Path, to: Path): Boolean = {
    beforeRename(from, to)
    super.rename(from, to)
  }
}

object StoreFileSystem {
  val Unconditional = "unconditional"

  /** Called before each rename. */
  @volatile var beforeRename: (Path, Path) => Unit = (_, _) => ()

  val conf: Map[String, String] =
    Seq(classOf[Conditional], classOf[Without], classOf[Ignorant], classOf[Lagging]).map {
      store =>
        val scheme = store.getConstructor().newInstance().getScheme
        s"fs.$scheme.impl" -> store.getName
    }.toMap

  class Conditional extends StoreFileSystem("store")
  class Without extends StoreFileSystem(Unconditional)
  class Ignorant extends StoreFileSystem("ignorant")
  class Lagging extends StoreFileSystem("lagging")

  private class Builder(store: StoreFileSystem, path: Path)
      extends FSDataOutputStreamBuilder[FSDataOutputStream, Builder](store, path) {
    override def getThisBuilder: Builder = this

    override def build(): FSDataOutputStream = {
      val key = FS_OPTION_CREATE_CONDITIONAL_OVERWRITE
      val ifAbsent = getMandatoryKeys.contains(key) && getOptions.getBoolean(key, false)
      new FSDataOutputStream(new Uploaded(store.put(path, _, ifAbsent)), null)
    }
  }

  /** A file that appears when its stream is closed. */
  private class Uploaded(put: Array[Byte] => Unit) extends ByteArrayOutputStream with Abortable {
    private var isAborted = false

    override def close(): Unit = if (!isAborted) put(toByteArray)

    override def abort(): Abortable.AbortableResult = {
      isAborted = true
      null
    }
  }
}
