#!/usr/bin/env bash
# Compiles the RocksDB that `./run compare` compares with: a release, for the processor that Nacre
# is compiled for. It is made once, in build/rocksdb-VERSION.
#
#   build.sh --folder   prints that folder
#   build.sh            makes it: include/, librocksdb.a, and the file "built" at the end
#
# The sources come with Rust's binding of RocksDB, as the registry of Rust's packages has them.
set -euo pipefail

readonly CRATE=0.19.0 VERSION=11.8.1
readonly SHA256=4f45e86edad8e88efe97dbf384b4e48e1ff0f111eabf154c7b09d7a1e5fb573c
readonly TARGET=build/rocksdb-$VERSION
readonly WORK=$TARGET/work
readonly CRATE_FOLDER=$WORK/vendor/librocksdb-sys

# Cargo is to fetch the crate, not to compile it. Empty crates in the place of those that it depends
# on leave one thing to download, and nothing that old versions of cargo cannot read.
write_manifest() {
  mkdir -p "$WORK"
  : >"$WORK/empty.rs"
  cat >"$WORK/Cargo.toml" <<MANIFEST
[package]
name = "peer"
version = "0.0.0"

[lib]
path = "empty.rs"

[dependencies]
librocksdb-sys = { version = "=$CRATE", default-features = false }

[patch.crates-io]
MANIFEST
  local stub name
  for stub in bindgen=0.72.0 cc=1.0.0 libc=0.2.0 rustflags=0.1.0; do
    name=${stub%=*}
    mkdir -p "$WORK/$name"
    cat >"$WORK/$name/Cargo.toml" <<MANIFEST
[package]
name = "$name"
version = "${stub#*=}"

[lib]
path = "../empty.rs"

[features]
parallel = []
runtime = []
MANIFEST
    echo "$name = { path = \"$name\" }" >>"$WORK/Cargo.toml"
  done
}

# Debian 12's cargo (0.66) would otherwise download the whole index of the registry; newer ones
# ignore the setting.
fetch() {
  write_manifest
  (cd "$WORK" && RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true cargo vendor vendor)
  grep -q "\"package\":\"$SHA256\"" "$CRATE_FOLDER/.cargo-checksum.json" || {
    echo "librocksdb-sys $CRATE has another SHA-256 than $SHA256"
    exit 1
  }
}

# x86-64-v3 lacks the instruction that RocksDB's fast CRC32C is made with, and which every such
# processor has. Classes that db_bench derives from RocksDB's need run-time type information.
compile() {
  local processor=(-DPORTABLE=1) launcher=()
  if [[ $(uname -m) == x86_64 ]]; then
    processor=(-DPORTABLE=x86-64-v3 -DCMAKE_CXX_FLAGS=-mpclmul)
  fi
  if command -v ccache; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake -S "$CRATE_FOLDER/rocksdb" -B "$WORK/build" -G Ninja "${processor[@]}" "${launcher[@]}" \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG" -DUSE_RTTI=ON \
    -DWITH_JEMALLOC=ON -DWITH_LZ4=ON -DWITH_SNAPPY=OFF -DWITH_ZLIB=OFF -DWITH_ZSTD=OFF \
    -DWITH_GFLAGS=OFF -DWITH_LIBURING=OFF -DWITH_TESTS=OFF -DWITH_TOOLS=OFF \
    -DWITH_CORE_TOOLS=OFF -DWITH_BENCHMARK_TOOLS=OFF -DROCKSDB_BUILD_SHARED=OFF \
    -DFAIL_ON_WARNINGS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON
  ninja -C "$WORK/build" rocksdb
  cp -r "$CRATE_FOLDER/rocksdb/include" "$TARGET/"
  cp "$WORK/build/librocksdb.a" "$TARGET/"
}

case ${1:-} in
  --folder) echo "$TARGET" ;;
  "")
    [[ ! -e $TARGET/built ]] || exit 0
    fetch
    compile
    rm -rf "$WORK"
    touch "$TARGET/built"
    ;;
  *)
    echo "build.sh takes --folder or nothing, not '$1'" >&2
    exit 1
    ;;
esac
