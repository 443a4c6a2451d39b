addSbtPlugin("com.github.sbt" % "sbt-sbom" % "0.5.0")
addSbtPlugin("org.scalameta" % "sbt-scalafmt" % "2.5.6")
addSbtPlugin("org.typelevel" % "sbt-tpolecat" % "0.5.2")
