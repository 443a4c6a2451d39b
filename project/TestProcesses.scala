// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

/** In how many processes tests are run. */
object TestProcesses {

  /** Of two, two cores have half of their time left: a test waits as often as it computes. */
  val atOnce = 3

  /** More than at once, so that none has much to do when the others have ended. */
  val inAll = 15
}
