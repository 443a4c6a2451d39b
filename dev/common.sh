# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0
#
# Common functions, sourced by the commands in dev/. Changes to the top of the tree. The functions
# check for Java and Python, and set up .venv.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
home=$PWD
cache=$home/.cache
mkdir -p "$cache"

# The version of Spark to build for, unless SPARK_VERSION is set, and the versions of the further lines
# of a release.
main_spark=$(sed -n 's/.*mainSpark = "\(.*\)"$/\1/p' project/Dependencies.scala)
other_sparks=(4.1.2 4.3.0)

# Lines of Spark that Maven Central does not have: built and tested with the jars of PySpark.
pyspark_only=(4.3)

# Tests whether a version of Spark is of the main line.
is_main_line() { [ "${1%.*}" = "${main_spark%.*}" ]; }

# Prints the name of our artifact for a version of Spark, with -testkit the name of the test kit's artifact.
module_for() {
  if is_main_line "$1"; then echo "spark-changelog${2:-}_2.13"; else echo "spark-changelog${2:-}_${1%.*}_2.13"; fi
}

# Prints the target folder of sbt for a version of Spark.
target_for() {
  if is_main_line "$1"; then echo target; else echo "target/spark-${1%.*}"; fi
}

# The environment of the main version is .venv. Another SPARK_VERSION has a separate environment, with that PySpark.
venv=$home/.venv
[ "${SPARK_VERSION:-$main_spark}" = "$main_spark" ] || venv=$cache/spark-$SPARK_VERSION
python=$venv/bin/python
export CHANGELOG_VENV=$venv

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Runs a command under a lock, so a second run in the same tree waits.
locked() {
  local lock=$cache/$1.lock
  shift
  if command -v flock > /dev/null; then flock "$lock" "$@"; else "$@"; fi
}

java_command() {
  if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi
}

require_java() {
  local need='Java 17 or newer is required (set JAVA_HOME, or put java on the PATH)' version
  version=$("$(java_command)" -version 2>&1) || fail "$need; none was found"
  version=$(sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' <<< "$version" | head -n 1)
  [ "${version:-0}" -ge 17 ] || fail "$need; found Java ${version:-of unknown version}"
}

# Prints the Python for .venv: $PYTHON if set, otherwise the first new enough Python.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' \
      2> /dev/null; then
      echo "$candidate"
      return
    fi
  done
  fail 'Python 3.10 or newer with the venv module is required (set PYTHON, or put python3 on the PATH)'
}

# Creates an environment with the packages of a list, unless the environment is up to date.
make_venv() {
  local base=$1 folder=$2 list=$3 stamp=$2/.requirements
  cmp -s "$list" "$stamp" && return
  say "setting up ${folder#"$home"/}"
  [ -x "$folder/bin/python" ] || "$base" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list"
  cp "$list" "$stamp"
}

prepare_venv() {
  local base
  base=$(find_python)
  export -f make_venv say
  export home
  locked venv bash -euo pipefail -c 'make_venv "$@"' make_venv "$base" "$1" "$2"
}

# Prepares Java and the environment for a command. Quick after the first time.
prepare() {
  local list=dev/requirements.txt
  require_java
  if [ "$venv" != "$home/.venv" ]; then
    list=$venv.txt
    sed "s/^pyspark==.*/pyspark==$SPARK_VERSION/" dev/requirements.txt > "$list"
  fi
  prepare_venv "$venv" "$list"
}

# Prints the folder with the jars of PySpark.
pyspark_jars() { "$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__) + "/jars")'; }

# Prints the folder with the tools of dev/requirements-<name>.txt. The tools are not in .venv, which has
# only packages that users may have too.
prepare_tools() {
  prepare_venv "$cache/$1" "dev/requirements-$1.txt"
  echo "$cache/$1/bin"
}

# Names the share of the tests after the last commit with a change to the engine or the Python package.
set_share() {
  local commit
  commit=$(git log -1 --format=%h -- scala/src/main python/spark_changelog 2> /dev/null || true)
  export CHANGELOG_TEST_SHARE=${CHANGELOG_TEST_SHARE:-$commit}
}

# Prints the top-level types in a file of the engine.
types_in() {
  case $1 in scala/src/main/*) sed -nE 's/^([a-z]+(\[[a-z]+\])? )*(class|trait|object) (\w+).*/\4/p' "$1" 2> /dev/null | sort -u ;; esac
}

# Prints the suites for the given files: suites themselves, suites named after a file or a type in the file, and
# suites that read a file.
suites_of() {
  local file name
  for file in "$@"; do
    name=$(basename "${file%.*}")
    case $file in
      tests/sql/*) echo ScenarioSuite ;;
      tests/resources/explain/*) echo ExplainChangelogSuite ;;
      tests/python/*.py) echo "$name" ;;
      *.py) echo "test_$name" ;;
      *.scala | tests/seeds/*)
        for name in "*${name%Suite}*" $(types_in "$file"); do
          find tests -name "${name}Suite.scala" -exec basename {} .scala \;
        done ;;
    esac
  done
}
