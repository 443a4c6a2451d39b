// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

/**
 * Fence: a fencing token, the right to write until another process takes a later term.
 *
 * A statement and the streams of the statement write within the statement's fences. Each externally visible write
 * calls [[Fence.check]] first.
 */
private[changelog] trait Fence {

  /** Later holders have higher numbers. */
  def term: Long

  /** Whether the holder has ended, and writes nothing more within the fence. */
  def hasEnded: Boolean

  /** Fails if a later term exists, or if the last term cannot be read. */
  def check(): Unit
}

private[changelog] object Fence {

  /** Threads of a stream inherit the fences of the starting statement. */
  private val fences = new InheritableThreadLocal[List[Fence]] {
    override protected def initialValue(): List[Fence] = Nil
  }

  /** Called with the name of each write, before and after the check. Tests use the hook to delay a process. */
  @volatile var onEffect: (String, Boolean) => Unit = (_, _) => ()

  /** Runs `body` within a fence, inside the fences of the thread. */
  def within[T](fence: Fence)(body: => T): T = {
    val outer = fences.get()
    // pooled threads may have inherited the fences of an ended statement
    fences.set(fence :: outer.filterNot(_.hasEnded))
    try body
    finally fences.set(outer)
  }

  /** Whether the current thread writes within a fence. */
  def isSet: Boolean = fences.get().nonEmpty

  /** The term of the innermost fence; 0 without a fence. */
  def term: Long = fences.get().headOption.fold(0L)(_.term)

  /** Fails if a fence of the thread no longer holds. */
  def check(effect: String): Unit = {
    if (isSet) {
      onEffect(effect, false)
      fences.get().foreach(_.check())
      onEffect(effect, true)
    }
  }
}
