// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

/**
 * A fencing token: the right to write, which ends when another process takes a later term.
 *
 * A statement writes within its fences, and so do the streams that it starts. Each effect that others see calls
 * [[Fence.check]] first.
 */
private[changelog] trait Fence {

  /** Later holders have higher numbers. */
  def term: Long

  /** Whether the holder has ended, so that nothing more is written within this fence. */
  def hasEnded: Boolean

  /** Fails if a later term has been taken, or if that is unknown. */
  def check(): Unit
}

private[changelog] object Fence {

  /** Threads of streams inherit the fences of the statement that starts them. */
  private val fences = new InheritableThreadLocal[List[Fence]] {
    override protected def initialValue(): List[Fence] = Nil
  }

  /** Called with the name of each effect, before and after its check: tests hold up a process there. */
  @volatile var onEffect: (String, Boolean) => Unit = (_, _) => ()

  /** Writes within a fence, and within those around it. */
  def within[T](fence: Fence)(body: => T): T = {
    val outer = fences.get()
    // threads of a pool inherit fences for no reason
    fences.set(fence :: outer.filterNot(_.hasEnded))
    try body
    finally fences.set(outer)
  }

  /** Whether this thread writes within a fence. */
  def isSet: Boolean = fences.get().nonEmpty

  /** The term of the innermost fence; 0 without any. */
  def term: Long = fences.get().headOption.fold(0L)(_.term)

  /** Fails if one of the fences no longer holds. */
  def check(effect: String): Unit = {
    if (isSet) {
      onEffect(effect, false)
      fences.get().foreach(_.check())
      onEffect(effect, true)
    }
  }
}
