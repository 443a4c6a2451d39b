// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.annotation.tailrec

/** An error in a Scala source: a call of `analysis` or `runtime` with the name of a condition. */
final case class RaisedError(condition: String, parameters: Seq[String])

object RaisedError {
  private val Call = "\\b(?:analysis|runtime)\\(\\s*\"(CHANGELOG_\\w+)\"".r
  private val Parameter = "\"(\\w+)\"\\s*->".r

  /** Returns the errors in a source. Only pairs right in the call are parameters. */
  def in(source: String): Seq[RaisedError] = Call
    .findAllMatchIn(source)
    .map { call =>
      val arguments = ownText(source, source.indexOf('(', call.start) + 1)
      RaisedError(call.group(1), Parameter.findAllMatchIn(arguments).map(_.group(1)).toSeq)
    }
    .toSeq

  /** Returns the text up to the closing parenthesis, without the text in inner brackets. */
  private def ownText(source: String, start: Int): String = {
    val own = new StringBuilder
    @tailrec def read(at: Int, depth: Int): Unit = source(at) match {
      case ')' | ']' | '}' if depth == 0 => ()
      case ')' | ']' | '}' => read(at + 1, depth - 1)
      case '(' | '[' | '{' => read(at + 1, depth + 1)
      case '\'' => read(endOfCharacter(source, at), depth)
      case '"' =>
        val end = endOfText(source, at)
        if (depth == 0) own.append(source.substring(at, end))
        read(end, depth)
      case char =>
        if (depth == 0) own.append(char)
        read(at + 1, depth)
    }
    read(start, 0)
    own.toString
  }

  private def endOfCharacter(source: String, at: Int): Int =
    source.indexOf('\'', if (source(at + 1) == '\\') at + 3 else at + 2) + 1

  /** Returns the end of a text, which may contain expressions that contain texts. */
  private def endOfText(source: String, at: Int): Int = {
    @tailrec def end(at: Int): Int = source(at) match {
      case '"' => at + 1
      case '\\' => end(at + 2)
      case '$' if source(at + 1) == '{' => end(endOfExpression(source, at + 2))
      case _ => end(at + 1)
    }
    end(at + 1)
  }

  private def endOfExpression(source: String, start: Int): Int = {
    @tailrec def end(at: Int, depth: Int): Int = source(at) match {
      case '}' if depth == 0 => at + 1
      case '}' => end(at + 1, depth - 1)
      case '{' => end(at + 1, depth + 1)
      case '"' => end(endOfText(source, at), depth)
      case '\'' => end(endOfCharacter(source, at), depth)
      case _ => end(at + 1, depth)
    }
    end(start, 0)
  }
}
