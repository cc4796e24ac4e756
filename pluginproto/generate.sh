#!/usr/bin/env bash
# Makes the Go code of foldhost.proto, or with --check says whether the committed code is what would be made.
# Needs protoc (Debian: protobuf-compiler; macOS: brew install protobuf). The Go plugins of protoc come from tools/proto.mod,
# so that go.mod stays clean. The line that names protoc's own version is dropped: the code does not depend on it.
set -euo pipefail
cd "$(dirname "$0")"

command -v protoc >/dev/null || { echo "protoc is missing: install protobuf-compiler (Debian) or protobuf (brew)"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tool() { go tool -modfile=../tools/proto.mod -n "$1"; }
protoc --plugin=protoc-gen-go="$(tool protoc-gen-go)" --plugin=protoc-gen-go-grpc="$(tool protoc-gen-go-grpc)" \
  --go_out="$work" --go_opt=paths=source_relative \
  --go-grpc_out="$work" --go-grpc_opt=paths=source_relative \
  foldhost.proto

for file in foldhost.pb.go foldhost_grpc.pb.go; do
  sed -i.bak -E '/^\/\/ (- )?[[:space:]]*protoc +v/d' "$work/$file"
  if [ "${1:-}" = --check ]; then
    cmp -s "$work/$file" "$file" || { echo "pluginproto/$file is not what foldhost.proto gives: run go generate ./pluginproto"; exit 1; }
  else
    cp "$work/$file" "$file"
  fi
done
