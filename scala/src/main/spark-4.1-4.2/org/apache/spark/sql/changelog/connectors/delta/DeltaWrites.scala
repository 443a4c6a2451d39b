// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.internal.Logging
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, Expression}
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, quoteIdentifier}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.delta.actions.{AddFile, FileAction, SetTransaction}
import org.apache.spark.sql.delta.commands.{
  DMLWithDeletionVectorsHelper, DeletionVectorData, DeletionVectorUtils, DeletionVectorWriter
}
import org.apache.spark.sql.delta.deletionvectors.{RoaringBitmapArray, RoaringBitmapArrayFormat}
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.delta.util.{Utils => DeltaUtils}
import org.apache.spark.sql.delta.{
  ColumnWithDefaultExprUtils, DeltaConfigs, DeltaOperations, GeneratedColumn, NoMapping,
  OptimisticTransaction, Snapshot, TransactionExecutionObserver
}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.checkpoint.Fence

/**
 * Writes batches of changes into a Delta table without `MERGE`, each in a single commit. Deletion vectors mark
 * removed rows. A new file has the inserted rows, together with the change data feed.
 */
private[delta] class DeltaWrites private (
    session: SparkSession,
    table: String,
    found: DeltaRelation,
    identity: RowIdentity,
    application: String)
    extends DeltaWriter
    with Logging {
  private val attempts = Iterator(found) ++ Iterator.continually(lookUp())

  override def write(changes: DataFrame, batch: Long): Boolean = {
    RowChanges.collect(changes.queryExecution.toRdd, changes.schema).exists { collected =>
      collected.isEmpty || {
        val changes = new RowChanges(identity, collected)
        try DeltaConflicts.passing(commit(changes, batch))
        catch {
          // The installed version of Delta is incompatible. MERGE also skips an already written batch.
          case error: LinkageError =>
            logWarning(log"A batch is left to MERGE", error)
            false
        }
      }
    }
  }

  /** Writes a batch, unless the batch is already written. Returns false if too many rows are affected. */
  private def commit(changes: RowChanges, batch: Long): Boolean = {
    val found = attempts.next()
    val (relation, index) = (found.relation, DeltaSnapshots.indexOf(found.location))
    index.deltaLog.withNewTransaction(relation.catalogTable, Some(index.getSnapshot)) { txn =>
      val isDone = txn.txnVersion(application) >= batch || {
        val conditions =
          if (changes.mayRemove)
            changes.conditions(relation.output, txn.metadata.partitionColumns)
          else Nil
        val files =
          if (changes.mayRemove) txn.filterFiles(conditions, keepNumRecords = true) else Nil
        val isCounted = files.forall(_.numPhysicalRecords.isDefined)
        val rows = if (isCounted) find(txn, relation, files, conditions, changes) else None
        rows.map(changes.outcome).exists { outcome =>
          val note = SetTransaction(application, batch, Some(System.currentTimeMillis()))
          val actions = remove(txn, files, outcome) ++ add(txn, outcome)
          val query = application.takeWhile(_ != '/')
          val operation = DeltaOperations.StreamingUpdate(OutputMode.Update(), query, batch)
          txn.commit(note +: actions, operation)
          session.sharedState.cacheManager.recacheByPlan(session, relation)
          true
        }
      }
      isDone
    }
  }

  private def lookUp(): DeltaRelation = DeltaRelation.find(session, table).getOrElse {
    throw new IllegalStateException(s"not a Delta table: $table")
  }

  /** Returns the rows of files affected by the changes; empty if too many rows are affected. */
  private def find(
      txn: OptimisticTransaction,
      relation: LogicalRelation,
      files: Seq[AddFile],
      conditions: Seq[Expression],
      changes: RowChanges): Option[Seq[InternalRow]] =
    if (files.isEmpty) Some(Nil)
    else {
      val log = txn.deltaLog
      val index =
        new TahoeBatchFileIndex(session, "changelog", files, log, log.dataPath, txn.snapshot)
      val scan = castToImpl(
        DMLWithDeletionVectorsHelper
          .createTargetDfForScanningForMatches(session, relation, index))
      val plan = scan.queryExecution.analyzed
      val filtered = conditions.reduceOption(And(_, _)).fold(plan)(Filter(_, plan))
      val columns = identity.columns.fieldNames.toSeq.map(name => col(quoteIdentifier(name))) ++
        Seq(col("_metadata.file_path"), col("_metadata.row_index"))
      changes.find(Dataset.ofRows(session, filtered).select(columns: _*).queryExecution.toRdd)
    }

  /** Marks rows as removed in deletion vectors, or removes files without remaining rows. */
  private def remove(
      txn: OptimisticTransaction,
      files: Seq[AddFile],
      outcome: RowChanges.Outcome): Seq[FileAction] = {
    val log = txn.deltaLog
    val byPath = files.map { file =>
      SparkPath.fromPath(file.absolutePath(log)).urlEncoded -> file
    }.toMap
    val touched = outcome.removed.toSeq.map { case (path, rows) => (path, byPath(path), rows) }
    val (emptied, marked) = touched.partition { case (_, file, rows) =>
      file.numPhysicalRecords.contains(file.numDeletedRecords + rows.size)
    }
    val gone = emptied.map { case (_, file, _) => file.removeWithTimestamp() }
    val vectors = marked.map { case (path, file, rows) =>
      val bitmap = new RoaringBitmapArray
      rows.foreach(bitmap.add)
      val bytes = bitmap.serializeAsByteArray(RoaringBitmapArrayFormat.Portable)
      val before = Option(file.deletionVector).map(_.serializeToBase64())
      DeletionVectorData(path, before, bytes, bitmap.cardinality)
    }
    if (vectors.isEmpty) gone
    else {
      val store = DeletionVectorWriter.createMapperToStoreDeletionVectors(
        session,
        log.newDeltaHadoopConf(),
        log.dataPath,
        DeltaUtils.getRandomPrefixLength(txn.metadata))
      val stored = store(vectors.iterator).toSeq
      val known = withStatistics(txn.snapshot, marked.map(_._2.path))
      gone ++ stored.flatMap { vector =>
        val file = known(byPath(vector.filePath).path)
        val (added, removed) = file.removeRows(vector.deletionVector, updateStats = false)
        Seq(added, removed)
      }
    }
  }

  /** Returns files with their statistics, as bounds still valid after rows are removed. */
  private def withStatistics(snapshot: Snapshot, paths: Seq[String]): Map[String, AddFile] = {
    import org.apache.spark.sql.delta.implicits._
    val files = snapshot.withStats.where(col("path").isin(paths: _*))
    snapshot
      .updateStatsToWideBounds(files, snapshot.getBaseStatsColumnName)
      .as[AddFile]
      .collect()
      .map(file => file.path -> file)
      .toMap
  }

  private def add(txn: OptimisticTransaction, outcome: RowChanges.Outcome): Seq[FileAction] = {
    val hasFeed = DeltaConfigs.CHANGE_DATA_FEED.fromMetaData(txn.metadata)
    val rows = outcome.written(hasFeed)
    if (rows.data.isEmpty) Nil
    else {
      val written = Dataset.ofRows(session, rows).coalesce(1)
      txn.writeFiles(if (hasFeed) written else written.drop(rows.output.last.name))
    }
  }
}

private[delta] object DeltaWrites extends Logging {

  def find(
      session: SparkSession,
      table: String,
      found: DeltaRelation,
      identity: RowIdentity,
      application: String): Option[DeltaWriter] = {
    val obstacle = obstacleIn(DeltaSnapshots.indexOf(found.location).getSnapshot, identity)
    obstacle.foreach(why => logDebug(s"Batches are merged into $table: $why"))
    Option.when(obstacle.isEmpty)(new DeltaWrites(session, table, found, identity, application))
  }

  /** Runs statements whose commits check the fences of this thread, and also change `properties`. */
  def observed[T](properties: Option[DeltaProperties])(body: => T): T =
    TransactionExecutionObserver.withObserver(new Observer(properties))(body)

  /**
   * Delta rejects a change of metadata after files are written, because columns could differ. A change of properties is
   * safe.
   */
  private lazy val setMetadata =
    classOf[OptimisticTransaction].getMethod("newMetadata_$eq", classOf[Option[_]])

  /**
   * Observer: fails a transaction whose writer has lost a fence since the transaction began. The new holder of the
   * fence changes a table property. Delta then rejects commits of older transactions.
   */
  private class Observer(properties: Option[DeltaProperties])
      extends TransactionExecutionObserver {
    @volatile private var started: Option[OptimisticTransaction] = None

    override def createChild(): TransactionExecutionObserver = this

    override def startingTransaction(start: => OptimisticTransaction): OptimisticTransaction = {
      val txn = start
      started = Some(txn)
      txn
    }

    override def preparingCommit[T](prepare: => T): T = {
      Fence.check("commit")
      for {
        wanted <- properties
        txn <- started
        metadata = txn.metadata
        values <- wanted.of(metadata.configuration)
      } {
        wanted.check()
        txn.readWholeTable()
        if (values != metadata.configuration)
          setMetadata.invoke(txn, Some(metadata.copy(configuration = values)))
      }
      prepare
    }

    override def beginDoCommit(): Unit = ()
    override def beginBackfill(): Unit = ()
    override def beginPostCommit(): Unit = ()
    override def transactionCommitted(): Unit = ()
    override def transactionAborted(): Unit = ()
  }

  /** Returns the reason why batches need `MERGE`. */
  private def obstacleIn(snapshot: Snapshot, identity: RowIdentity): Option[String] = {
    val (protocol, metadata) = (snapshot.protocol, snapshot.metadata)
    val features = protocol.implicitlyAndExplicitlySupportedFeatures.map(_.name) -- Features
    val schema = metadata.schema
    def isSame(one: StructType, other: StructType) =
      one.size == other.size && one.zip(other).forall { case (field, found) =>
        field.name == found.name &&
        DataType.equalsIgnoreNullability(field.dataType, found.dataType)
      }
    val checks = Seq(
      "it writes no deletion vectors" -> !DeletionVectorUtils.deletionVectorsWritable(snapshot),
      s"it has the features ${features.mkString(", ")}" -> features.nonEmpty,
      "it takes appended rows only" -> DeltaConfigs.IS_APPEND_ONLY.fromMetaData(metadata),
      "it has generated columns" -> GeneratedColumn.hasGeneratedColumns(schema),
      "it has identity columns" -> ColumnWithDefaultExprUtils.hasIdentityColumn(schema),
      "its columns have other names in files" -> (metadata.columnMappingMode != NoMapping),
      "it has columns of CHAR or VARCHAR" -> CharVarcharUtils.hasCharVarchar(
        CharVarcharUtils.getRawSchema(schema)),
      "its columns are others than those of the query" -> !isSame(
        StructType(schema.sortBy(_.name)),
        StructType(identity.columns.sortBy(_.name))),
      "keys are compared otherwise than by bytes" -> (identity.isKey && !identity.isExact))
    checks.collectFirst { case (why, true) => why }
  }

  /** Table features supported by this class, or without effect on writers of rows. */
  private val Features = Set(
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck")
}
